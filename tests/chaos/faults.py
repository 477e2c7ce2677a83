"""What goes wrong in a simulation: drawn by its seed, and done to its world."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from link.core import Receiver, Transport
from link.transports.faulty import FaultyTransport, Schedule
from protos.v1.link_pb2 import Frame
from tests.chaos.demands import clear, knows_less, names, require
from tests.chaos.disk import DISKS
from tests.chaos.kinds import PARTIES
from tests.chaos.network import RELAY
from tests.chaos.world import COORDINATOR, World

MOST: Final = 4
KINDS: Final = {
    "kill": "the process is killed, and started again",
    "power": "the machine loses power, perhaps in the midst of a write, and is started again",
    "write": "the process dies at a write to the disk, and is started again",
    "backup": "the process is killed, and started again over an older copy of its files",
    "rot": "the process is killed, and started again over its files, in one of which a bit has flipped",
    "hang": "the process stands still, and goes on",
    "cut": "nothing gets through between two",
    "break": "all connections over the machine break",
    "flip": "a bit of a frame is flipped at its receiver, behind TLS",
    "slow": "all messages over the machine take longer",
    "disorder": "frames of the party come late, twice and in another order",
    "full": "the disk is full",
    "clock": "the clock jumps",
    "relay": "the relay dies, and is started again",
}
_OLDER: Final = ("node.db", "audit.log", "")
_AT_NODES: Final = ("backup", "flip", "disorder", "full")


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        kind: Of `KINDS`.
        place: The machine.
        at_s: Seconds after the job was begun.
        lasts_s: For which it lasts, where it ends by itself.
        size: What else the kind needs: which write, which way, how far.
        other: The other machine, of two.
    """

    kind: str
    place: str
    at_s: float
    lasts_s: float
    size: float
    other: str = ""

    def __str__(self) -> str:
        between = f" and {self.other}" if self.other else ""
        return (
            f"{self.kind} at {self.place}{between}, {self.at_s:.3f} s after the start, for {self.lasts_s:.3f} s "
            f"({self.size:.3f})"
        )


def draw(seed: int, usual_s: float, *, relayed: Sequence[str]) -> tuple[Fault, ...]:
    """The faults of a seed.

    Args:
        seed: The seed.
        usual_s: Seconds for which the job runs where nothing goes wrong.
        relayed: Parties behind the relay.
    """
    chance = random.Random(f"faults {seed}")
    return tuple(_one(chance, usual_s, relayed) for _ in range(chance.choice((0, 1, 1, 1, 2, 2, 3, 4))))


def _one(chance: random.Random, usual_s: float, relayed: Sequence[str]) -> Fault:
    kind = chance.choice([kind for kind in KINDS if kind != "rot" and (kind != "relay" or relayed)])
    names = PARTIES if kind in _AT_NODES or chance.random() < 0.75 else (COORDINATOR,)
    place = RELAY if kind == "relay" else chance.choice(names)
    other = chance.choice([name for name in (*PARTIES, COORDINATOR) if name != place]) if kind == "cut" else ""
    at_s = chance.uniform(0, 1.2 * usual_s)
    lasts_s = 10 ** chance.uniform(-1.5, 1.6)
    size = chance.random()
    if kind == "kill" and place in PARTIES and size < 0.6:
        kind = "rot"  # drawn so that it changes the meaning of no other seed
    return Fault(kind, place, at_s, lasts_s, size, other)


async def happen(fault: Fault, world: World) -> None:
    """Lets a fault happen, and what is to be done about it by those who run the machine."""
    await asyncio.sleep(fault.at_s)
    world.say(str(fault))
    match fault.kind:
        case "kill" | "power":
            await _die(fault, world, power=fault.kind == "power")
        case "write":
            await _die_at_write(fault, world)
        case "backup":
            await _restore(fault, world)
        case "rot":
            await _rot(fault, world)
        case "hang":
            if world.runs(fault.place):
                world.stop(fault.place)
                await asyncio.sleep(fault.lasts_s)
                world.go_on(fault.place)
        case "cut":
            world.network.block(fault.place, fault.other)
            await asyncio.sleep(fault.lasts_s)
            world.network.unblock(fault.place, fault.other)
        case "break":
            world.network.break_all(fault.place)
        case "slow":
            world.network.slow_s[fault.place] = 2 * fault.size
            await asyncio.sleep(fault.lasts_s)
            world.network.slow_s.pop(fault.place, None)
        case "full":
            DISKS[fault.place].full = True
            await asyncio.sleep(fault.lasts_s)
            DISKS[fault.place].full = False
        case "clock":
            far = 10 ** (1 + 8 * abs(fault.size - 0.5) * 2)
            world.machines[fault.place].ahead_s += far if fault.size > 0.5 else -far
        case "relay":
            world.network.relay_up = False
            world.network.break_all(RELAY)
            await asyncio.sleep(fault.lasts_s)
            world.network.relay_up = True
        case "flip" | "disorder":
            pass  # see `between`


async def _die(fault: Fault, world: World, *, power: bool) -> None:
    if world.runs(fault.place):
        world.crash(fault.place, power=power)
        await asyncio.sleep(fault.lasts_s)
        await bring_up(fault.place, world)


async def _die_at_write(fault: Fault, world: World) -> None:
    disk, died = DISKS[fault.place], asyncio.Event()

    def dies() -> None:
        if world.runs(fault.place):
            world.crash(fault.place, power=fault.size < 0.7)
            died.set()

    disk.dies, disk.dies_at = dies, disk.writes + 1 + int(20 * fault.size)
    await died.wait()
    await asyncio.sleep(fault.lasts_s)
    await bring_up(fault.place, world)


async def _restore(fault: Fault, world: World) -> None:
    """Files of before the fault are brought back some moments later."""
    copy = world.folder / f"{fault.place}.backup{fault.at_s}"
    DISKS[fault.place].copy(copy)
    await asyncio.sleep(fault.size / 2)
    if not world.runs(fault.place):
        return
    world.crash(fault.place)
    DISKS[fault.place].find()
    state, what = world.folder / fault.place, _OLDER[int(1000 * fault.size) % 3]
    right = _kept_right(fault, world)
    if what:
        for path in state.glob(f"{what}*"):
            path.unlink()
        for path in copy.glob(f"{what}*"):
            shutil.copy(path, state)
    else:
        shutil.rmtree(state)
        shutil.copytree(copy, state)
    world.say(f"{fault.place} has an older {what or 'state folder'}")
    if what and knows_less(state, right, what):
        await _found_out(fault, world, what)
    else:
        await _started(fault, world, what)


async def _rot(fault: Fault, world: World) -> None:
    if not world.runs(fault.place):
        return
    world.crash(fault.place)
    DISKS[fault.place].find()
    _kept_right(fault, world)
    what = DISKS[fault.place].rot()
    world.say(f"a bit of {what} of {fault.place} has flipped")
    await _started(fault, world, what)


def _kept_right(fault: Fault, world: World) -> Path:
    """A copy of the files of a machine that is down, which are as they must be."""
    right = world.folder / f"{fault.place}.right{world.loop.now}"
    shutil.copytree(world.folder / fault.place, right)
    return right


async def _started(fault: Fault, world: World, what: str) -> bool:
    """A node starts over files that are not as it has left them, or gets them back; whether it did the former."""
    world.damaged[fault.place] = what
    await asyncio.sleep(fault.lasts_s)
    if world.runs(fault.place):
        return True
    problem = await world.start(fault.place)
    if problem is None or world.runs(fault.place):
        return problem is None
    if world.machines[fault.place].ahead_s or DISKS[fault.place].full:  # which may be found before the file
        clear(problem)
    else:
        names(problem, what)
    bring_back(world, fault.place)
    return False


async def _found_out(fault: Fault, world: World, what: str) -> None:
    """Where one of two files that belong together is older, the node gives it what it lacks, or does not start."""
    before = len(world.logs[fault.place].getvalue())
    if await _started(fault, world, what):
        said = world.logs[fault.place].getvalue()[before:]
        require("history restored" in said, f"{fault.place} does not notice that its {what} is older than the rest")


def bring_back(world: World, party: str) -> None:
    """Gives a node that is down the files that it had before the first fault that touched them.

    Where it has run over others since, these are older than what it did then, which it cannot know.
    """
    (right, *_) = sorted(world.folder.glob(f"{party}.right*"), key=lambda path: float(path.name.partition("right")[2]))
    shutil.rmtree(world.folder / party)
    shutil.copytree(right, world.folder / party)
    if party in world.ran_on:
        world.damaged[party] = ""
    else:
        world.damaged.pop(party, None)
    world.say(f"{party} has its files again")


async def bring_up(place: str, world: World) -> object:
    """Starts what has died; the coordinator is taken up by who drives its jobs."""
    if place == COORDINATOR or world.runs(place):
        return None
    return await world.start(place)


def cure(world: World) -> None:
    """Takes back all faults that last."""
    world.network.free()
    for name, machine in world.machines.items():
        machine.ahead_s = 0.0
        DISKS[name].full = False
        DISKS[name].dies_at = None
        if world.runs(name):
            world.go_on(name)
    world.say("all is well again")


# -- between a node's jobs and the wire --------------------------------------------------------------------------------
def between(faults: Sequence[Fault], world: World) -> None:
    """Puts the faults that hit frames between the nodes' jobs and their streams, from now on."""

    def put(party: str, inner: Transport) -> Transport:
        if not world.faults_last:
            return inner
        for fault in faults:
            if fault.place == party and fault.kind == "disorder":
                often = 0.5 * fault.size
                schedule = Schedule(
                    seed=world.seed, delay=0.1, delay_s=0.01 + 0.2 * fault.size, duplicate=often, reorder=often, cut=0.1
                )
                inner = FaultyTransport(inner, schedule)
            elif fault.place == party and fault.kind == "flip":
                inner = _Flipping(inner, fault, world)
        return inner

    world.between = put


class _Flipping:
    """A transport that flips a bit of one inbound frame."""

    def __init__(self, inner: Transport, fault: Fault, world: World) -> None:
        self._inner, self._fault, self._world = inner, fault, world
        self._left = int(40 * fault.size)

    def attach(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._inner.attach(self)

    def deliver(self, peer: str, frame: Frame) -> None:
        self._left -= 1
        if self._left == 0 and frame.body:
            chance = random.Random(f"flip {self._world.seed} {self._fault.at_s}")
            body = bytearray(frame.body)
            place = chance.randrange(len(body))
            body[place] ^= 1 << chance.randrange(8)
            frame.body = bytes(body)
            self._world.say(f"a bit of a frame from {peer} on {frame.lane} is flipped at {self._fault.place}")
        self._receiver.deliver(peer, frame)

    def fail(self, error: Any) -> None:
        self._receiver.fail(error)

    async def send(self, to: str, frame: Frame) -> None:
        await self._inner.send(to, frame)

    async def close(self, *, hurried: bool = False) -> None:
        await self._inner.close(hurried=hurried)
