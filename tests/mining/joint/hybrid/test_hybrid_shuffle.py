"""Shuffled reports: what the analyst and shufflers see, what is dropped and counted, and who is named when it fails."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives.sealed import OVERHEAD, Rows, new_private_key, open_rows
from link.encoding.chunks import CHUNK_BYTES
from link.session import Session
from mining.joint.hybrid import pacing, shuffle
from mining.joint.hybrid.disclosure import openings
from mining.joint.hybrid.shuffle import (
    Phase,
    Route,
    agree_on_route,
    collect_shuffled,
    send_reports,
    shuffle_first,
    shuffle_next,
)
from mining.joint.hybrid.spool_limits import DEFAULT_SPOOL_LIMITS, SpoolLimits
from protos.v1.hybrid_pb2 import ReportKey, SealedRows, ShuffledChain, ShuffledCounts
from protos.v1.link_pb2 import Frame
from tests.errors import fails
from tests.examples import examples
from tests.mining.joint.hybrid.hybrid_world import PARTIES, baskets, run, shuffled
from tests.world import run_parties

pytestmark = pytest.mark.turn(6)

NAMES = ("north", "south", "east", "west")  # the first is the analyst
SIZE = 3
Part = Callable[[Session, Route, Phase, Rows], object]
Got = tuple[Rows, int]


def rows(reports: Sequence[int]) -> Rows:
    """Reports of three bytes each."""
    return np.frombuffer(b"".join(each.to_bytes(SIZE, "big") for each in reports), np.uint8).reshape(-1, SIZE)


def values(reports: Rows) -> list[int]:
    return [int.from_bytes(row.tobytes(), "big") for row in reports]


def through(
    reports: Mapping[str, Sequence[int]],
    shufflers: Sequence[str] = ("west",),
    *,
    n: int = 1,
    colluding: int = 0,
    parts: Mapping[str, Part] | None = None,
    announced: Mapping[str, int] | None = None,
    seed: int = 0,
    observe: Callable[[Frame], None] | None = None,
    ahead_bytes: Mapping[str, int] | None = None,
    limits: SpoolLimits = DEFAULT_SPOOL_LIMITS,
) -> Got:
    """What the analyst gets of the reports of all others; `parts` are what deviating parties do in place of theirs."""
    task = shuffled(shufflers, colluding=colluding)
    groups = {party: len(reports.get(party, ())) for party in NAMES} | dict(announced or {})
    phase = Phase(0, groups, SIZE, n)

    async def role(session: Session) -> Got | None:
        route = await agree_on_route(session.lane("route"), task, limits)
        lane, own = session.lane("phase"), rows(reports.get(session.me, ()))
        if parts is not None and session.me in parts:
            await parts[session.me](lane, route, phase, own)  # type: ignore[misc]
        elif session.me == task.analyst:
            came: list[Rows] = []

            async def take(reports: Rows) -> None:
                came.append(reports)

            lost = await collect_shuffled(lane, route, phase, take)
            return np.concatenate([rows([]), *came]), lost
        elif session.me == shufflers[0]:
            await shuffle_first(lane, route, phase, own)
        else:
            await send_reports(lane, route, phase, own)
            if session.me in shufflers:
                await shuffle_next(lane, route, phase)
        return None

    declared = openings(task, NAMES)
    got = run_parties(NAMES, role, declared=declared, seed=seed, observe=observe, ahead_bytes=ahead_bytes)["north"]
    assert got is not None
    return got


parties = st.fixed_dictionaries({name: st.lists(st.integers(0, 40), max_size=12) for name in NAMES[1:]})
routes = st.permutations(NAMES[1:]).flatmap(lambda names: st.integers(1, 3).map(lambda hops: tuple(names[:hops])))


@examples(4, 25)
@given(parties, routes)
def test_the_analyst_gets_all_reports_and_nothing_is_lost(
    reports: dict[str, list[int]], route: tuple[str, ...]
) -> None:
    got, lost = through(reports, route)
    assert Counter(values(got)) == Counter(each for own in reports.values() for each in own)
    assert lost == 0


def test_reports_are_read_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first shuffler has room for five of a hundred messages of each party, of which two windows of two may wait,
    and seals its own last of all."""
    monkeypatch.setattr(shuffle, "CHUNK", 1)
    monkeypatch.setattr(pacing, "window_of", lambda size: 2 if size > SIZE + OVERHEAD else CHUNK_BYTES)
    seal, sent = shuffle.sealed_rows, asyncio.Event()
    waited = {"south", "east"}

    async def sealed(session: Session, *arguments: Any) -> Rows:
        if session.me == "west":
            await sent.wait()
        return await seal(session, *arguments)

    async def sends(session: Session, route: Route, phase: Phase, own: Rows) -> None:
        await send_reports(session, route, phase, own)
        waited.discard(session.me)
        if not waited:
            sent.set()
        if session.me == "east":
            await shuffle_next(session, route, phase)

    monkeypatch.setattr(shuffle, "sealed_rows", sealed)
    reports = {"south": range(100), "east": range(100, 200), "west": range(200, 203)}
    parts, room = {"south": sends, "east": sends}, {"west": 4 * 1024}
    got, lost = through(reports, ("west", "east"), parts=parts, ahead_bytes=room)
    assert sorted(values(got)) == list(range(203))
    assert lost == 0


# -- leakage ----------------------------------------------------------------------------------------------------------
def test_the_analyst_sees_the_shuffled_multiset_and_no_more() -> None:
    """Who has which report makes no difference to the analyst: the frames that it gets have the same kinds, senders and
    sizes, and what comes out is the same multiset, in an order that is drawn anew. Of all 1,000 draws each report is in
    the first place about equally often: within 5 deviations, which fails with a probability below 10⁻⁵."""
    one = {"south": [1, 2], "east": [3], "west": [4, 5]}
    other = {"south": [5, 4], "east": [1], "west": [3, 2]}
    views = []
    for reports in (one, other):
        frames: list[tuple[str, str, int]] = []

        def observe(frame: Frame, frames: list[tuple[str, str, int]] = frames) -> None:
            if frame.receiver == "north" and frame.lane.startswith("/phase"):
                frames.append((frame.sender, frame.type, len(frame.body)))

        got, _ = through(reports, observe=observe)
        views.append((frames, sorted(values(got))))
    assert views[0] == views[1]
    assert {sender for sender, _, _ in views[0][0]} == {"west"}


def test_the_order_is_uniform() -> None:
    """Each of five reports comes first in a fifth of 150 draws, within 5 deviations: fails below 10⁻⁵."""
    reports = {"south": [1, 2], "east": [3], "west": [4, 5]}
    first = Counter(values(through(reports, seed=seed)[0])[0] for seed in range(150))
    assert all(abs(first[each] - 30) < 5 * (150 * 0.2 * 0.8) ** 0.5 for each in range(1, 6))


def test_no_report_reaches_the_analyst_but_by_the_last_shuffler() -> None:
    """A whole search: what parties that are not the last shuffler send to the analyst does not grow with records."""
    sizes: dict[int, dict[tuple[str, str], int]] = {}
    for n in (60, 600):
        seen: Counter[tuple[str, str]] = Counter()

        def observe(frame: Frame, seen: Counter[tuple[str, str]] = seen) -> None:
            if frame.receiver == "north" and frame.sender != "east":
                seen[frame.sender, frame.lane] += len(frame.body)

        run({party: baskets(n, place) for place, party in enumerate(PARTIES)}, shuffled(), observe=observe)
        sizes[n] = {where: size for where, size in seen.items() if "hello" not in where[1]}
    assert set(sizes[60]) == set(sizes[600])
    assert not [where for where in sizes[600] if "phase" in where[1]]
    assert all(sizes[600][where] <= sizes[60][where] + 16 for where in sizes[60])


def test_a_shuffler_cannot_open_what_it_gets() -> None:
    """All sealed reports have one size, equal ones look different, and no key but the analyst's fits."""
    sealed: list[bytes] = []

    def observe(frame: Frame) -> None:
        if frame.receiver == "west" and frame.type == SealedRows.DESCRIPTOR.full_name:
            sealed.append(SealedRows.FromString(frame.body).data)

    through({"south": [7] * 40, "east": [7] * 40}, observe=observe)
    assert [len(each) for each in sealed] == [40 * (SIZE + OVERHEAD)] * 2
    came = np.frombuffer(b"".join(sealed), np.uint8).reshape(80, -1)
    assert len({row.tobytes() for row in came}) == 80
    for column in came.T:  # no byte is the same in all of them
        assert len(set(column.tolist())) > 1
    from crypto.primitives.randomness import Randomness

    _, readable = open_rows(came, new_private_key(Randomness.from_seed(1)), b"")
    assert not readable.any()


def test_layers_are_for_one_session_phase_and_hop() -> None:
    """Two runs give other sealed bytes under other keys, though every draw of ours is repeated."""
    keys: list[set[bytes]] = []
    for seed in (1, 2):
        seen: set[bytes] = set()

        def observe(frame: Frame, seen: set[bytes] = seen) -> None:
            if frame.type == ReportKey.DESCRIPTOR.full_name:
                seen.add(ReportKey.FromString(frame.body).public_key)

        through({"south": [1]}, ("west", "east"), seed=seed, observe=observe)
        keys.append(seen)
    assert len(keys[0]) == len(keys[1]) == 2
    assert not keys[0] & keys[1]


# -- deviating parties ------------------------------------------------------------------------------------------------
def sends(change: Callable[[Rows], bytes]) -> Part:
    """Sends something else in the place of its sealed reports."""

    async def part(session: Session, route: Route, phase: Phase, own: Rows) -> None:
        sealed = await shuffle.sealed_rows(session, route, phase, own)
        await session.send(route.task.shufflers[0], SealedRows(data=change(sealed)))

    return part


SENT = {
    "repeated": lambda sealed: np.concatenate([sealed[:-1], sealed[:1]]).tobytes(),
    "too many": lambda sealed: np.concatenate([sealed, sealed[::-1]]).tobytes(),
    "cut": lambda sealed: sealed.tobytes()[:-1],
    "broken": lambda sealed: bytes([1]) * 5 + sealed.tobytes()[5:],
    "foreign": lambda sealed: np.concatenate([sealed[:-1], np.full_like(sealed[:1], 9)]).tobytes(),
}


@pytest.mark.parametrize(
    ("sent", "lost"), [("repeated", 1), ("too many", 0), ("cut", 1), ("broken", 1), ("foreign", 1)]
)
@pytest.mark.parametrize("route", [("west",), ("west", "east")])
def test_what_is_wrong_is_dropped_and_counted(sent: str, lost: int, route: tuple[str, ...]) -> None:
    reports = {"south": [1, 2, 3, 4], "east": [5, 6], "west": [7]}
    chains: list[ShuffledChain] = []

    def observe(frame: Frame) -> None:
        if frame.type == ShuffledChain.DESCRIPTOR.full_name:
            chains.append(ShuffledChain.FromString(frame.body))

    got, missing = through(reports, route, parts={"south": sends(SENT[sent])}, observe=observe)
    assert missing == lost
    assert len(got) == 7 - lost
    assert Counter(values(got)) <= Counter(range(1, 8))
    dropped = Counter(
        {reason: getattr(hop, reason) for hop in chains[-1].hops for reason in shuffle.DROPPED if getattr(hop, reason)}
    )
    unseen = len(route) == 1 and sent in ("broken", "foreign")  # only the analyst can tell, with one layer
    expected = {
        "repeated": {"replayed": 1},
        "too many": {"over_share": 4},
        "cut": {"wrong_size": 1},
        "broken": {} if unseen else {"unreadable": 1},
        "foreign": {} if unseen else {"unreadable": 1},
    }
    assert dropped == expected[sent]


def test_too_few_to_hide_among_ends_the_phase_and_names_who_is_short() -> None:
    """Of 4, 4 and 4 reports those of the party with most count for nothing: 8, and after three repeated ones 5."""
    reports = {"south": [1, 2, 3, 4], "east": [5, 6, 7, 8], "west": [9, 10, 11, 12]}
    repeated = sends(lambda sealed: np.concatenate([sealed[:1]] * 4).tobytes())
    assert len(through(reports, n=5, parts={"south": repeated})[0]) == 9
    with fails("E400") as error:
        through(reports, n=6, parts={"south": repeated})
    assert error.value.party == "south"


def test_a_later_shuffler_sees_that_too_few_are_left() -> None:
    """Of 4, 4 and 4 reports three are broken inside: who sent them it cannot see, so 9 − 4 are sure to hide."""
    reports = {"south": [1, 2, 3, 4], "east": [5, 6, 7, 8], "west": [9, 10, 11, 12]}
    broken = sends(lambda sealed: np.concatenate([sealed[:3] ^ 1, sealed[3:]]).tobytes())
    assert len(through(reports, ("west", "east"), n=5, parts={"south": broken})[0]) == 9
    with fails("E400"):
        through(reports, ("west", "east"), n=6, parts={"south": broken})


def hands_on(change: Callable[[ShuffledCounts], None], less: int = 0) -> Part:
    """A first shuffler that lies in its counts."""

    async def part(session: Session, route: Route, phase: Phase, own: Rows) -> None:
        genuine = shuffle.hand_on

        async def lying(session, route, hop, spool, found, chain, counts):  # type: ignore[no-untyped-def]
            kept = np.concatenate([*spool.in_secret_order(session.randomness("order"))])[less:]
            counts.forwarded = len(kept)
            change(counts)
            told = [*chain, counts]
            to = route.task.analyst if len(route.task.shufflers) == 1 else route.task.shufflers[1]
            await session.send(to, ShuffledChain(hops=told))
            if to == route.task.analyst:
                await session.open(shuffle.LABEL, kept, (to,))
            else:
                await session.send(to, SealedRows(data=kept.tobytes()))

        try:
            shuffle.hand_on = lying
            await shuffle_first(session, route, phase, own)
        finally:
            shuffle.hand_on = genuine

    return part


def _more(counts: ShuffledCounts) -> None:
    counts.forwarded += 1
    counts.received += 1


def _as_if_all(counts: ShuffledCounts) -> None:
    counts.forwarded += 1


@pytest.mark.parametrize(
    ("change", "less", "code"),
    [(_more, 0, "E400"), (_as_if_all, 1, "E402"), (lambda counts: None, 1, "E400")],
    ids=["more", "as if all", "fewer"],
)
@pytest.mark.parametrize("route", [("west",), ("west", "east")])
def test_a_shuffler_that_lies_is_named(
    change: Callable[[ShuffledCounts], None], less: int, code: str, route: tuple[str, ...]
) -> None:
    reports = {"south": [1, 2], "east": [5, 6], "west": [7]}
    with fails(code) as error:
        through(reports, route, parts={"west": hands_on(change, less)})
    assert error.value.party == "west"


def test_keys_of_another_length_are_refused() -> None:
    async def part(session: Session) -> Route | None:
        lane = session.lane("route")
        if session.me == "north":
            await lane.broadcast(ReportKey(public_key=bytes(31)))
            return None
        return await agree_on_route(lane, shuffled())

    with fails("E402"):
        run_parties(PARTIES, part)


def test_reports_of_many_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffle, "CHUNK", 4)
    reports = {"south": list(range(9)), "east": list(range(20, 28)), "west": list(range(30, 31))}
    for route in (("west",), ("south", "west", "east")):
        got, lost = through(reports, route)
        assert (sorted(values(got)), lost) == (sorted(chain.from_iterable(reports.values())), 0)


def test_the_first_shuffler_takes_no_layer_off() -> None:
    """One layer a shuffler: the last of k sees one, the analyst takes the last off."""
    task = shuffled(("west", "east", "south"))
    route = Route(task, {}, None)
    assert [route.size(10, hop) - 10 for hop in range(4)] == [3 * OVERHEAD, 3 * OVERHEAD, 2 * OVERHEAD, OVERHEAD]
