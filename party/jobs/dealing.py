"""What the coordinator deals to this party in one job: a seed at the start, products when they are asked for.

Parties do not call coordinators: a request stands in the events of the job until the coordinator, who watches it, has
answered. One that has gone may come back, so it is waited for as long as the job may take.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import prod
from typing import Final

import numpy as np

from crypto.primitives.randomness import KEY_BYTES
from crypto.primitives.shares.masks import Words
from crypto.protocols.products.outside_dealer import Wanted
from link.errors import DeadlineExceeded, MalformedMessage, UnexpectedMessage
from protos.v1.control_pb2 import DealRequest, DealtPart

_WORD: Final = np.dtype("<u4")


class CoordinatorDealings:
    """The dealer, as this party sees it. To be used on the event loop only.

    Attributes:
        seed: What this party and the dealer have in common.
    """

    def __init__(self, seed: bytes, me: str, ask: Callable[[DealRequest | None], None], deadline_s: int):
        """Asks for nothing yet.

        Args:
            seed: As the coordinator has sent it.
            me: This party.
            ask: Puts a request into the events of the job, or takes it out again.
            deadline_s: Seconds from now that the job may take.

        Raises:
            MalformedMessage: It is no seed.
        """
        if len(seed) != KEY_BYTES:
            raise MalformedMessage(
                "the coordinator deals randomness in this job, and has sent no seed with its start; bring it to the "
                f"version of {me}",
                party=me,
            )
        self.seed, self._me, self._ask, self._deadline_s = seed, me, ask, deadline_s
        self._until = asyncio.get_running_loop().time() + deadline_s
        self._turn = asyncio.Lock()
        self._label, self._size, self._data = b"", 0, bytearray()
        self._came = asyncio.Event()

    async def products(self, wanted: Wanted) -> Words:
        """The dealer's answer.

        Raises:
            DeadlineExceeded: The coordinator does not answer.
        """
        async with self._turn:
            first, second = wanted.columns
            self._label, self._size, self._data = wanted.label, prod(wanted.columns) * _WORD.itemsize, bytearray()
            self._came.clear()
            self._ask(DealRequest(label=wanted.label, rows=wanted.rows, first=first, second=second))
            try:
                async with asyncio.timeout_at(self._until):
                    await self._came.wait()
            except TimeoutError:
                raise DeadlineExceeded(
                    "the coordinator deals randomness in this job and did not answer before the job's deadline of "
                    f"{self._deadline_s} s; run the job again, and let its command run to the end",
                    party=self._me,
                ) from None
            finally:
                self._label = b""
                self._ask(None)
            return np.frombuffer(bytes(self._data), _WORD).astype(np.uint32).reshape(wanted.columns)

    def take(self, part: DealtPart) -> None:
        """A piece of the answer has come.

        Raises:
            UnexpectedMessage: Nothing of the kind was asked for.
            MalformedMessage: It does not continue what has come before.
        """
        if not self._label or part.label != self._label:
            raise UnexpectedMessage(f"{self._me} has not asked for what was dealt to it", party=self._me)
        if part.offset == 0:
            self._data.clear()  # all of it comes, perhaps once more over a new connection
        if part.offset != len(self._data) or part.offset + len(part.data) > self._size:
            raise MalformedMessage(f"{self._me} was dealt pieces that do not fit together", party=self._me)
        self._data += part.data
        if len(self._data) == self._size:
            self._came.set()
