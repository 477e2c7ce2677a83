"""What all rows lose at a level is opened where each label could be a class, and stays shared elsewhere."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from anonymize.hierarchies.hierarchy import Hierarchy
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.sums.pairwise import agree
from jobs.statement import statement
from link.session import Session
from mining.joint.anonymisation import public_losses
from mining.joint.anonymisation.coding import CodedRows
from mining.joint.anonymisation.disclosure import openings
from mining.joint.anonymisation.parameters import JointAnonymisation, QuasiIdentifier
from mining.joint.anonymisation.public_losses import Losses, open_losses
from mining.joint.anonymisation.rows import Counter
from protos.v1.link_pb2 import Frame
from tests.errors import fails
from tests.examples import examples
from tests.mining.joint.anonymisation.anonymisation_jobs_world import job
from tests.mining.joint.anonymisation.anonymisation_world import (
    PARTIES,
    Cells,
    divided,
    joint,
    parted,
    passing_levels,
    people,
    public_bounds,
    task,
)
from tests.mining.joint.anonymisation.test_anonymisation import Split, bits, check_declared, opened
from tests.mining.joint.anonymisation.vertical_anonymisation_world import COLUMNS
from tests.mining.joint.anonymisation.vertical_anonymisation_world import job as vertical_job
from tests.mining.joint.anonymisation.vertical_anonymisation_world import joint as vertical
from tests.mining.joint.models.models_world import run

pytestmark = pytest.mark.turn(6)


def losses_of(split: Split, wanted: JointAnonymisation, frames: list[Frame] | None = None) -> dict[str, Losses]:
    """Every party's outcome of the protocol alone."""
    cells, owners, parties = split

    async def part(session: Session, own: Any) -> Losses:
        secrets = await agree(session.lane("keys"))
        two_party = TwoParty(session.lane("two-party"), wanted.compute) if session.me in wanted.compute else None
        counter = Counter.of(CodedRows.of(own, wanted, session.me), wanted)
        return await open_losses(session, secrets, two_party, wanted, counter.occurring(), len(owners))

    return run(parted(cells, owners, parties), part, openings(wanted, parties), frames=frames)


# -- against the pooled rows -------------------------------------------------------------------------------------------
@given(divided(), st.integers(1, 6), st.integers(1, 3), st.none() | st.integers(2, 3))
@examples(2, 12)
def test_levels_that_pass_and_shares_of_the_others(split: Split, k: int, insider_k: int, k_site: int | None) -> None:
    cells, owners, parties = split
    insiders = min(2, len(parties) - 1)
    wanted = task(parties, k=k, insider_k=insider_k, insiders=insiders, k_site=k_site)
    found, known = losses_of(split, wanted), passing_levels(cells, owners, wanted)
    whole = len(owners) * wanted.loss_unit(len(owners))
    shares = [each.rest for each in found.values() if each.rest is not None]
    rest = np.add.reduce([share.values for share in shares]).astype(np.int64)
    for losses in found.values():
        assert losses.passed == {each: known[each][0] for each in losses.passed}
        assert set(losses.passed) == {(0, 1), (0, 2), (1, 1)}
    least = next(iter(found.values())).least
    for number, (place, level) in enumerate(sorted(known)):
        passed, mean = known[place, level]
        assert least[number] + rest[number] == round(mean * whole)
        assert not passed or not rest[number]
    bounds = public_bounds(cells, owners, wanted)
    for node, bound in bounds.items():
        starts = np.cumsum([0, *wanted.shape[:-1]])
        assert int(least[starts + np.array(node)].sum()) == round(bound * whole * len(node))


def test_rules_of_levels_condemn_nodes_where_nothing_is_suppressed() -> None:
    """The bits of levels answer what was asked of nodes with one quasi-identifier."""
    cells, parties = people(60, 3), PARTIES[:3]
    found = joint(cells, np.arange(60) % 3, parties, task(parties, k=5))["north"]
    looks = found.statistics["checked"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mining.joint.anonymisation.search.Search.note_level", lambda *_: None)
        other = joint(cells, np.arange(60) % 3, parties, task(parties, k=5))["north"]
    assert other.node == found.node
    assert looks < other.statistics["checked"]


# -- hierarchies that are made to tell counts --------------------------------------------------------------------------
COUNTS = (3, 1, 20)


def digits() -> Hierarchy:
    """Labels of 2, 101 and 10,001 leaves but one that nobody has: their losses are 1, 100 and 10,000 units."""
    rows = list[tuple[str, ...]]()
    for label, leaves in zip("abc", (2, 101, 10_001), strict=True):
        rows += [(f"{label}{leaf}", label, "*") for leaf in range(leaves)]
    return Hierarchy.of("town", rows)


def fake() -> Hierarchy:
    """One label puts the rare leaf together with one that nobody has."""
    return Hierarchy.of("town", [("a0", "a0", "*"), ("b0", "b", "*"), ("none", "b", "*"), ("c0", "c0", "*")])


def rows(counts: tuple[int, ...]) -> tuple[Cells, NDArray[np.int64]]:
    towns = [f"{label}0" for label, count in zip("abc", counts, strict=True) for _ in range(count)]
    number = len(towns)
    cells = {
        "town": towns,
        "age": ["0"] * number,
        "sex": ["f"] * number,
        "ill": ["flu"] * number,
        "note": [""] * number,
    }
    return cells, np.arange(number) % 3


@pytest.mark.parametrize("tree", [digits(), fake()], ids=["digits", "fake"])
@pytest.mark.parametrize("share", ["0", "0.1"])
def test_no_loss_is_opened_that_tells_a_count_below_k(tree: Hierarchy, share: str) -> None:
    parties = PARTIES[:3]
    changes: dict[str, Any] = {"quasi_identifiers": (QuasiIdentifier("town", "tree", tree),), "carried": ()}
    views = []
    for counts in (COUNTS, (2, 2, 20)):
        frames: list[Frame] = []
        cells, owners = rows(counts)
        wanted = task(parties, k=3, max_suppression=Decimal(share), learners=("north",), **changes)
        joint(cells, owners, parties, wanted, frames=frames)
        labels = check_declared(frames, openings(wanted, parties))
        assert "losses" not in labels
        told = opened(frames, "east")
        assert [values[0] for values in bits(told, "open levels").values()] == [0]
        views.append(len(told["open levels"]))
    assert views[0] == views[1]


def test_losses_of_labels_with_k_rows_are_opened() -> None:
    parties, frames = PARTIES[:3], list[Frame]()
    wanted = task(parties, k=3, quasi_identifiers=(QuasiIdentifier("town", "tree", fake()),), carried=())
    cells, owners = rows((3, 5, 20))
    joint(cells, owners, parties, wanted, frames=frames)
    parts = [np.frombuffer(values, np.uint64) for _, _, _, values in opened(frames, "east")["losses"]]
    assert np.add.reduce(parts).tolist() == [5 * wanted.loss_unit(28) // 3]


def test_a_column_at_one_party_is_held_to_the_same_rule() -> None:
    holders = dict(zip(COLUMNS, ("south", "north", "south", "north", "north"), strict=True))
    parties, frames = PARTIES[:2], list[Frame]()
    cells = people(40, 5)
    cells["town"] = ["C", *(["A", "B"] * 20)[:39]]
    wanted = task(parties, k=3, max_suppression=Decimal("0.1"))
    found = vertical(cells, holders, parties, wanted, frames=frames)
    known = passing_levels(cells, np.zeros(40, np.int64), wanted)
    assert not known[1, 1][0]
    told = [number for _, _, number, _ in opened(frames, "south")["losses"]]
    assert sum(told) == sum(known[each][0] for each in ((0, 1), (0, 2)))
    assert found["north"].node == found["south"].node


def test_the_statement_says_what_levels_tell() -> None:
    for found in (statement(job()), statement(vertical_job(PARTIES[:2]))):
        told = " ".join(found.exact_prose())
        assert "labels with some rows, but fewer than a class must have (k = 3)" in told
    assert "max_suppression = 0 prevents it" not in " ".join(statement(job(insider_k=2)).exact_prose())
    left_out = " ".join(statement(job(insider_k=2, max_suppression="0.1")).exact_prose())
    assert "fewer than insider_k = 2 there, but some" in left_out
    compared = {"k": 3, "t": {"distance": "equal", "value": "0.3"}}
    told = " ".join(statement(job(max_suppression="0.1", model=compared)).exact_prose())
    assert "the values of the rows that are left out" in told
    regions = " ".join(statement(job(algorithm="mondrian")).exact_prose())
    assert "of town and sex the first and the last leaf that occur in each region" in regions


# -- parties that err --------------------------------------------------------------------------------------------------
def test_losses_that_no_rows_have_end_the_job() -> None:
    cells, parties = people(60, 3), PARTIES[:3]
    original = public_losses.losses_by_level
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(public_losses, "losses_by_level", lambda *args: original(*args) + np.uint64(1 << 50))
        with fails("E400"):
            joint(cells, np.arange(60) % 3, parties, task(parties, k=1))
