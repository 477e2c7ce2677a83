"""A transport under test, and sessions over it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from link.core import Terms, Transport
from link.disclosure import Declared
from link.errors import ComineError
from link.executor import ThreadExecutor
from link.randomness import RandomStream
from link.session import Session

T = TypeVar("T")

ABC: Final = ("a", "b", "c")
AB: Final = ("a", "b")

Opens = Callable[[Sequence[str], bytes], AbstractAsyncContextManager[Mapping[str, Transport]]]
"""From the names of parties and the id of a job to a transport for each, which are closed at the end."""


@dataclass(frozen=True)
class Kit:
    """A transport under test.

    Attributes:
        opened: Opens one for each party of a job.
        random: Of the sessions: `crypto.primitives.randomness.Randomness`, with any seed.
    """

    opened: Opens
    random: RandomStream

    @asynccontextmanager
    async def sessions(
        self, parties: Sequence[str] = ABC, *, declared: Iterable[Declared] = (), deadline_s: float = 20
    ) -> AsyncIterator[dict[str, Session]]:
        """Established sessions, by party.

        Args:
            parties: Their names.
            declared: What may be opened.
            deadline_s: Of each.
        """
        terms, lines = Terms(bytes(32), 1, bytes(32), tuple(parties), "conformance"), tuple(declared)

        async def greet(name: str, transport: Transport) -> Session:
            return await Session.establish(
                terms,
                name,
                transport,
                random=self.random.derive(name),
                executor=ThreadExecutor(1),
                declared=lines,
                deadline_s=deadline_s,
            )

        async with self.opened(parties, terms.job_id) as transports:
            yield dict(zip(parties, await asyncio.gather(*(greet(p, transports[p]) for p in parties)), strict=True))


async def each(world: Mapping[str, Session], role: Callable[[Session], Coroutine[Any, Any, T]]) -> dict[str, T]:
    """Runs one role at all parties at once."""
    results = await asyncio.gather(*(role(session) for session in world.values()))
    return dict(zip(world, results, strict=True))


@contextmanager
def refused(error: type[ComineError], words: str, party: str | None = None) -> Iterator[None]:
    """What is done inside must fail.

    Args:
        error: So.
        words: Which the sentence has.
        party: Whose fault it is; None where that is not asked.

    Raises:
        AssertionError: It does not, or otherwise.
    """
    try:
        yield
    except error as met:
        require(words in met.message, f"the error says '{met.message}', not '{words}'")
        require(party is None or met.party == party, f"the error is that of {met.party}, not of {party}")
        return
    raise AssertionError(f"there is no {error.__name__}: {words}")


def require(holds: object, otherwise: str) -> None:
    """Fails with a sentence where something does not hold.

    Raises:
        AssertionError: It does not.
    """
    if not holds:
        raise AssertionError(otherwise)
