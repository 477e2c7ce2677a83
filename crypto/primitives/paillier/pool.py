"""Encryptions of zero in stock: nearly all the work of encrypting, done before there is anything to encrypt."""

from __future__ import annotations

import os
from contextlib import aclosing
from typing import Never

from gmpy2 import mpz

from crypto.primitives.paillier.public_key import PublicKey
from crypto.primitives.paillier.workers import Progress, Workers, make_zeros, no_progress
from crypto.primitives.paillier.zeros import ZeroSource
from link.errors import InternalError
from link.randomness import RandomStream


class ZeroPool:
    """A stock of encryptions of zero, each given out once.

    Two plaintexts under one encryption of zero show their difference. So a pool is neither copied nor pickled, gives
    nothing in a forked child, and forgets what it gives.
    """

    __slots__ = ("_process", "_source", "_zeros")

    def __init__(self, source: ZeroSource) -> None:
        """Empty.

        Args:
            source: How its encryptions of zero are made.
        """
        self._source, self._process = source, os.getpid()
        self._zeros: list[mpz] = []

    @property
    def key(self) -> PublicKey:
        """The key under which they are."""
        return self._source.key

    @property
    def assumption(self) -> str:
        """What its ciphertexts rest on beyond Paillier's own assumption."""
        return self._source.assumption

    async def fill(self, count: int, random: RandomStream, workers: Workers, progress: Progress = no_progress) -> None:
        """Adds `count` encryptions of zero.

        Args:
            count: How many.
            random: Randomness used for nothing else.
            workers: Where they are made; every one of several processes makes tables of its own first.
            progress: Called with how many of `count` are made.
        """
        done = 0
        async with aclosing(make_zeros(self._source, count, random, workers)) as pieces:
            async for made in pieces:
                self._zeros += made
                done += len(made)
                progress(done, count)

    def take(self, count: int) -> list[mpz]:
        """Removes and returns `count` encryptions of zero.

        Raises:
            ValueError: There are fewer.
            InternalError: This is a fork of the process that made them.
        """
        if os.getpid() != self._process:
            raise InternalError(
                "A pool of encryptions of zero was used in a forked process, where it would repeat its own"
            )
        if not 0 <= count <= len(self):
            raise ValueError(f"a pool of {len(self)} encryptions of zero does not give {count}")
        if count == 0:
            return []
        taken = self._zeros[-count:]
        del self._zeros[-count:]
        return taken

    async def draw(self, count: int, random: RandomStream, workers: Workers) -> list[mpz]:
        """As many as `take` can give, and the rest made on the spot; arguments as for `fill`."""
        zeros = self.take(min(count, len(self)))
        async with aclosing(make_zeros(self._source, count - len(zeros), random, workers)) as pieces:
            async for made in pieces:
                zeros += made
        return zeros

    def __len__(self) -> int:
        return len(self._zeros)

    def __reduce_ex__(self, protocol: object) -> Never:
        raise TypeError("a pool of encryptions of zero is never copied or pickled: each of them serves once")

    def __repr__(self) -> str:
        return f"<ZeroPool of {len(self)} under a key of {self.key.bits} bits>"
