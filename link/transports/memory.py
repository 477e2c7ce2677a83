"""The transport of simulations and tests: all parties in one process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from link.core import Receiver
from link.errors import PeerError
from protos.v1.link_pb2 import Frame


class Hub:
    """Joins the parties of one job within one event loop.

    Args:
        observe: Called for every frame that is sent, for recorded transcripts.
    """

    def __init__(self, observe: Callable[[Frame], None] = lambda frame: None) -> None:
        self._observe = observe
        self._receivers: dict[str, Receiver] = {}
        self._waiting: dict[str, list[tuple[str, Frame]]] = {}
        self._lost: list[str] = []

    def endpoint(self, name: str) -> MemoryTransport:
        """The transport of the party called `name`."""
        return MemoryTransport(self, name)

    def attach(self, name: str, receiver: Receiver) -> None:
        """Hands over the frames that came before the party was there, and all later ones."""
        self._receivers[name] = receiver
        for peer, frame in self._waiting.pop(name, []):
            receiver.deliver(peer, frame)
        for lost in self._lost:
            receiver.fail(_lost(lost))

    def carry(self, frm: str, to: str, frame: Frame) -> None:
        """Delivers one frame."""
        self._observe(frame)
        if to in self._receivers:
            self._receivers[to].deliver(frm, frame)
        else:
            self._waiting.setdefault(to, []).append((frm, frame))

    def crash(self, name: str) -> None:
        """Takes a party away as if its process had died: all others learn that it is lost."""
        self._lost.append(name)
        self._receivers.pop(name, None)
        for receiver in list(self._receivers.values()):
            receiver.fail(_lost(name))


def _lost(name: str) -> PeerError:
    return PeerError(f"{name} was lost", party=name)


class MemoryTransport:
    """One party's end of a `Hub`."""

    def __init__(self, hub: Hub, name: str) -> None:
        self._hub, self._name = hub, name

    def attach(self, receiver: Receiver) -> None:
        """Names who takes inbound frames."""
        self._hub.attach(self._name, receiver)

    async def send(self, to: str, frame: Frame) -> None:
        """Delivers at once, after giving other tasks a turn."""
        await asyncio.sleep(0)
        self._hub.carry(self._name, to, frame)

    async def close(self, *, hurried: bool = False) -> None:
        """Nothing is under way."""

    async def crash(self) -> None:
        """Takes this party away as if its process had died."""
        self._hub.crash(self._name)
