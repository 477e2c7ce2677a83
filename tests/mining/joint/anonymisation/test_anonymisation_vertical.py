"""Joint anonymisation of columns: node, loss and rows are those of the joined table; no message tells a count."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from anonymize.fulldomain.optimal import optimal
from anonymize.models import DistinctDiversity, Model, SensitiveLevels
from link.errors import ConfigurationError
from mining.data.table_rows import TableRows
from mining.joint.anonymisation.anonymise import JointRelease
from mining.joint.anonymisation.parameters import JointAnonymisation
from protos.v1.link_pb2 import Frame
from tests.examples import examples
from tests.mining.joint.anonymisation.anonymisation_world import (
    PARTIES,
    Cells,
    exhaustive,
    hierarchies,
    people,
    task,
    whole,
)
from tests.mining.joint.anonymisation.vertical_anonymisation_world import (
    COLUMNS,
    columns_of,
    joint,
    released,
    shared_people,
)
from tests.mining.partitioned.tables_world import partitioned
from tests.mining.partitioned.world import evenly

pytestmark = pytest.mark.turn(3)

QUICK = examples(1, 3, suppress_health_check=[HealthCheck.too_slow])


def classes_of(cells: Cells, node: tuple[int, ...]) -> np.ndarray:
    """Class of each person at a node, in mixed radix."""
    table = whole(cells)
    keys = np.zeros(table.n_rows, np.int64)
    for column, level in zip(table.quasi_identifiers, node, strict=True):
        tree = hierarchies()[column.name]
        keys = keys * len(tree.labels[level]) + tree.codes(column, level)[column.codes]
    return keys


def check(cells: Cells, holders: dict[str, str], parties: tuple[str, ...], wanted: JointAnonymisation) -> None:
    """The outcome is that of looking at every node of the joined table."""
    assert_pooled(cells, wanted, lambda: joint(cells, holders, parties, wanted))


def assert_pooled(cells: Cells, wanted: JointAnonymisation, run: Callable[[], dict[str, JointRelease]]) -> None:
    """A job, whose learners are all parties, finds what looking at every node of the joined table does."""
    possible = exhaustive(cells, np.zeros(len(cells["age"]), np.int64), wanted)
    if not possible:
        with pytest.raises(ConfigurationError):
            run()
        return
    best = min(possible, key=lambda node: (possible[node], node))
    keys = classes_of(cells, best)
    for release in run().values():
        assert release.rows is not None
        assert release.node == best
        assert release.n_rows == len(keys)
        sizes = np.bincount(keys)
        if not wanted.max_suppression and not wanted.requirements.columns:
            assert (np.bincount(release.rows.cells) == sizes).all()
        kept = np.isin(keys, np.unique(release.rows.cells))
        assert (sizes[np.unique(release.rows.cells)] >= wanted.k).all()
        expected = sorted(
            (int(key), cells["ill"][row], cells["note"][row]) for row, key in enumerate(keys.tolist()) if kept[row]
        )
        assert released(release) == expected


@given(shared_people(), st.integers(1, 5))
@QUICK
def test_node_and_rows_are_those_of_the_joined_table(shared, k: int) -> None:  # type: ignore[no-untyped-def]
    check(*shared, task(shared[2], k=k))


@given(shared_people(parties=2), st.integers(2, 5), st.sampled_from(["0.05", "0.1", "0.3"]))
@QUICK
def test_suppression_is_that_of_the_joined_table(shared, k: int, share: str) -> None:  # type: ignore[no-untyped-def]
    check(*shared, task(shared[2], k=k, max_suppression=Decimal(share)))


def test_tables_in_blocks_give_the_release_of_memory_by_the_same_frames(tmp_path: pathlib.Path) -> None:
    cells, parties = people(40, 3), PARTIES[:2]
    holders = dict(zip(COLUMNS, ("north", "south", "north", "south", "north"), strict=True))
    wanted = task(parties, k=2, models=[DistinctDiversity(2, "ill")], max_suppression=Decimal("0.1"))
    tables, found = columns_of(cells, holders, parties), []
    for parts in (0, 1, 3):
        own: dict[str, TableRows] = dict(tables)
        for party, whole_table in tables.items() if parts else ():
            (folder := tmp_path / f"{parts}-{party}").mkdir()
            own[party] = partitioned(whole_table, evenly(whole_table.n_rows, parts), folder)
        frames = list[Frame]()
        outcome = joint(cells, holders, parties, wanted, frames=frames, tables=own)
        sent = sorted((each.sender, each.lane, each.seq, each.body) for each in frames)
        found.append((released(outcome["south"]), outcome["south"].node, sent))
    assert found[0][0]
    assert found[0] == found[1] == found[2]


def test_the_node_is_that_of_the_library() -> None:
    share = "0.1"
    cells = people(80, 3)
    wanted = task(PARTIES[:2], k=4, max_suppression=Decimal(share))
    pooled = optimal(whole(cells), hierarchies(), wanted.requirements, max_suppression=share)
    holders = dict(zip(COLUMNS, ("north", "south", "north", "south", "north"), strict=True))
    found = joint(cells, holders, PARTIES[:2], wanted)
    assert pooled.node is not None
    assert found["south"].node == tuple(pooled.node.values())
    assert found["south"].rows is not None
    assert len(found["south"].rows.cells) == pooled.table.num_rows


@pytest.mark.turn(2)
@pytest.mark.parametrize(
    ("model", "share"),
    [
        (DistinctDiversity(2, "ill"), "0"),
        (SensitiveLevels(2, (("flu", "cold"), ("ulcer", "")), "ill"), "0.2"),
    ],
)
def test_models_are_those_of_the_joined_table(model: Model, share: str) -> None:
    holders = dict(zip(COLUMNS, ("north", "south", "north", "east", "south"), strict=True))
    wanted = task(PARTIES[:3], k=3, models=[model], max_suppression=Decimal(share))
    check(people(60, 5), holders, PARTIES[:3], wanted)


def test_learners_may_hold_no_shares_and_few_rows_may_be_released() -> None:
    """East gets the rows and shuffles nothing; at a share of 1 every node can be released."""
    cells, parties = people(24, 4), PARTIES[:3]
    holders = dict(zip(COLUMNS, ("north", "south", "east", "south", "north"), strict=True))
    found = joint(cells, holders, parties, task(parties, k=3, learners=("east", "south"), max_suppression=Decimal(1)))
    assert found["north"].rows is None
    assert released(found["east"]) == released(found["south"])
    possible = exhaustive(cells, np.zeros(24, np.int64), task(parties, k=3, max_suppression=Decimal(1)))
    assert found["north"].node == min(possible, key=lambda node: (possible[node], node))
