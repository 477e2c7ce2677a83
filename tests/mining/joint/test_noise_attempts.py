"""Jobs under noise that die go on with the very same noise: nothing is drawn twice, and nothing for other inputs.

The kinds that draw noise are run here with journals in memory. A party dies where it keeps a step, before or after, and
each attempt is a session with its own masks and keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from typing import Any, Final

import pytest

from link.errors import PeerError
from link.journal import FIRST, ROOT, MemoryJournal, Step
from link.session import Session
from link.steps import begin, openings
from mining.data.transactions import Transactions
from mining.joint.blended import disclosure as of_blended
from mining.joint.blended import mine as blended
from mining.joint.coins import coins, layout
from mining.joint.distributed import disclosure as of_noisy
from mining.joint.distributed import mine as noisy
from mining.joint.distributed.parameters import DistributedMining
from mining.joint.estimated import EstimatedOutcome, pack_estimates
from mining.joint.hybrid import disclosure as of_reported
from mining.joint.hybrid import mine as reported
from protos.v1.link_pb2 import Frame, Opening
from tests.errors import fails
from tests.link.kept_steps import results
from tests.mining.joint.hybrid.hybrid_world import PARTIES, TASK, baskets, shuffled
from tests.mining.joint.hybrid.test_blended import TASK as BLENDED
from tests.mining.joint.oracle import Rows
from tests.mining.partitioned.world import partitioned
from tests.world import run_parties

pytestmark = pytest.mark.turn(3)

DATA: Final = {party: baskets(120, number) for number, party in enumerate(PARTIES)}


@dataclass(frozen=True)
class Kind:
    """A kind of job with noise.

    Attributes:
        mine: One party's part.
        opens: What it may open.
        task: Its public parameters.
        steps: How many of its steps are kept.
    """

    mine: Callable[..., Any]
    opens: Callable[..., Any]
    task: Any
    steps: int


NOISY: Final = DistributedMining(
    Decimal(40), Decimal("1e-3"), 6, PARTIES, catalogue=None, max_length=2, contributions=None
)
KINDS: Final = {
    "noisy": Kind(noisy.mine, of_noisy.openings, NOISY, 6),
    "local": Kind(reported.mine, of_reported.openings, TASK, 4),
    "shuffle": Kind(reported.mine, of_reported.openings, shuffled(("south", "east")), 4),
    "blended": Kind(blended.mine, of_blended.openings, replace(BLENDED, epsilon=Decimal(15)), 4),
}


class Mortal(MemoryJournal):
    """A journal whose party dies as it keeps a step, once.

    Args:
        dies_at: The step.
        after: Whether the step is kept by then.
    """

    def __init__(self, dies_at: int = -1, *, after: bool = False, coins: Mapping[str, bytes] | None = None) -> None:
        super().__init__(coins=coins)
        self.dies_at, self.after = dies_at, after

    def keep(self, place: int, step: Step) -> bool:
        dies, self.dies_at = place == self.dies_at, -1 if place == self.dies_at else self.dies_at
        if not dies or self.after:
            super().keep(place, step)
        if dies:
            raise PeerError("the node was killed")
        return True


def attempt(
    kind: Kind,
    journals: Mapping[str, MemoryJournal],
    number: int,
    data: Mapping[str, Rows] = DATA,
    frames: list[Frame] | None = None,
    cuts: Sequence[int] = (),
) -> dict[str, bytes | None]:
    """What the learners find in one attempt."""

    async def role(session: Session) -> EstimatedOutcome:
        await begin(session, journals[session.me])
        rows = Transactions.from_rows(data[session.me])
        lent = partitioned(rows, cuts) if cuts else rows
        found: EstimatedOutcome = await kind.mine(session.lane("task"), lent, kind.task)
        return found

    observe = None if frames is None else frames.append
    declared = (*kind.opens(kind.task, PARTIES), openings(PARTIES))
    found = run_parties(PARTIES, role, declared=declared, seed=number, attempt=number, observe=observe)
    return {p: None if each.estimated is None else pack_estimates(each.estimated) for p, each in found.items()}


def drawn(journals: Mapping[str, MemoryJournal]) -> dict[str, Mortal]:
    """Journals as they are when a job has just started that has the same coins."""
    return {party: Mortal(coins={ROOT: journal.coins[ROOT]}) for party, journal in journals.items()}


@cache
def straight(name: str) -> tuple[dict[str, bytes | None], dict[str, Mortal]]:
    """A job of a kind that nothing interrupts, and its journals."""
    journals = {party: Mortal() for party in PARTIES}
    return attempt(KINDS[name], journals, 1), journals


def kept(journals: Mapping[str, MemoryJournal]) -> dict[str, list[bytes]]:
    return {party: results(journal.kept) for party, journal in journals.items()}


@pytest.mark.parametrize("name", KINDS)
def test_every_step_is_kept(name: str) -> None:
    _, journals = straight(name)
    assert {party: len(journal.kept) for party, journal in journals.items()} == dict.fromkeys(
        PARTIES, KINDS[name].steps
    )


@pytest.mark.parametrize("name", KINDS)
def test_a_job_that_dies_at_every_step_finds_what_it_would_have_found(name: str) -> None:
    """Each party dies in turn, at one step after the other: five attempts, and the openings of one."""
    kind, (expected, whole) = KINDS[name], straight(name)
    journals = drawn(whole)
    for number in range(1, 5):
        dying = journals[PARTIES[number % 3]]
        dying.dies_at, dying.after = number - 1, number % 2 == 0
        with pytest.raises(PeerError):
            attempt(kind, journals, number)
        for party, steps in kept(journals).items():
            assert steps == kept(whole)[party][: len(steps)], (number, party)
    assert attempt(kind, journals, 5) == expected
    assert kept(journals) == kept(whole)
    assert {party: journal.coins for party, journal in journals.items()} == {p: whole[p].coins for p in PARTIES}


@pytest.mark.parametrize(("name", "analyst"), [("local", "north"), ("blended", "north")])
def test_what_an_analyst_gets_again_it_has_had_before(name: str, analyst: str) -> None:
    """The analyst dies with all reports, so that each party sends its own once more."""
    kind, seen = KINDS[name], list[set[tuple[str, str, bytes]]]()
    journals = drawn(straight(name)[1])
    for number in (1, 2):
        journals[analyst].dies_at = kind.steps - 1
        frames: list[Frame] = []
        with pytest.raises(PeerError):
            attempt(kind, journals, number, frames=frames)
        seen.append(bodies(frames, analyst, {"reports", "answers", "counts"}))
    first, second = seen
    assert second
    assert second <= first


def test_shuffled_reports_are_sealed_anew() -> None:
    kind, seen = KINDS["shuffle"], list[set[bytes]]()
    journals = drawn(straight("shuffle")[1])
    for number in (1, 2):
        journals["north"].dies_at = 1
        frames: list[Frame] = []
        with pytest.raises(PeerError):
            attempt(kind, journals, number, frames=frames)
        seen.append({frame.body for frame in frames if frame.type.endswith("SealedRows")})
    first, second = seen
    assert first
    assert len(first) == len(second)
    assert not first & second


def test_masks_are_fresh_and_what_they_hide_is_the_same() -> None:
    """So the words of one party in two attempts differ by masks alone, which all others together know anyway."""
    kind, seen = KINDS["noisy"], list[set[bytes]]()
    journals = drawn(straight("noisy")[1])
    for number in (1, 2):
        journals["south"].dies_at = 1
        frames: list[Frame] = []
        with pytest.raises(PeerError):
            attempt(kind, journals, number, frames=frames)
        seen.append({frame.body for frame in frames if "/rows" in frame.lane and frame.sender == "north"})
    assert not seen[0] & seen[1]


# -- nothing is drawn for other inputs -----------------------------------------------------------------------------
def late() -> Mortal:
    """The journal of a party that makes it in another attempt than the first."""
    journal = Mortal()
    del journal.coins[FIRST]
    return journal


@pytest.mark.parametrize("name", KINDS)
def test_a_party_that_has_forgotten_its_part_draws_nothing_a_second_time(name: str) -> None:
    """East is put back to before the job. What others have kept shows that it took part, and it says so for good."""
    kind, journals = KINDS[name], drawn(straight(name)[1])
    journals["south"].dies_at, journals["south"].after = 0, True
    with pytest.raises(PeerError):
        attempt(kind, journals, 1)
    journals["east"] = late()
    for number in (2, 3):
        if number == 3:  # and nobody says so any more
            journals |= {party: Mortal(coins=journals[party].coins) for party in PARTIES}
        with fails("E100", party="east"):
            attempt(kind, journals, number)
        assert set(journals["east"].coins) == {FIRST}


@pytest.mark.parametrize("name", KINDS)
def test_a_party_that_joins_in_another_attempt_draws_as_in_a_first_one(name: str) -> None:
    """The first one ended before all were there, and the second one in the midst of it."""
    kind, journals = KINDS[name], {party: late() for party in PARTIES}
    journals["north"].dies_at, journals["north"].after = 1, True
    with pytest.raises(PeerError):
        attempt(kind, journals, 2)
    coins = {party: dict(journal.coins) for party, journal in journals.items()}
    attempt(kind, journals, 3)
    assert all(coins[party].items() <= journals[party].coins.items() for party in PARTIES)


def test_a_party_that_draws_anew_is_found_out_before_others_draw_for_it() -> None:
    """East has lost its coins, and adds other noise: what the others would draw for next are other candidates."""
    kind, journals = KINDS["noisy"], drawn(straight("noisy")[1])
    journals["south"].dies_at, journals["south"].after = kind.steps - 2, True
    with pytest.raises(PeerError):
        attempt(kind, journals, 1)
    journals["east"] = Mortal()
    with fails("E400"):
        attempt(kind, journals, 2)


@pytest.mark.parametrize("name", ["local", "shuffle"])
def test_an_analyst_that_asks_for_something_else_gets_nothing(name: str) -> None:
    kind, journals = KINDS[name], drawn(straight(name)[1])
    journals["north"].dies_at = kind.steps - 1
    with pytest.raises(PeerError):
        attempt(kind, journals, 1)
    unbound = {ROOT: journals["north"].coins[ROOT]}
    journals["north"], frames = Mortal(coins=unbound), list[Frame]()
    with fails("E400"):
        attempt(kind, journals, 2, data={**DATA, "north": [["g", "h"]] * 120}, frames=frames)
    told = max(place for place, frame in enumerate(frames) if frame.type.endswith("OpeningSize"))
    assert not any(frame.type.endswith("SealedRows") for frame in frames[told + 1 :])
    assert not bodies(frames[told + 1 :], "north", {"reports"})


def test_coins_are_for_one_purpose_and_one_input() -> None:
    journal = MemoryJournal()

    def draw(purpose: str, *inputs: str, attempt: int = 1) -> int:
        async def role(session: Session) -> int:
            await begin(session, journal if session.me == "north" else MemoryJournal())
            return (await coins(session.lane("task"), purpose, *inputs)).below(1 << 60)

        return run_parties(["north", "south"], role, declared=[openings(["north", "south"])], attempt=attempt)["north"]

    first = draw("noise", "a")
    assert draw("noise", "a", attempt=2) == first
    assert draw("names", "a", attempt=2) != first
    with fails("E400"):
        draw("noise", "b", attempt=2)
    assert draw("noise", "a", attempt=3) == first


def test_rows_in_other_blocks_have_no_other_coins() -> None:
    """Which coins a row gets depends on how rows are cut into blocks."""
    rows = Transactions.from_rows(baskets(50, 1))
    cuts = [layout(partitioned(rows, each)) for each in ([0, 20, 50], [0, 20, 50], [0, 25, 50])]
    assert cuts[0] == cuts[1] != cuts[2]
    assert layout(rows) not in cuts


@pytest.mark.parametrize("name", ["local", "blended"])
def test_rows_in_blocks_get_their_coins_again_too(name: str) -> None:
    kind, journals = KINDS[name], {party: Mortal() for party in PARTIES}
    journals["east"].dies_at = kind.steps - 1
    with pytest.raises(PeerError):
        attempt(kind, journals, 1, cuts=(0, 50, 120))
    resumed = attempt(kind, journals, 2, cuts=(0, 50, 120))
    assert attempt(kind, drawn(journals), 1, cuts=(0, 50, 120)) == resumed


def bodies(frames: list[Frame], receiver: str, labels: set[str]) -> set[tuple[str, str, bytes]]:
    """What the others have opened to a party under some labels."""
    found = set[tuple[str, str, bytes]]()
    for frame in frames:
        if frame.receiver == receiver and frame.type.endswith("Opening"):
            opening = Opening.FromString(frame.body)
            if opening.label in labels:
                found.add((frame.sender, frame.lane, frame.body))
    return found
