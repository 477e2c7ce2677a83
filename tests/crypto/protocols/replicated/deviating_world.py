"""Runs a protocol in which some parties deviate, and says how it ends at every honest one."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from google.protobuf import symbol_database
from google.protobuf.message import Message

from crypto.primitives.randomness import Randomness
from link.core import SessionCore
from link.disclosure import Declared
from link.errors import ComineError
from link.pki.authority import Authority
from link.pki.identity import Identity
from link.session import Session
from link.transcripts.words import Evidence
from link.transports.memory import Hub
from protos.v1.link_pb2 import Frame
from tests.coordinator.simulation.still_time import InlineExecutor
from tests.world import Observer, Role, terms

Alter = Callable[[Frame], list[Frame]]


AUTHORITY = Authority.create()


@cache
def identity_of(name: str) -> Identity:
    """The certificate of a party in such runs."""
    return AUTHORITY.issue(name)


@dataclass(frozen=True)
class Ends:
    """How a run ended at the honest parties.

    Attributes:
        results: Of those that came to their end.
        errors: Of those that ended with one; others waited when the run was over.
        evidence: What each of them has against others.
        stopped: The deviating ones that ended with an error, as those may that are told what follows from a lie.
    """

    results: Mapping[str, Any]
    errors: Mapping[str, ComineError]
    evidence: Mapping[str, Sequence[Evidence]]
    stopped: Collection[str] = ()


class _Counting(Hub):
    carried = 0

    def carry(self, frm: str, to: str, frame: Frame) -> None:
        self.carried += 1
        super().carry(frm, to, frame)


def _deviate(core: SessionCore, alter: Alter) -> None:
    """Has a party send other frames than it would, and sign those."""
    transmit = core.transmit

    async def altered(to: str, lane: str, kind: type[Message], body: bytes, *, last: bool, round_: int) -> None:
        draft = Frame(sender=core.me, receiver=to, lane=lane, type=kind.DESCRIPTOR.full_name, body=body, last=last)
        for frame in alter(draft) if lane.startswith("/") else [draft]:
            await transmit(to, lane, kind, frame.body, last=frame.last, round_=round_)

    core.transmit = altered  # type: ignore[method-assign]


def run_deviating(
    parties: Sequence[str],
    role: Role[Any] | Mapping[str, Role[Any]],
    deviating: Collection[str],
    alter: Alter,
    *,
    declared: Iterable[Declared],
    seed: int = 0,
    observe: Observer = lambda frame: None,
) -> Ends:
    """One coroutine per party, some of which send other frames; ends when no honest party can go on.

    Args:
        parties: Names in the order of the job.
        role: As in `run_parties`.
        deviating: Who sends other frames.
        alter: Gives what is sent in place of a frame, of which bodies may differ and the ends of streams.
        declared: The labels that may be opened.
        seed: Repeats all draws.
        observe: Told of every frame before it is delivered.
    """
    agreed, source, lines = terms(parties, seed), Randomness.from_seed(seed), tuple(declared)
    executor = InlineExecutor()
    evidence: dict[str, list[Evidence]] = {}

    async def run(hub: Hub, name: str) -> Any:
        session = await Session.establish(
            agreed,
            name,
            hub.endpoint(name),
            random=source.derive(name),
            executor=executor,
            identity=identity_of(name),
            declared=lines,
            deadline_s=600,
        )
        evidence[name] = session.core.evidence
        if name in deviating:
            _deviate(session.core, alter)
        return await (role[name] if isinstance(role, Mapping) else role)(session)

    async def main() -> Ends:
        hub = _Counting(observe)
        tasks = {name: asyncio.create_task(run(hub, name)) for name in parties}
        idle = 0
        while idle < 50 and not all(task.done() for task in tasks.values()):
            before = hub.carried
            await asyncio.sleep(0)
            idle = idle + 1 if hub.carried == before else 0
        for task in tasks.values():
            task.cancel()
        ended = dict(zip(tasks, await asyncio.gather(*tasks.values(), return_exceptions=True), strict=True))
        honest = {name: end for name, end in ended.items() if name not in deviating}
        faults = [e for e in honest.values() if isinstance(e, Exception) and not isinstance(e, ComineError)]
        if faults:
            raise faults[0]
        return Ends(
            {name: end for name, end in honest.items() if not isinstance(end, BaseException)},
            {name: end for name, end in honest.items() if isinstance(end, ComineError)},
            {name: evidence[name] for name in honest},
            [name for name in deviating if isinstance(ended[name], ComineError)],
        )

    return asyncio.run(main())


class OneAltered:
    """Alters one of the frames that deviating parties send, in a way that a seed picks.

    Attributes:
        sent: How many frames they have sent.
        receiver: Of the altered one.
    """

    def __init__(self, place: int, seed: int) -> None:
        self._place, self._random = place, random.Random(seed)
        self._bodies: dict[tuple[str, int], list[bytes]] = {}
        self.sent, self.receiver = 0, ""

    def __call__(self, frame: Frame) -> list[Frame]:
        self.sent += 1
        before = self._bodies.setdefault((frame.type, len(frame.body)), [])
        before.append(frame.body)
        if self.sent - 1 != self._place:
            return [frame]
        changed = Frame()
        changed.CopyFrom(frame)
        changed.body, self.receiver = self._changed(frame, before[:-1]), frame.receiver
        return [changed]

    def _changed(self, frame: Frame, before: list[bytes]) -> bytes:
        message: Message = symbol_database.Default().GetSymbol(frame.type)()
        message.ParseFromString(frame.body)
        fields = [(field.name, value) for field, value in message.ListFields() if isinstance(value, bytes) and value]
        if not fields:  # a message about others' words
            return frame.body[:-1]
        field, value = fields[0]
        way = self._random.choice(("bit", "bit", "byte", "all", "replay", "order", "short"))
        octets = bytearray(value)
        if way == "replay" and before:
            return self._random.choice(before)
        if way == "order":
            octets.reverse()
        elif way == "all":
            octets = bytearray(self._random.randbytes(len(octets)))
        elif way == "short":
            octets = octets[:-1]
        else:
            octets[self._random.randrange(len(octets))] ^= 1 << self._random.randrange(8) if way == "bit" else 0xFF
        setattr(message, field, bytes(octets))
        return message.SerializeToString(deterministic=True)
