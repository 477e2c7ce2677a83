"""Sums of real values without public bounds: a query is denied if an answer would determine a value.

A value is determined by answered sums if and only if its unit vector is in the span of their 0/1 vectors over the
rational numbers. This does not depend on any answer, so who asks can work out every decision alone: denials reveal
nothing. Arithmetic with floats would be wrong, and modulo one *known* prime it can be outwitted: queries can be chosen
that determine every value over the rationals and none modulo that prime. So two primes are drawn in secret, and one
that objects is enough; for a value to slip through, both would have to divide a number that they were not known to.

Averages over sets of known size are sums.

Source: Chin, "Security problems on inference control for SUM, MAX, and MIN queries", JACM 33(3), 1986; Kenthapadi,
Mishra and Nissim, "Simulatable auditing", PODS 2005 (JCSS 79, 2013), section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anonymize.auditing.decision import ANSWERED, Decision, members
from anonymize.auditing.prime_field import AnsweredSets, PrimeField, random_prime
from anonymize.auditing.state import StateReader, StateWriter, damaged
from crypto.primitives.randomness import Randomness

_PRIMES = 2
_THREADED_RANK = 1500  # from where on the fields are worth a thread each


class SumAuditor:
    """Decides on sums over sets of records.

    Args:
        n: How many records there are.
        random: Of the primes and of null vectors; who knew it could outwit the auditor.
        primes: In place of secret ones; who knows them can outwit the auditor.

    Attributes:
        rank: How many independent sums were answered.
    """

    def __init__(self, n: int, random: Randomness | None = None, primes: Sequence[int] | None = None) -> None:
        random = Randomness.from_os() if random is None else random
        self._sets = AnsweredSets(n)
        self._touched = np.zeros(n, bool)
        self._fields = [
            PrimeField(self._sets, prime, random.derive("field", number))
            for number, prime in enumerate(primes or [random_prime(random) for _ in range(_PRIMES)])
        ]

    @property
    def n(self) -> int:
        """How many records there are."""
        return self._sets.n

    @property
    def rank(self) -> int:
        """How many independent sums were answered."""
        return len(self._sets)

    def decide(self, query: ArrayLike) -> Decision:
        """Whether the sum over some records may be answered.

        Args:
            query: Their numbers.

        Raises:
            InputDataError: There is none, or a number is none of a record.
        """
        chosen = members(query, self.n)
        known = [field.spans(chosen) for field in self._fields]
        if all(known):
            return ANSWERED
        if any(known):
            return Decision("disclosure")
        touched = self._touched.copy()
        touched[chosen] = True
        for hidden in self._each(lambda field: field.hidden_after(chosen)):
            if not hidden[touched].all():
                return Decision("disclosure")
        return ANSWERED

    def answer(self, query: ArrayLike) -> None:
        """Takes in a sum that is answered. It must have been allowed."""
        chosen = members(query, self.n)
        if self._fields[0].spans(chosen):
            return
        self._each(lambda field: field.answer(chosen))
        self._sets.append(chosen)
        self._touched[chosen] = True
        self._each(lambda field: field.refill())

    def extend(self, more: int) -> NDArray[np.int64]:
        """Adds records: new ones, or the new values of old ones, which are variables of their own.

        Returns:
            Their numbers.
        """
        first = self._sets.n
        self._sets.extend(more)
        self._touched = np.concatenate([self._touched, np.zeros(more, bool)])
        for field in self._fields:
            field.extend(more)
        return np.arange(first, self._sets.n)

    def write(self, file: BinaryIO) -> None:
        """Writes the auditor to a file, which is as secret as what was asked of `random`.

        To replay t answers takes time that grows as t³; to read them back, as t².
        """
        state = StateWriter(file)
        self._sets.write(state)
        state.array(self._touched)
        for field in self._fields:
            field.write(state)
        state.finish()

    @classmethod
    def read(cls, file: BinaryIO, random: Randomness | None = None) -> SumAuditor:
        """An auditor that was written; it has its own primes, and decides as it would have.

        Args:
            file: Where it was written.
            random: Of null vectors from now on.

        Raises:
            InputDataError: The file is damaged, or none of an auditor.
        """
        random = Randomness.from_os() if random is None else random
        state, auditor = StateReader(file), cls.__new__(cls)
        try:
            auditor._sets = AnsweredSets.read(state)
            auditor._touched = state.array(np.empty(auditor.n, bool))
            auditor._fields = [
                PrimeField.read(state, auditor._sets, random.derive("field", number)) for number in range(_PRIMES)
            ]
        except (IndexError, MemoryError, OverflowError, ValueError):
            raise damaged() from None  # sizes and positions that are none; the digest comes last
        state.finish()
        return auditor

    def _each(self, work: Callable[[PrimeField], Any]) -> list[Any]:
        if self.rank < _THREADED_RANK:
            return [work(field) for field in self._fields]
        with ThreadPoolExecutor(len(self._fields)) as pool:  # numpy works without the interpreter's lock
            return list(pool.map(work, self._fields))
