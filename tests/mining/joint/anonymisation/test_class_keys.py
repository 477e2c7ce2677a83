"""With `keys = "union"`, nodes with too many possible classes are examined over the classes that occur."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import comine
from anonymize.models import TCloseness
from anonymize.verifier import verify
from crypto.protocols.union.prefix_union import prefix_union
from jobs.statement import statement
from link.session import Session
from mining.joint.anonymisation import disclosure, occurring, search
from mining.joint.anonymisation.disclosure import openings
from mining.joint.anonymisation.parameters import JointAnonymisation
from protos.v1.link_pb2 import Frame
from tests.errors import fails
from tests.examples import examples
from tests.mining.joint.anonymisation.anonymisation_jobs_world import job
from tests.mining.joint.anonymisation.anonymisation_world import (
    CARRIED,
    PARTIES,
    Cells,
    divided,
    exhaustive,
    hierarchies,
    joint,
    parted,
    people,
    task,
    whole,
)
from tests.mining.joint.anonymisation.test_anonymisation import (
    SHARES,
    Split,
    bits,
    check_declared,
    check_least_loss,
    expected_rows,
    opened,
    released,
)
from tests.mining.joint.anonymisation.vertical_anonymisation_world import job as vertical_job

pytestmark = pytest.mark.turn(6)


@pytest.fixture(autouse=True)
def _few_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes of more than four possible classes are large; none is asked about for its few quasi-identifiers before."""
    monkeypatch.setattr(search, "MOST_CELLS", 4)
    monkeypatch.setattr(search, "FEW_CELLS", 4)
    monkeypatch.setattr(disclosure, "MOST_CELLS", 4)


quick = examples(1, 2, suppress_health_check=[HealthCheck.function_scoped_fixture])


# -- equal to the pooled release --------------------------------------------------------------------------------------
@given(divided(6, 30), SHARES, st.integers(1, 3))
@quick
def test_the_node_and_the_rows_are_those_of_the_pooled_rows(split: Split, share: str, insider_k: int) -> None:
    cells, owners, parties = split
    wanted = task(parties, k=2, max_suppression=Decimal(share), keys="union", insider_k=insider_k)
    losses = exhaustive(cells, owners, wanted)
    if not losses:
        check_least_loss(split, wanted)
        return
    for found in joint(cells, owners, parties, wanted).values():
        assert found.node == min(losses, key=lambda node: (losses[node], node))
        assert found.rows is not None
        assert released(wanted, found.rows) == expected_rows(cells, owners, wanted, found.node)
        assert found.statistics["left_out"] == 0


@pytest.mark.turn(2, "long searches")
@pytest.mark.slow
@given(divided(12, 30), SHARES, st.none() | st.just(2))
@settings(max_examples=2, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_models_and_rules_on_the_parties_parts(split: Split, share: str, k_site: int | None) -> None:
    changes: dict[str, Any] = {"k_site": k_site, "carried": CARRIED, "insider_k": 2}
    models = [TCloseness(Decimal("0.4"), "ill")]
    check_least_loss(split, task(split[2], k=2, models=models, max_suppression=Decimal(share), keys="union", **changes))


def test_without_keys_large_nodes_are_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_CELLS", 2)
    cells, parties = people(60, 3), PARTIES[:3]
    wanted = task(parties, k=3)
    found = joint(cells, np.arange(60) % 3, parties, wanted)["north"]
    assert found.node is not None
    assert wanted.cells(dict(enumerate(found.node))) <= 2
    better = joint(cells, np.arange(60) % 3, parties, task(parties, k=3, keys="union"))["north"]
    assert found.statistics["left_out"] > 0
    assert better.statistics["left_out"] == 0
    assert better.node != found.node


def test_a_party_without_rows() -> None:
    cells, parties = people(30, 9), PARTIES[:3]
    wanted = task(parties, k=3, keys="union", max_suppression=Decimal("0.1"))
    check_least_loss((cells, np.full(30, 2), parties), wanted)


# -- what is opened ---------------------------------------------------------------------------------------------------
@contextmanager
def told_to(party: str) -> Iterator[dict[tuple[int, ...], set[int]]]:
    """By node, in the order in which they are asked, the keys that a party is told."""
    told = dict[tuple[int, ...], set[int]]()

    async def noted(session: Session, *arguments: Any, **named: Any) -> list[bytes]:
        found = await prefix_union(session, *arguments, **named)
        if session.me == party:
            lane = session.path.split("/keys (")[1].split(")")[0]
            told[tuple(int(level) for level in lane.split(","))] = {int.from_bytes(key, "big") for key in found}
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(occurring, "prefix_union", noted)
        yield told


def keys_of(cells: Cells, wanted: JointAnonymisation, node: tuple[int, ...]) -> set[int]:
    """The classes of a node that occur, by looking at all rows."""
    table, keys = whole(cells), np.zeros(len(cells["age"]), np.int64)
    for column, level in zip(table.quasi_identifiers, node, strict=True):
        tree = hierarchies()[column.name]
        keys = keys * len(tree.labels[level]) + tree.maps[level][tree.align(column)[column.codes]]
    return set(keys.tolist())


@pytest.mark.turn(2, "long searches")
@pytest.mark.slow
def test_keys_of_few_nodes_are_opened_the_coarsest_first_whoever_has_the_rows() -> None:
    cells, parties = people(36, 8), PARTIES[:3]
    wanted = task(parties, k=3, max_suppression=Decimal("0.1"), keys="union", learners=("north",))
    bounds = exhaustive(cells, np.arange(36) % 3, task(parties, k=1))
    views = []
    for seed in (0, 1):
        frames: list[Frame] = []
        owners = np.random.default_rng(seed).permutation(np.arange(36) % 3)
        with told_to("east") as told:
            found = joint(cells, owners, parties, wanted, frames=frames, seed=seed)["north"]
        labels = check_declared(frames, openings(wanted, parties))
        assert occurring.LABEL in labels
        assert len(told) == found.statistics["unions"] > 0
        for node, keys in told.items():
            assert keys == keys_of(cells, wanted, node)
        heights = [sum(node) for node in told]
        assert heights == sorted(heights, reverse=True)
        losses = exhaustive(cells, owners, wanted)
        best = min(losses, key=lambda node: (losses[node], node))
        assert found.node == best
        dense = min(loss for node, loss in losses.items() if wanted.cells(dict(enumerate(node))) <= 4)
        assert all(bounds[node] <= dense for node in told)  # none that could not be better than what was known
        shown = opened(frames, "east")
        views.append([told, *(bits(shown, label) for label in ("verdicts", "improvements", "classes"))])
    assert views[0] == views[1]


def test_the_statement_warns_of_single_rows() -> None:
    found = statement(job(keys="union"))
    assert occurring.LABEL in {line.label for line in found.declared}
    told = " ".join(found.exact_prose())
    assert "those of a single row among them" in told
    assert occurring.LABEL not in {line.label for line in statement(job()).declared}


def test_keys_that_there_are_not_are_refused() -> None:
    cells, parties = people(30, 3), PARTIES[:3]

    async def more(*arguments: Any, **named: Any) -> list[bytes]:
        return [*await prefix_union(*arguments, **named), b"\xff" * 8]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(occurring, "prefix_union", more)
        with fails("E400"):
            joint(cells, np.arange(30) % 3, parties, task(parties, keys="union", max_suppression=Decimal("0.2")))


# -- jobs -------------------------------------------------------------------------------------------------------------
def test_the_folder_passes_the_independent_verifier(tmp_path: Path) -> None:
    data = parted(people(60, 3), np.random.default_rng(1).integers(0, 3, 60), PARTIES[:3])
    spec = job(keys="union", max_suppression="0.1")
    result = comine.simulate(spec, data)
    result.save(tmp_path / "out")
    verified = verify(tmp_path / "out")
    assert verified.ok, verified.failures
    assert result.release().statistics["unions"] > 0


@pytest.mark.parametrize("changes", [{"algorithm": "samarati"}, {"algorithm": "mondrian"}, {"disclose": "node"}])
def test_job_files_that_are_refused(changes: dict[str, Any]) -> None:
    with fails("E100"):
        job(keys="union", **changes)


def test_columns_of_several_parties_have_no_keys() -> None:
    with fails("E100"):
        vertical_job(PARTIES[:2], keys="union")
