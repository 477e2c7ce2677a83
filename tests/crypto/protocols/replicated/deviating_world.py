"""Runs a protocol in which some parties deviate, and says how it ends at every honest one."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf import symbol_database
from google.protobuf.message import Message

from crypto.primitives.randomness import Randomness
from link.disclosure import Declared
from link.errors import ComineError
from link.session import Session
from link.transports.memory import Hub
from protos.v1.link_pb2 import Frame
from tests.coordinator.simulation.still_time import InlineExecutor
from tests.world import Role, terms

Alter = Callable[[Frame], list[Frame]]


@dataclass(frozen=True)
class Ends:
    """How a run ended at the honest parties.

    Attributes:
        results: Of those that came to their end.
        errors: Of those that ended with one; others waited when the run was over.
    """

    results: Mapping[str, Any]
    errors: Mapping[str, ComineError]


class _Altering(Hub):
    def __init__(self, deviating: Collection[str], alter: Alter) -> None:
        super().__init__()
        self._deviating, self._alter, self.carried = deviating, alter, 0

    def carry(self, frm: str, to: str, frame: Frame) -> None:
        self.carried += 1
        altered = self._alter(frame) if frm in self._deviating and frame.lane.startswith("/") else [frame]
        for each in altered:
            super().carry(frm, to, each)


def run_deviating(
    parties: Sequence[str],
    role: Role[Any] | Mapping[str, Role[Any]],
    deviating: Collection[str],
    alter: Alter,
    *,
    declared: Iterable[Declared],
    seed: int = 0,
) -> Ends:
    """One coroutine per party, where frames of some are altered on their way; ends when no honest party can go on.

    Args:
        parties: Names in the order of the job.
        role: As in `run_parties`.
        deviating: Whose frames are altered.
        alter: Gives what is delivered in place of a frame.
        declared: The labels that may be opened.
        seed: Repeats all draws.
    """
    agreed, source, lines = terms(parties, seed), Randomness.from_seed(seed), tuple(declared)
    executor = InlineExecutor()

    async def run(hub: Hub, name: str) -> Any:
        session = await Session.establish(
            agreed,
            name,
            hub.endpoint(name),
            random=source.derive(name),
            executor=executor,
            declared=lines,
            deadline_s=600,
        )
        return await (role[name] if isinstance(role, Mapping) else role)(session)

    async def main() -> Ends:
        hub = _Altering(deviating, alter)
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
        )

    return asyncio.run(main())


class OneAltered:
    """Alters one of the frames that deviating parties send, in a way that a seed picks.

    Attributes:
        sent: How many frames they have sent.
    """

    def __init__(self, place: int, seed: int) -> None:
        self._place, self._random = place, random.Random(seed)
        self._bodies: dict[tuple[str, int], list[bytes]] = {}
        self.sent = 0

    def __call__(self, frame: Frame) -> list[Frame]:
        self.sent += 1
        before = self._bodies.setdefault((frame.type, len(frame.body)), [])
        before.append(frame.body)
        if self.sent - 1 != self._place:
            return [frame]
        changed = Frame()
        changed.CopyFrom(frame)
        changed.body = self._changed(frame, before[:-1])
        return [changed]

    def _changed(self, frame: Frame, before: list[bytes]) -> bytes:
        message: Message = symbol_database.Default().GetSymbol(frame.type)()
        message.ParseFromString(frame.body)
        field, value = next((f.name, v) for f, v in message.ListFields() if isinstance(v, bytes) and v)
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
