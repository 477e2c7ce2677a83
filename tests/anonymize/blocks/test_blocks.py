"""Rows in blocks give the release of the same rows in memory, byte for byte."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from anonymize.blocks.publishing import publish_blocks
from anonymize.blocks.release import BlockRelease
from anonymize.blocks.tuples import BlockProblem
from anonymize.certificate import Certificate
from anonymize.certifying import Sources, publish_folder
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import Requirements
from anonymize.release import Release, sorted_rows
from anonymize.tables import Table
from anonymize.verifier import RELEASE_CSV, RELEASE_PARQUET, verify
from link.errors import ConfigurationError
from tests.anonymize.blocks.cases import in_blocks
from tests.anonymize.fulldomain.cases import problems
from tests.anonymize.fulldomain.cases import requirements as drawn_requirements
from tests.examples import examples

ALGORITHMS = ("optimal", "samarati", "incognito", "datafly", "local_recoding")

Trees = Mapping[str, Hierarchy]


def of_memory(
    folder: Path, table: Table, trees: Trees, required: Requirements, asked: dict[str, Any], *, in_order: bool
) -> Certificate:
    options = dict(asked)
    module = options.pop("algorithm")
    name = "local_recode" if module == "local_recoding" else module
    found: Release = getattr(import_module(f"anonymize.fulldomain.{module}"), name)(table, trees, required, **options)
    release = sorted_rows(found) if in_order else found
    return publish_folder(folder, release, table, required, hierarchies=trees)


def of_blocks(
    folder: Path,
    table: Table,
    trees: Trees,
    required: Requirements,
    asked: dict[str, Any],
    *,
    in_order: bool,
    partitions: int,
) -> Certificate:
    problem = BlockProblem.of(in_blocks(table, partitions), trees, required, asked["max_suppression"])
    more = {"suppression": asked["suppression"]} if "suppression" in asked else {}
    found = import_module(f"anonymize.fulldomain.{asked['algorithm']}").recode(problem, asked["loss"], **more)
    release = BlockRelease.of(problem, found, asked["suppressed"])
    with tempfile.TemporaryDirectory() as scratch:
        return publish_blocks(folder, release, in_order=in_order, sources=Sources(), scratch=Path(scratch))


def said(folder: Path, certificate: Certificate) -> tuple[Any, ...]:
    """All that a release says; its labels are salted."""
    contents = certificate.model_dump(mode="json", exclude={"digest": True, "hashes": {"labels"}})
    orders = [list(certificate.metrics), {name: list(s.labels) for name, s in (certificate.scales or {}).items()}]
    return contents, orders, (folder / RELEASE_CSV).read_bytes(), (folder / RELEASE_PARQUET).read_bytes()


@examples(13, 75)
@given(data=st.data())
def test_a_release_over_blocks_equals_that_of_memory(data: st.DataObject) -> None:
    partitions = data.draw(st.sampled_from([1, 3, 17]))
    table, trees = data.draw(problems())
    required = data.draw(drawn_requirements())
    asked: dict[str, Any] = {
        "algorithm": data.draw(st.sampled_from(ALGORITHMS)),
        "max_suppression": data.draw(st.sampled_from(["0", "0.1", "0.5", "1"])),
        "suppressed": data.draw(st.sampled_from(["drop", "blank", "keep"])),
        "loss": data.draw(st.sampled_from(["gcp", "prec", "entropy", "dm"])),
    }
    if asked["algorithm"] != "local_recoding":
        asked["suppression"] = data.draw(st.sampled_from(["row", "cell"]))
    in_order = data.draw(st.booleans())
    with tempfile.TemporaryDirectory() as place:
        one, two = Path(place) / "memory", Path(place) / "blocks"
        outcomes: list[Any] = []
        for folder, make in ((one, of_memory), (two, partial(of_blocks, partitions=partitions))):
            try:
                outcomes.append(said(folder, make(folder, table, trees, required, asked, in_order=in_order)))
            except ConfigurationError as refused:
                outcomes.append(refused.message)
        assert outcomes[0] == outcomes[1]
        if not isinstance(outcomes[0], str):
            assert [each.ok for each in verify(two).findings] == [each.ok for each in verify(one).findings]
