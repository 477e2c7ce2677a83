"""Faults on purpose: any transport, made late, doubled, disordered, broken or dead by a schedule that can be replayed.

Simulations and tests run jobs under such schedules: whatever happens, a job must end with the right result or with a
clear error. `EmulatedLink` makes a fast transport as slow as a real network, for benchmarks.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections import defaultdict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar, runtime_checkable

from link.core import Receiver, Transport
from protos.v1.link_pb2 import Frame

T = TypeVar("T")

BUFFER_S: Final = 0.05  # what an emulated uplink holds before senders wait


class Crashed(BaseException):
    """Raised out of `send` where a schedule lets a party die; not an Exception, so that nothing tidies up after it."""


@runtime_checkable
class Breakable(Protocol):
    """A transport whose streams can break."""

    def cut(self, peer: str) -> None:
        """Breaks the live stream with `peer`; the transport renews it."""


@runtime_checkable
class Mortal(Protocol):
    """A transport that can die."""

    async def crash(self) -> None:
        """Ends everything without a word."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Which faults a party's outbound frames meet. Equal schedules treat the k-th frame to a peer equally.

    Attributes:
        seed: Decides, with the peer's name and the frame's number, which frames are hit.
        drop: Probability that a frame is lost for good; the job must then end by its deadline.
        delay: Probability that a frame, and all behind it, waits for `delay_s`.
        delay_s: Seconds of a delay.
        duplicate: Probability that a frame is delivered twice.
        reorder: Probability that a frame is overtaken by the next one, if that comes within `delay_s`.
        cut: Probability that the stream breaks before the frame; a transport without streams holds its frames instead.
        cut_s: Seconds for which such a transport holds them.
        crash_at: The party dies instead of sending its frame of this number, counted over all peers from 0.
        crash_lane: Counts, for `crash_at`, only the frames of the lane with this path.
    """

    seed: int = 0
    drop: float = 0.0
    delay: float = 0.0
    delay_s: float = 0.01
    duplicate: float = 0.0
    reorder: float = 0.0
    cut: float = 0.0
    cut_s: float = 0.05
    crash_at: int | None = None
    crash_lane: str | None = None

    def hits(self, fault: str, peer: str, number: int) -> bool:
        """Whether frame `number` to `peer` meets a fault, by the probability of that name."""
        digest = hashlib.sha256(f"{self.seed}|{fault}|{peer}|{number}".encode()).digest()
        return int.from_bytes(digest[:8], "big") < float(getattr(self, fault)) * 2.0**64


class _Pump(Generic[T]):
    """A queue of things that one task passes on in its own time."""

    def __init__(self, pass_on: Callable[[asyncio.Queue[T]], Coroutine[Any, Any, None]]) -> None:
        self.queue: asyncio.Queue[T] = asyncio.Queue()
        self._task = asyncio.create_task(pass_on(self.queue))

    async def drain(self) -> None:
        """Waits until everything has been passed on, and ends."""
        drained = asyncio.create_task(self.queue.join())
        await asyncio.wait({drained, self._task}, return_when=asyncio.FIRST_COMPLETED)
        drained.cancel()
        await self.stop()

    async def stop(self) -> None:
        """Ends; what is queued is lost."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


class FaultyTransport:
    """A transport whose outbound frames meet the faults of a schedule.

    Args:
        inner: What carries the frames in the end.
        schedule: The faults.
    """

    def __init__(self, inner: Transport, schedule: Schedule) -> None:
        self._inner, self._schedule = inner, schedule
        self._pumps: dict[str, _Pump[tuple[int, Frame]]] = {}
        self._numbers: dict[str, int] = defaultdict(int)
        self._sent, self._dead = 0, False

    def attach(self, receiver: Receiver) -> None:
        """Names who takes inbound frames."""
        self._inner.attach(receiver)

    async def send(self, to: str, frame: Frame) -> None:
        """Accepts a frame for whatever the schedule has in store for it.

        Raises:
            Crashed: The schedule lets this party die now.
        """
        if self._dead:
            return
        if self._schedule.crash_lane in (None, frame.lane):
            if self._sent == self._schedule.crash_at:
                await self.crash()
                raise Crashed
            self._sent += 1
        if to not in self._pumps:
            self._pumps[to] = _Pump(partial(self._pass_on, to))
        self._pumps[to].queue.put_nowait((self._numbers[to], frame))
        self._numbers[to] += 1
        await asyncio.sleep(0)

    async def close(self, *, hurried: bool = False) -> None:
        """Passes on what is held back, and ends."""
        await asyncio.gather(*(pump.drain() for pump in self._pumps.values()))
        await self._inner.close(hurried=hurried)

    async def crash(self) -> None:
        """Dies: what is held back is lost, and nothing leaves any more."""
        self._dead = True
        await asyncio.gather(*(pump.stop() for pump in self._pumps.values()))
        if isinstance(self._inner, Mortal):
            await self._inner.crash()

    async def _pass_on(self, to: str, queue: asyncio.Queue[tuple[int, Frame]]) -> None:
        schedule = self._schedule
        while True:
            number, frame = await queue.get()
            if schedule.hits("delay", to, number):
                await asyncio.sleep(schedule.delay_s)
            if schedule.hits("cut", to, number):
                await self._cut(to)
            if schedule.hits("reorder", to, number):
                with contextlib.suppress(TimeoutError):
                    overtaking = await asyncio.wait_for(queue.get(), schedule.delay_s)
                    await self._deliver(to, *overtaking)
                    queue.task_done()
            await self._deliver(to, number, frame)
            queue.task_done()

    async def _deliver(self, to: str, number: int, frame: Frame) -> None:
        if self._schedule.hits("drop", to, number):
            return
        await self._inner.send(to, frame)
        if self._schedule.hits("duplicate", to, number):
            await self._inner.send(to, frame)

    async def _cut(self, to: str) -> None:
        if isinstance(self._inner, Breakable):
            self._inner.cut(to)
        else:
            await asyncio.sleep(self._schedule.cut_s)


class EmulatedLink:
    """A transport over which everything takes as long as over a wide-area network.

    A party's frames to all peers share its uplink, one after another; each then travels for the latency, several at a
    time. 20 ms and 100 Mbit/s is what the project's benchmarks call a WAN.

    Args:
        inner: What carries the frames in the end.
        latency_s: Seconds from one party to another, one way.
        bits_per_s: Rate of this party's uplink.
    """

    def __init__(self, inner: Transport, latency_s: float, bits_per_s: float) -> None:
        self._inner, self._latency_s, self._bits_per_s = inner, latency_s, bits_per_s
        self._free_at = 0.0
        self._pumps: dict[str, _Pump[tuple[float, Frame]]] = {}

    def attach(self, receiver: Receiver) -> None:
        """Names who takes inbound frames."""
        self._inner.attach(receiver)

    async def send(self, to: str, frame: Frame) -> None:
        """Accepts a frame; waits while more than `BUFFER_S` of frames wait for the uplink."""
        if to not in self._pumps:
            self._pumps[to] = _Pump(partial(self._pass_on, to))
        now = asyncio.get_running_loop().time()
        self._free_at = max(now, self._free_at) + 8 * frame.ByteSize() / self._bits_per_s
        self._pumps[to].queue.put_nowait((self._free_at + self._latency_s, frame))
        await asyncio.sleep(max(0.0, self._free_at - now - BUFFER_S))

    async def close(self, *, hurried: bool = False) -> None:
        """Waits until everything has arrived, and ends."""
        await asyncio.gather(*(pump.drain() for pump in self._pumps.values()))
        await self._inner.close(hurried=hurried)

    async def _pass_on(self, to: str, queue: asyncio.Queue[tuple[float, Frame]]) -> None:
        while True:
            arrival, frame = await queue.get()
            await asyncio.sleep(max(0.0, arrival - asyncio.get_running_loop().time()))
            await self._inner.send(to, frame)
            queue.task_done()
