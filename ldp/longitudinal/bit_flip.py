"""dBitFlipPM: each user reports on a few sampled values, by bits that are kept.

Source: Ding, Kulkarni and Yekhanin, "Collecting Telemetry Data Privately", NIPS 2017, sections 3 (dBitFlip) and 4
(permanent memoisation).
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb, prod
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.dyadic import Dyadic, bits_for
from ldp.arithmetic.packed import clean, coin_rows, row_bytes, set_bits
from ldp.arithmetic.sampling import coin_flips
from ldp.arithmetic.subsets import subset_lists
from ldp.blanket import Atom, Blanket
from ldp.budget import exp_below, log_above
from ldp.domain import DomainLike
from ldp.estimate import Estimate
from ldp.frequency_oracle import Floats, FrequencyOracle
from ldp.longitudinal.memoised import MemoisedMechanism
from ldp.mechanism import Channel, Tally
from ldp.reports import Field, Reports
from link.errors import ConfigurationError

_LARGEST_ENUMERATED: Final = 4096


class BitFlip(MemoisedMechanism[Estimate], FrequencyOracle):
    """dBitFlipPM: a bit for each of s sampled values, whether it is the user's, which is right with probability p.

    The sampled values are a user's for ever, and so is the answer to each value among them, and to all others together:
    a change between two values that are not sampled is never seen. Two values differ in two bits at most, so
    p = e^(ε/2) / (e^(ε/2) + 1); with s = 1 in one bit only, where p = e^ε / (e^ε + 1) instead of the paper's.

    Args:
        domain: The domain, its size, or the texts of its values; ranges of a number, in the paper.
        epsilon: ε of one report, and of all reports that are based on the same answer.
        sampled: s (the paper's d), how many values a user reports on; by default 8, or the whole domain.
    """

    name: ClassVar[str] = "dbitflip"

    def __init__(self, domain: DomainLike, epsilon: float, sampled: int | None = None) -> None:
        super().__init__(domain, epsilon)
        self.sampled = sampled
        self._s = min(8, self.domain.size) if sampled is None else sampled
        if not 1 <= self._s <= self.domain.size:
            raise ConfigurationError(f"users sample between 1 and {self.domain.size} values, not {sampled}")
        root = exp_below(Fraction(self.epsilon) / self._differing)
        self._right = Dyadic.floor(root / (root + 1), bits_for(self.epsilon))

    @property
    def _differing(self) -> int:
        """In how many bits the answers to two values differ at most."""
        return min(2, self._s)

    @property
    def exact_epsilon(self) -> float:
        """That of the bits in which two values differ."""
        right = self._right.fraction
        return log_above((right / (1 - right)) ** self._differing)

    @property
    def exact_permanent_epsilon(self) -> float:
        """The same, since answers are sent as they were kept."""
        return self.exact_epsilon

    @property
    def layout(self) -> tuple[Field, ...]:
        """The sampled values, in their order, and a bit for each."""
        return self.trait_layout, self.answer_layout

    @property
    def trait_layout(self) -> Field:
        """The sampled values, in their order."""
        return Field(np.min_scalar_type(self.domain.size - 1).name, self._s)

    @property
    def answer_layout(self) -> Field:
        """A bit for each sampled value."""
        return Field("uint8", row_bytes(self._s))

    # -- the client's half --------------------------------------------------------------------------------------------
    def traits(self, n: int, rng: Randomness) -> NDArray[np.int64]:
        """Uniform samples of s values."""
        return np.sort(subset_lists(self._s, n, self.domain.size, rng), axis=1)

    def keys(self, values: ArrayLike, traits: NDArray[Any]) -> NDArray[np.int64]:
        """The value's place in the sample, or s if it is not there."""
        codes = self.domain.codes(values)
        own = traits == codes[:, None]
        return np.where(own.any(axis=1), own.argmax(axis=1), self._s)

    def answers(self, keys: NDArray[np.int64], traits: NDArray[Any], rng: Randomness) -> NDArray[np.uint8]:  # noqa: ARG002
        """The bits, each wrong with probability 1 − p."""
        rows = coin_rows(self._right.complement, len(keys), self._s, rng)
        own = np.flatnonzero(keys < self._s)
        mine = rows[own]
        set_bits(mine, keys[own], coin_flips(self._right, own.size, rng.rows(own)))
        rows[own] = mine
        return rows

    def respond(
        self,
        answers: NDArray[Any],
        traits: NDArray[Any],
        rng: Randomness,  # noqa: ARG002 (nothing is perturbed a second time)
    ) -> tuple[NDArray[Any], ...]:
        """The sample and the kept bits."""
        return traits, answers

    def channel(self) -> Channel:
        """Over all samples in lexicographic order, and for each over all strings of bits, the first bit lowest."""
        d, s = self.domain.size, self._s
        if comb(d, s) << s > _LARGEST_ENUMERATED:
            raise NotImplementedError(f"{comb(d, s)} samples with 2^{s} answers are not enumerated")
        right, share = self._right.fraction, Fraction(1, comb(d, s))

        def likelihood(x: int, sample: tuple[int, ...], bits: int) -> Fraction:
            said = [(value == x) == bool(bits >> place & 1) for place, value in enumerate(sample)]
            return share * prod(right if each else 1 - right for each in said)

        samples = list(combinations(range(d), s))
        return [[likelihood(x, sample, bits) for sample in samples for bits in range(1 << s)] for x in range(d)]

    def outcomes(self, reports: Reports) -> NDArray[np.int64]:
        """Numbers of the samples in lexicographic order, times 2^s, plus the bits."""
        samples, bits = reports.fields
        d, s = self.domain.size, self._s
        numbers = {each: place for place, each in enumerate(combinations(range(d), s))}
        drawn = np.array([numbers[tuple(row)] for row in samples.tolist()], dtype=np.int64)
        return drawn << s | bits[:, 0].astype(np.int64)

    # -- the server's half --------------------------------------------------------------------------------------------
    @property
    def tally_shape(self) -> tuple[int, ...]:
        """For each value, how many users sampled it, and how many said yes."""
        return (2, self.domain.size)

    def tally(self, reports: Reports) -> Tally:
        """How many users sampled each value, and how many said yes."""
        samples, rows = reports.fields
        said = np.unpackbits(rows, axis=1, count=self._s, bitorder="little").astype(np.bool_)
        asked, yes = (np.bincount(part.ravel(), minlength=self.domain.size) for part in (samples, samples[said]))
        return np.stack([asked, yes]).astype(np.int64, copy=False)

    def unbiased(self, tally: Tally, n: int) -> Floats:  # noqa: ARG002 (reports on a value are counted)
        """What those who sampled the value hold, times d / s."""
        asked, yes = tally.astype(np.float64)
        wrong = float(1 - self._right.fraction)
        held: Floats = (yes - asked * wrong) / (1 - 2 * wrong)
        return held * self.domain.size / self._s

    def variance(self, counts: Floats, n: int) -> Floats:
        """Of the bits, and of whether a user who holds the value sampled it."""
        right, scale = self._right.fraction, Fraction(self.domain.size, self._s)
        noise = float(scale * right * (1 - right) / (2 * right - 1) ** 2)
        return n * noise + np.asarray(counts, dtype=np.float64) * float(scale - 1)

    def blanket(self) -> Blanket:
        """All bits as if no sampled value were held, by whether the sample has one of two values, or both."""
        d, s, right = self.domain.size, self._s, self._right.fraction
        wrong, likely, unlikely = 1 - right, right / (1 - right), (1 - right) / right
        both, one = Fraction(s * (s - 1), d * (d - 1)), Fraction(s * (d - s), d * (d - 1))
        atoms = [
            Atom(both * wrong * right, likely, unlikely),
            Atom(both * wrong * right, unlikely, likely),
            Atom(both * wrong * wrong, likely, likely),
            Atom(both * right * right, unlikely, unlikely),
        ]
        unchanged = Fraction(1)
        for share, ratio in ((one * wrong, likely), (one * right, unlikely)):
            atoms += [Atom(share, ratio, unchanged), Atom(share, unchanged, ratio)]
        atoms.append(Atom(1 - both - 2 * one, unchanged, unchanged))
        return Blanket(unlikely, tuple(atom for atom in atoms if atom.probability))

    def _valid(self, reports: Reports) -> bool:
        samples, rows = reports.fields
        ordered = bool(np.all(samples[:, 1:] > samples[:, :-1])) and bool(np.all(samples < self.domain.size))
        return ordered and clean(rows, self._s)
