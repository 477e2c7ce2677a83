"""Mechanisms that draw an answer to a value once, keep it, and base every report of the value on it.

Fresh noise in each report averages out: T reports of a value spend T times ε. Reports based on one kept answer spend ε∞
together at most, however many they are; where each is perturbed once more, a single one spends only ε1. What no kept
answer can hide is that a value changes: every further value spends ε∞ again.
Source: Erlingsson, Pihur and Korolova, CCS 2014, section 3; Arcolezi, Couchot, Al Bouna and Xiao, "Improving the
Utility of Locally Differentially Private Protocols for Longitudinal and Multidimensional Frequency Estimates", 2022.
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from ldp.budget import LARGEST_EPSILON, check_epsilon
from ldp.mechanism import Mechanism
from ldp.reports import FINGERPRINT_BYTES, Field, Reports
from link.errors import ConfigurationError, InputDataError

E = TypeVar("E")

_MAGIC: Final = b"LDPM\x01"
_HEADER: Final = struct.Struct(f"<5s{FINGERPRINT_BYTES}sQ")


class MemoisedMechanism(Mechanism[E]):
    """A mechanism whose clients keep answers. `epsilon` is ε1, of a single report; `privatise` draws as new users do.

    Users may have a trait, drawn at the start without regard to their values and kept for ever. All answers are drawn
    given the trait, each for a key, which is all that an answer depends on: the value, or what the trait leaves of it.
    """

    @property
    @abstractmethod
    def exact_permanent_epsilon(self) -> float:
        """The ε∞ that all reports of one key together spend at most."""

    @property
    def trait_layout(self) -> Field:
        """A user's trait; here there is none."""
        return Field("uint8", 0)

    @property
    @abstractmethod
    def answer_layout(self) -> Field:
        """A kept answer."""

    def traits(self, n: int, rng: Randomness) -> NDArray[Any]:  # noqa: ARG002 (where there are none)
        """The traits of n new users."""
        return np.zeros((n, 0), dtype=np.uint8)

    @abstractmethod
    def keys(self, values: ArrayLike, traits: NDArray[Any]) -> NDArray[np.int64]:
        """What users' answers depend on, shape (n,).

        Raises:
            InputDataError: A value is outside the domain.
        """

    @abstractmethod
    def answers(self, keys: NDArray[np.int64], traits: NDArray[Any], rng: Randomness) -> NDArray[Any]:
        """The first randomisation, which is drawn once for a user and a key."""

    @abstractmethod
    def respond(self, answers: NDArray[Any], traits: NDArray[Any], rng: Randomness) -> tuple[NDArray[Any], ...]:
        """The fields of one report for each user, from the kept answers; a second randomisation if there is one."""

    def _perturb(self, values: ArrayLike, rng: Randomness) -> tuple[NDArray[Any], ...]:
        listed = values if isinstance(values, np.ndarray) else np.asarray(values, dtype=object)
        traits = self.traits(listed.size, rng)
        return self.respond(self.answers(self.keys(values, traits), traits, rng), traits, rng)


def permanent_budget(epsilon: float, permanent_epsilon: float | None) -> float:
    """ε∞ of a protocol with two rounds; by default 2·ε1, or 16 at most.

    Raises:
        ConfigurationError: It is no budget, or does not exceed that of one report.
    """
    first = check_epsilon(epsilon)
    chosen = min(2 * first, LARGEST_EPSILON) if permanent_epsilon is None else check_epsilon(permanent_epsilon)
    if chosen <= first:
        raise ConfigurationError(f"the permanent budget must exceed that of one report, {first:g}; {chosen:g} does not")
    return chosen


class Memo:
    """One user's kept answers.

    A memo that is lost or rolled back makes the user answer anew, and so spend ε∞ again: keep what `to_bytes` gives
    before a report is sent. It names the values, so it is as secret as they are.

    Args:
        mechanism: The mechanism that is reported to.
        trait: The user's trait, shape (1, …).
        answers: The answers so far by their keys, each of shape (1, …).
    """

    def __init__(
        self, mechanism: MemoisedMechanism[Any], trait: NDArray[Any], answers: dict[int, NDArray[Any]]
    ) -> None:
        self.mechanism = mechanism
        self._trait, self._answers = trait, answers

    @classmethod
    def drawn(cls, mechanism: MemoisedMechanism[Any], rng: Randomness | None = None) -> Memo:
        """The memo of a new user."""
        trait = mechanism.traits(1, Randomness.from_os() if rng is None else rng)
        return cls(mechanism, trait.astype(mechanism.trait_layout.dtype), {})

    def __len__(self) -> int:
        return len(self._answers)

    @property
    def spent(self) -> float:
        """What all reports so far and all later ones of the same keys spend at most: ε∞ for each key."""
        return len(self) * self.mechanism.exact_permanent_epsilon

    def report(self, value: str | float, rng: Randomness | None = None) -> Reports:
        """One report of a value.

        Raises:
            InputDataError: The value is outside the domain.
        """
        source, mechanism = Randomness.from_os() if rng is None else rng, self.mechanism
        keys = mechanism.keys([value], self._trait)
        key = int(keys[0])
        if key not in self._answers:
            self._answers[key] = mechanism.answers(keys, self._trait, source).astype(mechanism.answer_layout.dtype)
        fields = mechanism.respond(self._answers[key], self._trait, source)
        typed = (np.asarray(field, part.dtype) for field, part in zip(fields, mechanism.layout, strict=True))
        return Reports(mechanism.fingerprint, tuple(typed))

    def to_bytes(self) -> bytes:
        """The memo, to be kept by the user."""
        parts = [_HEADER.pack(_MAGIC, self.mechanism.fingerprint, len(self)), _plain(self._trait)]
        for key, answer in self._answers.items():
            parts += [key.to_bytes(8, "little"), _plain(answer)]
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, data: bytes, mechanism: MemoisedMechanism[Any]) -> Memo:
        """A memo that `to_bytes` wrote.

        Raises:
            InputDataError: It is cut, of another version, or of another mechanism.
        """
        if len(data) < _HEADER.size or data[: len(_MAGIC)] != _MAGIC:
            raise InputDataError("these bytes are no memo of this version; a user without its memo starts anew")
        _, fingerprint, size = _HEADER.unpack_from(data)
        if fingerprint != mechanism.fingerprint:
            raise InputDataError("the memo belongs to another mechanism or to other parameters of it")
        trait, answer = mechanism.trait_layout, mechanism.answer_layout
        if len(data) != _HEADER.size + trait.nbytes + size * (8 + answer.nbytes):
            raise InputDataError(f"a memo of {size} answers has another length; it was cut or altered")
        place = _HEADER.size + trait.nbytes
        kept = {}
        for _ in range(size):
            key = int.from_bytes(data[place : place + 8], "little")
            kept[key] = _read(data, place + 8, answer)
            place += 8 + answer.nbytes
        return cls(mechanism, _read(data, _HEADER.size, trait), kept)


def _plain(row: NDArray[Any]) -> bytes:
    return row.astype(row.dtype.newbyteorder("<")).tobytes()


def _read(data: bytes, place: int, field: Field) -> NDArray[Any]:
    little, shape = np.dtype(field.dtype).newbyteorder("<"), field.shape(1)
    row = np.frombuffer(data, little, int(np.prod(shape)), place).reshape(shape)
    return row.astype(field.dtype)
