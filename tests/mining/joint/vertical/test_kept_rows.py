"""Another attempt of a job over columns takes the alignment that all parties have kept, and makes any other anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from link.journal import MemoryJournal, Step
from link.session import Session
from link.steps import begin
from link.steps import openings as steps_openings
from mining.data.formats.table_readers import table_from_csv
from mining.data.tables import Table
from mining.joint.vertical.disclosure import openings
from mining.joint.vertical.mine import mine
from mining.joint.vertical.parameters import Mode, VerticalMining
from protos.v1.link_pb2 import Frame
from tests.link.kept_steps import results
from tests.mining.joint.vertical.vertical_world import quick_keys
from tests.world import run_parties

pytestmark = pytest.mark.turn(6)

__all__ = ["quick_keys"]

TASK = VerticalMining(4, ("a", "b"), ("a", "b"), "a")
ALIGNS = ("/intersection", "/row-union")
PEOPLE = {"a": range(9), "b": range(3, 14), "c": range(1, 8)}


def table(name: str) -> Table:
    lines = [f"p{number},{'xy'[number % 5 == 0]}" for number in reversed(PEOPLE[name])]
    return table_from_csv("\n".join([f"id,{name}1", *lines]).encode(), ",", ("id",), Path(name))


def attempt(
    kept: Mapping[str, Sequence[Step]] | None,
    parties: Sequence[str] = "abc",
    seed: int = 0,
    mode: Mode = "intersection",
):
    """One attempt: what is found, what each party keeps, and whether rows were aligned in it."""
    journals, frames = {name: MemoryJournal((kept or {}).get(name, ())) for name in parties}, list[Frame]()
    task = replace(TASK, mode=mode)

    async def role(session: Session) -> list[tuple[str, ...]]:
        await begin(session, journals[session.me])
        found = await mine(session.lane("task"), table(session.me), task)
        return [] if found.itemsets is None else list(found.itemsets.rows())

    declared = (*openings(task, tuple(parties)), steps_openings(tuple(parties)))
    number = 1 if kept is None else 2
    outcome = run_parties(parties, role, declared=declared, observe=frames.append, seed=seed, attempt=number)
    now = {name: tuple(Step.unpack(each.pack()) for each in journals[name].kept) for name in parties}
    return outcome, now, any(lane in frame.lane for frame in frames for lane in ALIGNS)


@pytest.mark.usefixtures("quick_keys")
@pytest.mark.parametrize("parties", ["ab", "abc"])
def test_rows_that_all_have_kept_are_not_aligned_again(parties: str) -> None:
    found, kept, aligned = attempt(None, parties)
    assert aligned
    common = set.intersection(*(set(PEOPLE[each]) for each in parties))
    for name in parties:
        held = np.unpackbits(kept[name][0].known.own, count=len(PEOPLE[name]))
        assert held.tolist() == [number in common for number in reversed(PEOPLE[name])]
    again, kept_again, aligned = attempt({name: steps[:1] for name, steps in kept.items()}, parties, 1)
    assert (again, aligned) == (found, False)
    assert results(kept_again[parties[0]]) == results(kept[parties[0]])


@pytest.mark.usefixtures("quick_keys")
def test_rows_that_some_party_has_not_kept_are_aligned_anew() -> None:
    found, kept, _ = attempt(None)
    again, anew, aligned = attempt({**kept, "b": ()}, seed=1)
    assert (again, aligned) == (found, True)
    again, _, aligned = attempt({**anew, "c": kept["c"]}, seed=2)  # the same rows, but other frames have led to them
    assert (again, aligned) == (found, True)


@pytest.mark.usefixtures("quick_keys")
def test_positions_of_a_union_belong_to_their_session() -> None:
    found, kept, _ = attempt(None, "ab", mode="union")
    again, anew, aligned = attempt(kept, "ab", 1, mode="union")
    assert (again, aligned) == (found, False)
    again, anew, aligned = attempt({**kept, "b": ()}, "ab", 1, mode="union")
    assert (again, aligned) == (found, True)
    again, _, aligned = attempt({"a": kept["a"], "b": anew["b"]}, "ab", 2, mode="union")
    assert (again, aligned) == (found, True)
