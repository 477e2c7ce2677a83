"""Another attempt of a job over columns takes the alignment that all parties have kept, and makes any other anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from link.session import Session
from mining.data.formats.table_readers import table_from_csv
from mining.data.tables import Table
from mining.joint.progress import KeptRows, LevelKeeper, common_rows
from mining.joint.vertical.disclosure import openings
from mining.joint.vertical.mine import mine
from mining.joint.vertical.parameters import VerticalMining
from protos.v1.link_pb2 import Frame
from tests.errors import fails
from tests.mining.joint.vertical.vertical_world import quick_keys
from tests.world import run_parties

__all__ = ["quick_keys"]

TASK = VerticalMining(4, ("a", "b"), ("a", "b"), "a")
PEOPLE = {"a": range(9), "b": range(3, 14), "c": range(1, 8)}
FIRST, SECOND = b"first session", b"second session"


def table(name: str) -> Table:
    lines = [f"p{number},{'xy'[number % 5 == 0]}" for number in reversed(PEOPLE[name])]
    return table_from_csv("\n".join([f"id,{name}1", *lines]).encode(), ",", ("id",), Path(name))


def attempt(kept: Mapping[str, KeptRows | None] | None, parties: Sequence[str] = "abc", seed: int = 0):
    """One attempt: what is found, what each party keeps of the alignment, and whether rows were aligned in it."""
    now, frames = dict[str, KeptRows](), list[Frame]()

    async def role(session: Session) -> list[tuple[str, ...]]:
        rows = None if kept is None else kept.get(session.me)

        def keep(found: KeptRows) -> None:
            now[session.me] = KeptRows.unpack(found.pack())

        keeper = LevelKeeper(None if kept is None else (), rows=rows, keep_rows=keep)
        found = await mine(session.lane("task"), table(session.me), TASK, keeper=keeper)
        return [] if found.itemsets is None else list(found.itemsets.rows())

    outcome = run_parties(parties, role, declared=openings(TASK, tuple(parties)), observe=frames.append, seed=seed)
    return outcome, now, any("/intersection" in frame.lane for frame in frames)


@pytest.mark.usefixtures("quick_keys")
@pytest.mark.parametrize("parties", ["ab", "abc"])
def test_rows_that_all_have_kept_are_not_aligned_again(parties: str) -> None:
    found, kept, aligned = attempt(None, parties)
    assert aligned
    for name in parties:
        common = set.intersection(*(set(PEOPLE[each]) for each in parties))
        assert kept[name].common.tolist() == [number in common for number in reversed(PEOPLE[name])]
    again, kept_again, aligned = attempt(kept, parties, 1)
    assert (again, kept_again, aligned) == (found, {}, False)


@pytest.mark.usefixtures("quick_keys")
def test_rows_that_some_party_has_not_kept_are_aligned_anew() -> None:
    found, kept, _ = attempt(None)
    again, anew, aligned = attempt({**kept, "b": None}, seed=1)
    assert aligned
    assert again == found
    assert {each.session for each in anew.values()}.isdisjoint(each.session for each in kept.values())
    again, _, aligned = attempt({**anew, "c": kept["c"]}, seed=2)
    assert aligned
    assert again == found


def agreed(kept: Mapping[str, KeptRows | None], *, first: bool = False) -> list[bool]:
    async def role(session: Session) -> bool:
        keeper = LevelKeeper(None if first else (), rows=kept[session.me])
        return await common_rows(session.lane("kept"), keeper, 3) is not None

    return list(run_parties("abc", role, declared=openings(TASK, ("a", "b", "c"))).values())


def rows(session: bytes = FIRST, common: Sequence[bool] = (True, False, True)) -> KeptRows:
    return KeptRows(session, np.array(common))


@pytest.mark.parametrize(
    ("kept", "same"),
    [
        ((rows(), rows(), rows(common=(False, True, True))), True),  # each has its own rows
        ((rows(), rows(), None), False),
        ((None, None, None), False),
        ((rows(), rows(), rows(SECOND)), False),
        ((rows(), rows(), rows(common=(True, True))), False),  # of another number of rows
    ],
)
def test_only_one_alignment_of_all_is_gone_on_from(kept: Sequence[KeptRows | None], same: bool) -> None:
    assert agreed(dict(zip("abc", kept, strict=True))) == [same] * 3
    assert agreed(dict(zip("abc", kept, strict=True)), first=True) == [False] * 3


def test_another_number_of_the_same_alignment_is_refused() -> None:
    with fails("E400"):
        agreed({"a": rows(), "b": rows(), "c": rows(common=(True, True, True))})


@given(st.binary(max_size=60))
def test_bytes_that_are_no_rows_are_refused(junk: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - what json says is its own
        KeptRows.unpack(junk)
