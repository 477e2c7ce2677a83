"""What runs where: machines, and the processes on them, which may stop or die at any moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

T = TypeVar("T")


@dataclass(eq=False)
class Machine:
    """A machine, which outlives its processes.

    Attributes:
        name: Of the party, or of the coordinator.
        ahead_s: Seconds by which its clock is ahead of the true time.
    """

    name: str
    ahead_s: float = 0.0


@dataclass(eq=False)
class Process:
    """A process of a machine: all that runs in its context.

    Attributes:
        machine: Where it runs.
        dead: Whether it was killed: nothing of it ever runs again.
        stopped: Whether it stands still, as after SIGSTOP.
        waiting: What would have run meanwhile.
        over: Set where it dies, and where what it was begun for is done, for those who look on: the dead wake nobody.
    """

    machine: Machine
    dead: bool = False
    stopped: bool = False
    waiting: list[Any] = field(default_factory=list)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def context(self) -> Context:
        """A context of this process, for something new that runs in it."""
        context = copy_context()
        context.run(HERE.set, self)
        return context

    def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Calls a function in this process."""
        return self.context().run(function, *arguments)


HERE: Final[ContextVar[Process | None]] = ContextVar("HERE", default=None)
"""The process that runs; None where the one who looks on does."""
