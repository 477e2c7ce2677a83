"""Releases where parties of a group hold the same columns of different rows: as if all were joined."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import comine
from anonymize.models import DistinctDiversity, Model, TCloseness
from anonymize.verifier import verify
from jobs.kinds.registry import kind_of
from jobs.statement import statement
from link.steps import LABEL as AGAIN
from mining.joint.align import RowAlignment
from mining.joint.anonymisation.vertical.disclosure import openings
from protos.v1.link_pb2 import Frame
from tests.errors import fails
from tests.examples import examples
from tests.mining.joint.anonymisation.anonymisation_jobs_world import certified
from tests.mining.joint.anonymisation.anonymisation_world import people, task
from tests.mining.joint.anonymisation.test_anonymisation_vertical import assert_pooled
from tests.mining.joint.anonymisation.vertical_anonymisation_world import COLUMNS, GroupedPeople, job
from tests.mining.joint.models.models_world import assert_declared, opened, shapes

pytestmark = pytest.mark.turn(3)

SPLIT = dict(zip(COLUMNS, (0, 1, 0, 1, 0), strict=True))


@given(
    st.sampled_from([(2, 1), (2, 2), (1, 2, 1), (1, 1)]),
    st.integers(12, 60),
    st.integers(1, 4),
    st.sampled_from(["0", "0.1", "0.3"]),
    st.integers(0, 1 << 16),
)
@examples(2, 12, suppress_health_check=[HealthCheck.too_slow])
def test_node_and_rows_are_those_of_the_joined_table(
    members: Sequence[int], n_rows: int, k: int, share: str, seed: int
) -> None:
    drawn = GroupedPeople.drawn(n_rows, members, seed)
    wanted = task(drawn.parties[::-1], k=k, max_suppression=Decimal(share))
    common = len(drawn.joined["age"])
    if common < k:
        with fails("E100" if common else "E101"):
            drawn.release(wanted)
        return
    assert_pooled(drawn.joined, wanted, lambda: drawn.release(wanted))


@pytest.mark.parametrize(
    ("model", "share"),
    [(DistinctDiversity(2, "ill"), "0.1"), (TCloseness(Decimal("0.5"), "ill", distance="equal"), "0")],
)
def test_models_are_those_of_the_joined_table_and_only_what_is_declared_is_opened(model: Model, share: str) -> None:
    drawn, frames = GroupedPeople.drawn(70, (2, 1), 4), list[Frame]()
    wanted = task(drawn.parties, k=2, models=[model], max_suppression=Decimal(share))
    assert_pooled(drawn.joined, wanted, lambda: drawn.release(wanted, frames=frames))
    frames = [frame for frame in frames if "hello" not in frame.lane]
    declared = openings(wanted, drawn.parties, RowAlignment(drawn.parties[0], "union"), drawn.groups)
    used = {label for label, _ in opened(frames)}
    assert_declared(frames, [line for line in declared if line.label in used])
    assert {line.label for line in declared} - used <= {AGAIN, "improvements", "bounds"}
    kept = [b"".join(values) for (label, _), values in opened(frames).items() if label == "released rows"]
    assert min(map(len, kept)) > len(drawn.joined["age"])  # of every position, common or not


def test_a_view_tells_neither_whose_a_row_is_nor_which_are_common() -> None:
    """The same common people at other parties of a group, and others with them: frames of the same shapes."""
    views = []
    cells = people(40, 6)
    for seed in range(2):
        chance = np.random.default_rng(seed)
        at = [chance.integers(0, 2, 40), np.zeros(40, np.int64)]
        at[seed][30:] = -1  # people whom one of both groups lacks
        frames = list[Frame]()
        drawn = GroupedPeople(cells, (2, 1), SPLIT, at)
        wanted = task(drawn.parties, k=3, learners=("east",), max_suppression=Decimal("0.2"))
        found = drawn.release(wanted, frames=frames)
        views.append((found["north"].node, [shapes(frames, party) for party in ("north", "south")]))
    assert views[0] == views[1]


def test_an_id_at_two_parties_of_a_group_ends_the_job() -> None:
    drawn = GroupedPeople.drawn(12, (2, 1), 1)
    tables = drawn.tables()
    with fails("E101") as raised:
        drawn.release(task(drawn.parties, k=1), tables={**tables, "south": tables["north"]})
    assert "p1" not in raised.value.message


def test_a_party_of_a_group_that_lacks_a_column_is_named() -> None:
    drawn, other = (
        GroupedPeople(people(12, 1), (2, 1), held, [np.arange(12) % 2, np.zeros(12, np.int64)])
        for held in (SPLIT, {**SPLIT, "age": 1})
    )
    with fails("E100"):
        drawn.release(task(drawn.parties, k=1), tables={**drawn.tables(), "south": other.tables()["south"]})


@pytest.mark.parametrize("changes", [{}, {"model": {"k": 2, "t": {"value": "0.6", "column": "ill"}}}])
def test_the_folder_of_a_release_passes_the_independent_verifier(tmp_path: Path, changes: dict[str, Any]) -> None:
    drawn = GroupedPeople.drawn(80, (2, 1), 3)
    spec = drawn.job(max_suppression="0.1", **changes)
    comine.simulate(spec, drawn.tables()).save(tmp_path / "out")
    verified = verify(tmp_path / "out")
    assert verified.ok, verified.failures
    assert not verified.unchecked
    certified(tmp_path / "out", spec, drawn.joined)


def test_the_statement_is_about_groups() -> None:
    drawn = GroupedPeople.drawn(12, (2, 1), 1)
    spec = drawn.job()
    found = statement(spec)
    labels = {line.label for line in found.declared}
    assert labels >= {"positions", "repeated", "rows", "released rows", "verdicts", "classes"}
    assert not labels & {"local verdicts", "intersection", "sensitive values"}
    told = " ".join(found.exact_prose())
    assert "rows that all groups have in common" in told
    assert "whether some id is at two parties of one group" in told
    assert "and which of these are common" in told
    assert kind_of(spec).facets(spec) == {"release", "column groups"}
    assert ("column groups", "g0: north and south; g1: east") in kind_of(spec).facts(spec, "optimal")
    assert "groups" not in " ".join(statement(job(drawn.parties)).exact_prose())


@pytest.mark.parametrize("changes", [{"align": {"mode": "intersection"}}, {"algorithm": "mondrian"}, {"insider_k": 2}])
def test_what_means_nothing_for_groups_is_refused(changes: dict[str, Any]) -> None:
    groups = {"left": ["north", "south"], "right": ["east"]}
    with fails("E100"):
        job(("north", "south", "east"), groups=groups, **{"align": {"mode": "union"}, **changes})
