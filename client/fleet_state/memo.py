"""The kept answers of many clients at once."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from client.fleet_state.coins import FleetCoins, digests
from crypto.primitives.randomness import Randomness
from ldp.longitudinal.memoised import MemoisedMechanism
from ldp.mechanism import Mechanism
from ldp.rappor.encoding import texts_of
from ldp.rappor.mechanism import Rappor

_KEYS: Final = 1 << 32  # of one client: 2^31 clients fit 63 bits


class Answering(Protocol):
    """A mechanism whose answers are kept: the part of `MemoisedMechanism` that is needed here."""

    @property
    def exact_permanent_epsilon(self) -> float:
        """ε∞ of an answer."""

    def traits(self, n: int, rng: Randomness) -> NDArray[Any]:
        """What clients have for ever, whatever their values are."""

    def keys(self, values: ArrayLike, traits: NDArray[Any]) -> NDArray[np.int64]:
        """What answers depend on."""

    def answers(self, keys: NDArray[np.int64], traits: NDArray[Any], rng: Randomness) -> NDArray[Any]:
        """Answers that are drawn and kept."""

    def respond(self, answers: NDArray[Any], traits: NDArray[Any], rng: Randomness) -> tuple[NDArray[Any], ...]:
        """The fields of reports."""


class _RapporAnswers:
    """RAPPOR in that form: a trait is a cohort, a key the number of a text, an answer the permanent response."""

    def __init__(self, mechanism: Rappor) -> None:
        self._mechanism = mechanism
        self._numbers: dict[str, int] = {}
        self._texts: list[str] = []

    @property
    def exact_permanent_epsilon(self) -> float:
        return self._mechanism.permanent_epsilon

    def traits(self, n: int, rng: Randomness) -> NDArray[Any]:
        return rng.integers(self._mechanism.cohorts, n).astype(np.int64)

    def keys(self, values: ArrayLike, traits: NDArray[Any]) -> NDArray[np.int64]:  # noqa: ARG002
        texts = texts_of(values)
        for text in texts:
            if text not in self._numbers:
                self._numbers[text] = len(self._texts)
                self._texts.append(text)
        return np.fromiter(map(self._numbers.__getitem__, texts), np.int64, len(texts))

    def named(self, keys: NDArray[np.int64]) -> NDArray[Any]:
        """The texts of keys, which are numbered in the order in which they came."""
        return np.array([self._texts[key] for key in keys.tolist()], dtype=object)

    def answers(self, keys: NDArray[np.int64], traits: NDArray[Any], rng: Randomness) -> NDArray[Any]:
        texts = [self._texts[key] for key in keys.tolist()]
        return self._mechanism.permanent(self._mechanism.filters.rows(texts, traits), rng)

    def respond(self, answers: NDArray[Any], traits: NDArray[Any], rng: Randomness) -> tuple[NDArray[Any], ...]:
        return traits, self._mechanism.instantaneous(answers, rng)


class FleetMemo:
    """What the clients of a fleet keep for one mechanism: nothing but which answers are charged already.

    An answer follows from its client's coins, and is the same whenever it is computed, by whichever process.

    Args:
        mechanism: One that keeps answers.
        coins: The clients'.
        collection: The id of the collection.
    """

    def __init__(self, mechanism: Mechanism[Any], coins: FleetCoins, collection: bytes) -> None:
        self._mechanism: Answering = (
            _RapporAnswers(mechanism) if isinstance(mechanism, Rappor) else _memoised(mechanism)
        )
        self._coins, self._terms = coins, (collection, mechanism.fingerprint)
        everybody = coins.everybody
        self._traits = self._mechanism.traits(len(everybody), coins.streams(everybody, "traits", *self._terms))
        self._known = np.zeros(0, dtype=np.int64)  # client and key in one number, ascending

    @property
    def charge(self) -> Fraction:
        """What a new answer spends."""
        return Fraction(self._mechanism.exact_permanent_epsilon)

    def keys(self, clients: NDArray[np.int64], values: ArrayLike) -> NDArray[np.int64]:
        """What some clients' answers depend on, client and value together; shape (n,).

        Raises:
            InputDataError: A value is outside the domain.
        """
        return clients * _KEYS + self._mechanism.keys(values, self._traits[clients])

    def is_new(self, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of the keys have no answer that is charged yet."""
        if not self._known.size:
            return np.ones(len(keys), dtype=np.bool_)
        places = np.minimum(np.searchsorted(self._known, keys), self._known.size - 1)
        return np.asarray(self._known[places] != keys)

    def report(self, keys: NDArray[np.int64], number: int) -> tuple[NDArray[Any], ...]:
        """The fields of one report for each key, none twice, in a round; their answers are charged from now on."""
        clients, about = keys // _KEYS, self._about(keys)
        answers = self._mechanism.answers(
            keys % _KEYS, self._traits[clients], self._coins.streams(clients, "answers", *self._terms, about=about)
        )
        self._known = np.union1d(self._known, keys)
        again = self._coins.streams(clients, "responses", *self._terms, number, about=about)
        return self._mechanism.respond(answers, self._traits[clients], again)

    def _about(self, keys: NDArray[np.int64]) -> NDArray[np.uint8]:
        own = keys % _KEYS
        return digests(self._mechanism.named(own) if isinstance(self._mechanism, _RapporAnswers) else own)


def _memoised(mechanism: Mechanism[Any]) -> MemoisedMechanism[Any]:
    assert isinstance(mechanism, MemoisedMechanism)
    return mechanism


def keeps_answers(mechanism: Mechanism[Any]) -> bool:
    """Whether clients of a mechanism keep answers."""
    return isinstance(mechanism, MemoisedMechanism | Rappor)
