"""Every transport meets the checks that are for all of them, and bounds lanes."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from crypto.primitives.randomness import Randomness
from link import core
from link.pki.authority import Authority
from link.session import Session
from link.transcripts import transcript
from link.transcripts.receipts import Receipts
from link.transports import conformance
from link.transports.conformance import CHECKS, Check, Kit
from link.transports.conformance.kit import AB, ABC, each
from link.transports.conformance.messages import Note
from protos.v1.link_pb2 import Receipt
from tests.errors import fails
from tests.link.kits import BENIGN, KITS, carriers, run, sessions
from tests.world import run_parties

pytestmark = [pytest.mark.parametrize("kit", KITS), pytest.mark.turn(2)]


@pytest.mark.parametrize("check", CHECKS)
def test_it_gives_a_session_what_it_needs(kit: str, check: Check) -> None:
    conformance.run(check, Kit(lambda parties, job_id: carriers(kit, parties, job_id), Randomness.from_seed(0)))


async def _many_lanes(s: Session, lanes: int, width: int) -> None:
    """A message each way on so many lanes, `width` of them at a time."""
    (peer,) = s.others

    async def one_after_another(first: int) -> None:
        for number in range(first, lanes, width):
            lane = s.lane(f"part/batch-{number}")
            await lane.send(peer, Note(number=number))
            assert (await lane.recv(peer, Note)).number == number

    await asyncio.gather(*(one_after_another(first) for first in range(width)))


def test_a_session_uses_more_lanes_than_may_be_open_at_once(kit, monkeypatch):
    monkeypatch.setattr(core, "MAX_LANES", 16)

    async def main():
        async with sessions(kit, AB) as world:
            await each(world, lambda s: _many_lanes(s, 100, 8))

    run(main())


@pytest.mark.slow
def test_a_session_uses_thousands_of_lanes(kit, monkeypatch):
    monkeypatch.setitem(KITS, "faulty-grpc", ("grpc", replace(BENIGN, cut=0.0005)))  # each cut takes half a second
    monkeypatch.setattr(core, "MAX_LANES", core.MAX_LANES // 4)
    monkeypatch.setattr(transcript, "MAX_HEADS_BYTES", transcript.MAX_HEADS_BYTES // 16)
    authority, number = Authority.create(), core.MAX_LANES + 1000

    async def role(s: Session) -> list[tuple[str, int]]:
        await _many_lanes(s, number, 16)
        receipts = Receipts(s, authority.issue(s.me))
        await receipts.exchange()
        (account,) = receipts.accounts().values()
        return [(head.lane, head.frames) for head in Receipt.FromString(account.mine.receipt).sent]

    async def main():
        async with sessions(kit, AB, deadline_s=600) as world:
            for heads in (await each(world, role)).values():
                assert heads == [("/part/*", number), ("hello", 1)]

    asyncio.run(main())


def test_lanes_that_nobody_waits_for_end_the_session(kit, monkeypatch):
    monkeypatch.setattr(core, "MAX_LANES", 16)

    async def main():
        async with sessions(kit, AB) as world:
            a, b = world["a"], world["b"]
            waiting = asyncio.create_task(a.lane("awaited").recv("b", Note))
            for number in range(17):
                await b.lane(str(number)).send("a", Note())
            with fails("E403", party="b") as ended:
                await waiting
            assert ended.value.party == "b"

    run(main())


def test_the_helper_runs_parties_and_raises_the_root_error(kit):
    transport, _ = KITS[kit]

    async def fine(s: Session) -> str:
        await s.broadcast(Note(number=1))
        await s.gather(Note)
        return s.me

    async def broken(s: Session) -> str:
        raise ArithmeticError("this one")

    assert run_parties(ABC, fine, transport=transport) == {p: p for p in ABC}
    with pytest.raises(ArithmeticError, match="this one"):
        run_parties(ABC, {"a": fine, "b": broken, "c": fine}, transport=transport)
