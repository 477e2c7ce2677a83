"""A party that ends a job with a lie about another: neither peers nor coordinator name an honest party without it."""

from __future__ import annotations

import random
from collections.abc import Collection
from typing import Any, Final

import pytest

from coordinator.jobs.failures import Failure, root_cause
from link.core import Receiver, Transport
from link.errors import BY_CODE, ComineError, ProtocolViolation, from_reporter, outward
from protos.v1.link_pb2 import Abort, Frame
from tests.coordinator.simulation.still_time import InlineExecutor, run_still
from tests.coordinator.simulation.whole_job import BETWEEN_TWO, DATA, STRATEGIES, VERIFIED, job, run_job

PARTIES: Final = tuple(DATA)
WAYS: Final = {"three compute": VERIFIED, "two compute": BETWEEN_TWO, "semi-honest": STRATEGIES["level-wise"]}
SENTENCES: Final = (
    "{0} has dealt a count that is above its number of rows; its node must be checked",
    "the shares of {0} are forged",
    "{0} and {1} contradict each other on opened bits; one of these two nodes deviates",
    "{0} cannot take part in this job with its data; the log of {0} has the reason",
    "{1} says: {0} has sent another share",
    "{0} waited for Opening of {1} until the job's deadline of 60 s had passed; {1} may have been kept waiting itself, "
    "so check all nodes of the job, or allow more time",
    "the job was cancelled at {0}",
    "somebody is at fault",
    "",
)


class LyingEnd:
    """One party's transport, which ends the job in place of a frame, for a reason that it makes up for each peer."""

    def __init__(self, inner: Transport, party: str, at: int, chance: random.Random) -> None:
        self._inner, self._party, self._left, self._chance = inner, party, at, chance
        self.lied = False

    def attach(self, receiver: Receiver) -> None:
        self._inner.attach(receiver)

    async def send(self, to: str, frame: Frame) -> None:
        if self.lied:
            return
        self._left -= 1
        if self._left >= 0:
            await self._inner.send(to, frame)
            return
        self.lied = True
        same, peers = lie(self._chance, self._party), [party for party in PARTIES if party != self._party]
        for peer in self._chance.sample(peers, self._chance.choice((1, 2, 2))):
            made_up = same if self._chance.random() < 0.5 else lie(self._chance, self._party)
            end = Frame(session=frame.session, sender=self._party, receiver=peer, lane="abort", last=True)
            end.type, end.body = Abort.DESCRIPTOR.full_name, Abort(**made_up).SerializeToString()
            await self._inner.send(peer, end)

    async def close(self, *, hurried: bool = False) -> None:
        await self._inner.close(hurried=hurried)


def lie(chance: random.Random, liar: str) -> dict[str, Any]:
    """Any code, accused and sentence, most often of a broken rule."""
    others = [party for party in PARTIES if party != liar]
    chance.shuffle(others)
    codes = ("E400", "E401", "E402", "E403", "E404") if chance.random() < 0.6 else (*sorted(BY_CODE), "E999")
    return {
        "code": chance.choice(codes),
        "message": chance.choice(SENTENCES).format(*others),
        "party": chance.choice((others[0], others[0], others[0], others[1], liar, "", "elsewhere")),
        "relayed": chance.random() < 0.4,
    }


def reported(error: ComineError, party: str) -> ComineError:
    """What a coordinator makes of the error with which a job has ended at a party."""
    public = outward(error, party)
    return from_reporter(public.code, public.message, public.blamed(party), party)


def assert_not_named_without(liar: str, error: ComineError) -> None:
    """No honest party is named alone, nor two of them."""
    honest: Collection[str] = {party for party in PARTIES if party != liar}
    named = {party for party in PARTIES if party in error.message} | ({error.party} & {*PARTIES})
    assert liar in named or not named, (error.code, error.party, error)
    if isinstance(error, ProtocolViolation):
        assert error.party not in honest, (error.code, error.party, error)


@pytest.mark.parametrize("way", WAYS)
def test_whatever_a_party_ends_a_job_with_no_honest_one_is_named_without_it(way: str) -> None:
    """By hand: `campaign(…)` with more seeds."""
    assert campaign(way, range(20)) > 10


def campaign(way: str, seeds: range) -> int:
    """In how many runs the party has lied."""
    return sum(one_run(way, seed) for seed in seeds)


def one_run(way: str, seed: int) -> bool:
    """One run in which a party lies to its peers and to the coordinator, if its end comes late enough."""
    chance = random.Random(seed)
    liar = chance.choice(PARTIES)
    at, lying = chance.randrange(chance.choice((4, 40))), list[LyingEnd]()

    def wrap(party: str, transport: Transport) -> Transport:
        if party != liar:
            return transport
        lying.append(LyingEnd(transport, liar, at, chance))
        return lying[0]

    ends = run_still(run_job(job(**WAYS[way]), DATA, InlineExecutor(), seed=seed, wrap=wrap))
    failures = []
    for party, end in ends.items():
        if party == liar or not isinstance(end, BaseException):
            continue
        assert isinstance(end, ComineError), (seed, end)
        assert_not_named_without(liar, end)
        failures.append(Failure(party, reported(end, party)))
    if lying[0].lied:
        assert failures
        made_up = lie(chance, liar)
        if chance.random() < 0.8:
            told = from_reporter(made_up["code"], made_up["message"], made_up["party"], liar)
            failures.insert(chance.randrange(len(failures) + 1), Failure(liar, told))
        verdict = root_cause(failures, PARTIES)
        assert isinstance(verdict, ComineError)
        assert_not_named_without(liar, verdict)
    return lying[0].lied
