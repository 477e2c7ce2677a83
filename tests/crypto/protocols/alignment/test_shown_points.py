"""Intersections where parties may deviate: what comes out, what is sent, and what one altered message comes to."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from crypto.protocols.alignment.alignment import intersection
from crypto.protocols.alignment.costs import AlignmentSizes, intersection_traffic
from crypto.protocols.alignment.disclosure import declared
from crypto.protocols.alignment.shown_points import declared as shown_declared
from crypto.protocols.replicated import broadcasts
from crypto.protocols.sums.costs import agreement_traffic
from crypto.protocols.sums.pairwise import agree
from crypto.protocols.transfers import oprf
from link.disclosure import Declared
from link.session import Session
from link.traffic import Traffic
from tests.crypto.protocols.alignment.worlds import Held, sample
from tests.crypto.protocols.replicated.deviating_world import OneAltered, run_deviating
from tests.crypto.protocols.replicated.test_verified_sums import assert_caught_or_right
from tests.errors import fails
from tests.traffic import assert_planned
from tests.world import NAMES, run_parties

LABEL = "intersection"
MERGER = NAMES[0]


def role_of(held: Held, *, merger: str = MERGER, bound: int | None = None) -> Any:
    async def role(session: Session) -> Any:
        parties, secrets = session.parties, await agree(session)
        three = (parties[2], parties[0], parties[1])
        rows = await intersection(session, secrets, held[session.me], merger=merger, bound=bound, three=three)
        return [held[session.me][row] for row in rows], session.costs

    return role


def lines_of(held: Held, merger: str = MERGER, bound: int | None = None) -> list[Declared]:
    parties = tuple(held)
    lines = declared("intersection", parties, merger, bound, LABEL)
    return [*lines, shown_declared(parties, LABEL), broadcasts.declared(parties, 1)]


def common_to(held: Held) -> set[bytes]:
    return set.intersection(*map(set, held.values()))


@pytest.mark.parametrize("sizes", [(0, 0, 0), (1, 90, 3), (30, 40, 50), (5, 1, 0, 2), (9, 7, 8, 9, 70)])
@pytest.mark.parametrize(("place", "bound"), [(0, None), (2, 90)])
def test_it_is_the_intersection_in_one_order(sizes: Sequence[int], place: int, bound: int | None) -> None:
    held = {name: sample("row", size) for name, size in zip(NAMES, sizes, strict=False)}
    merger = NAMES[place]
    found = run_parties(tuple(held), role_of(held, merger=merger, bound=bound), declared=lines_of(held, merger, bound))
    (aligned,) = {tuple(ids) for ids, _ in found.values()}
    assert set(aligned) == common_to(held)


def test_lists_of_several_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oprf, "MOST_KEYS", 200)
    held = {name: sample("row", 400, 30 * place) for place, name in enumerate(NAMES[:3])}
    found = run_parties(tuple(held), role_of(held), declared=lines_of(held))
    assert all(set(ids) == common_to(held) and ids for ids, _ in found.values())


def test_lists_over_the_bound_are_refused() -> None:
    held = {"north": sample("row", 65), "south": [], "east": []}
    with fails("E104"):
        run_parties(tuple(held), role_of(held, bound=5), declared=lines_of(held, bound=5))


@pytest.mark.parametrize("parties", [3, 4])
def test_bytes_and_rounds_are_as_planned(parties: int) -> None:
    held = {name: sample("row", 300, 20 * place) for place, name in enumerate(NAMES[:parties])}
    sizes = AlignmentSizes.of({name: len(own) for name, own in held.items()}, len(common_to(held)), None)
    traffic = Traffic(tuple(held))
    agreement_traffic(traffic)
    intersection_traffic(traffic, sizes, MERGER, (NAMES[2], NAMES[0], NAMES[1]))
    found = run_parties(tuple(held), role_of(held), declared=lines_of(held))
    assert_planned(traffic, {name: costs for name, (_, costs) in found.items()}, rounds=range(-9, 2))


@pytest.mark.parametrize("deviating", [("north",), ("south",), ("east", "west")])
def test_one_altered_message_is_noticed_or_takes_ids_out(deviating: tuple[str, ...]) -> None:
    """Honest parties with a result have the same, and nothing in it but what is common."""
    held = {name: sample("row", 12, 2 * place) for place, name in enumerate(NAMES[:4])}
    role, lines = role_of(held), lines_of(held)

    async def found(session: Session) -> Any:
        return (await role(session))[0]

    counter = OneAltered(-1, 0)
    honest = run_deviating(tuple(held), found, deviating, counter, declared=lines)
    assert not honest.errors
    for seed in range(3):
        alter = OneAltered(random.Random(seed).randrange(counter.sent), seed)
        ends = run_deviating(tuple(held), found, deviating, alter, declared=lines, seed=seed)
        results = [frozenset(ids) for ids in ends.results.values()]
        assert len(set(results)) <= 1
        assert all(each <= common_to(held) for each in results)
        assert_caught_or_right(ends, deviating, *ends.results.values())
