"""Hadamard response (HR): one number, whose likelihoods are a row of a Hadamard matrix; decoded by a fast transform.

Reports take ⌈log2(2d)⌉ bits, and a server's work grows with n + d log d only. Numbers are cut into B blocks, each with
a Hadamard matrix of its own: B = 1 is best for small ε, and more blocks the larger e^ε is.
Source: Acharya, Sun and Zhang, "Hadamard Response: Estimating Distributions Privately, Efficiently, and with Little
Communication", AISTATS 2019.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.dyadic import PRECISE_BITS, Dyadic
from ldp.arithmetic.hadamard import parity, walsh_hadamard
from ldp.arithmetic.sampling import Bits, coin_flips
from ldp.blanket import Atom, Blanket
from ldp.budget import exp_below, log_above
from ldp.domain import Codes, DomainLike
from ldp.estimate import Estimate
from ldp.frequency_oracle import Floats
from ldp.mechanism import Channel, Tally, some
from ldp.numbered_reports import NumberedReports
from ldp.reports import Reports
from link.errors import ConfigurationError

_LARGEST_ENUMERATED: Final = 64
_PUBLIC_ORDER: Final = b"the public order of values in Hadamard response"


class HadamardResponse(NumberedReports):
    """HR: reports a number of the value's half block C_v with probability s·e^ε / (s·e^ε + K − s), else another one.

    K numbers form B blocks of b; s = b/2 of them, those on which the value's row of the block's matrix is +1, are C_v.
    Values are spread over the blocks in a fixed public order, so that frequent neighbours do not meet in one block.

    Args:
        domain: The domain, its size, or the texts of its values.
        epsilon: The privacy budget ε.
        blocks: B, a power of two; by default that with the least mean variance where all values are equally frequent.

    Attributes:
        shape: The blocks.
        block: Of each value.
        row: Of each value in its block's matrix, from 1.
    """

    name: ClassVar[str] = "hr"

    def __init__(self, domain: DomainLike, epsilon: float, blocks: int | None = None) -> None:
        super().__init__(domain, epsilon)
        grown = exp_below(self.epsilon)
        if blocks is None:
            most = int(math.log2(min(math.exp(self.epsilon), self.domain.size)))
            choices = [_Shape(self.domain.size, 1 << power, grown) for power in range(most + 1)]
            self.shape = min(choices, key=lambda shape: shape.even_variance)
        else:
            self.shape = _Shape(self.domain.size, blocks, grown)
        self.blocks = blocks
        order = np.argsort(Randomness.from_seed(_PUBLIC_ORDER).uint64(self.domain.size), kind="stable")
        spread = np.arange(self.domain.size) if self.shape.blocks == 1 else order
        # Blocks are filled evenly. A block's first row is all +1, so its values start at row 1.
        self.block = spread % self.shape.blocks
        self.row = spread // self.shape.blocks + 1

    @property
    def mapping(self) -> int:
        """The second where there are several blocks: they were filled one after the other before."""
        return 1 if self.shape.blocks == 1 else 2

    @property
    def exact_epsilon(self) -> float:
        """Of a number inside the half block against one outside."""
        shape = self.shape
        return log_above(shape.inside / shape.outside)

    def _perturb(self, values: ArrayLike, rng: Randomness) -> tuple[NDArray[Any], ...]:
        codes, shape = self.domain.codes(values), self.shape
        row, block = self.row[codes], self.block[codes]
        inside = coin_flips(shape.held, len(codes), rng)
        within = rng.integers(shape.block, len(codes)).astype(np.int64)
        # Outside the half block lie its other half, and behind it in this count all other blocks.
        beyond = rng.integers(shape.size - shape.half, len(codes)).astype(np.int64) - shape.half
        stays = inside | (beyond < 0)
        # Flipping the row's lowest one bit swaps the halves, so each number of the wanted half is as likely.
        wrong = parity(within & row) == inside
        within ^= np.where(wrong, row & -row, 0)
        other = np.maximum(beyond, 0)
        other += np.where(other >= block * shape.block, shape.block, 0)
        return (np.where(stays, block * shape.block + within, other),)

    def unbiased(self, tally: Tally, n: int) -> Floats:  # noqa: ARG002 (blocks without the value cancel by themselves)
        """What the value's half block has more than the other half, over the expected excess of one report."""
        shape = self.shape
        sums = walsh_hadamard(tally.reshape(shape.blocks, shape.block))
        excess: Floats = sums[self.block, self.row].astype(np.float64)
        return excess / float(shape.excess)

    def estimate(self, tally: Tally, n: int) -> Estimate:
        """Unbiased counts, and variances by how many reports lie in each block.

        They show how many users have a value of the block. The sum of its estimates, cut at 0, would show far more
        where there are more values than reports.
        """
        some(n)
        counts, shape = self.unbiased(tally, n), self.shape
        reports = tally.reshape(shape.blocks, shape.block).sum(axis=1)
        own, other = shape.half * (shape.inside + shape.outside), 2 * shape.half * shape.outside
        users = np.full(shape.blocks, float(n))
        if shape.blocks > 1:
            users = np.clip((reports - n * float(other)) / float(own - other), 0.0, n)
        return Estimate(self.domain, n, counts, self._variance(np.clip(counts, 0, n), users, n))

    def variance(self, counts: Floats, n: int) -> Floats:
        """By where a user's own value lies: in another block, in the same one, or it is the value itself."""
        users: Floats = np.bincount(self.block, weights=counts, minlength=self.shape.blocks).astype(np.float64)
        return self._variance(np.asarray(counts, dtype=np.float64), users, n)

    def _variance(self, counts: Floats, users: Floats, n: int) -> Floats:
        """As `variance`, for so many users whose values are in each block."""
        shape = self.shape
        square = shape.excess**2
        near = float(shape.half * (shape.inside + shape.outside) / square)
        far = float(2 * shape.half * shape.outside / square)
        in_block = users[self.block]
        return np.maximum(far * (n - in_block) + near * in_block - counts, 0)

    def channel(self) -> Channel:
        """Over all K numbers."""
        shape = self.shape
        if shape.size > _LARGEST_ENUMERATED:
            raise NotImplementedError(f"a channel with {shape.size} outputs is not enumerated")
        numbers = np.arange(shape.size)
        inside = self._half_block(np.arange(self.domain.size)[:, None], numbers[None, :])
        return [[shape.inside if each else shape.outside for each in row] for row in inside]

    def supports(self, reports: Reports, values: Codes) -> Bits:
        """The values in whose half blocks its number lies."""
        return self._half_block(values, reports.fields[0].astype(np.int64)[:, None])

    def starts(self, values: Codes) -> NDArray[np.int64]:
        """The first number of each value's block, which lies in the half block of all the block's values."""
        return self.block[values] * self.shape.block

    @property
    def numbers(self) -> int:
        """K, how many numbers a report may name."""
        return self.shape.size

    @property
    def one_block(self) -> bool:
        """Whether B = 1: then a report supports its user's value with `p`, and every other one with 1/2."""
        return self.shape.blocks == 1

    @property
    def p(self) -> Fraction:
        """The probability that a report supports its user's value."""
        return self.shape.held.fraction

    @property
    def share(self) -> Fraction:
        """The share of the numbers that support a value: 1 / (2B)."""
        return Fraction(self.shape.half, self.shape.size)

    def blanket(self) -> Blanket:
        """Uniform over the numbers; two values of different blocks, where there are several, differ most."""
        shape = self.shape
        inside, outside = shape.size * shape.inside, shape.size * shape.outside
        half = Fraction(shape.half, shape.size)
        if shape.blocks > 1:
            atoms = [Atom(half, inside, outside), Atom(half, outside, inside), Atom(1 - 2 * half, outside, outside)]
        else:
            quarter = half / 2
            atoms = [Atom(quarter, inside, outside), Atom(quarter, outside, inside)]
            atoms += [Atom(quarter, inside, inside), Atom(1 - 3 * quarter, outside, outside)]
        return Blanket(outside, tuple(atoms))

    def _half_block(self, codes: Codes, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        same: NDArray[np.bool_] = numbers // self.shape.block == self.block[codes]
        return same & ~parity(numbers % self.shape.block & self.row[codes])


class _Shape:
    """How K numbers are cut into B blocks for d values, and the exact probabilities of a number."""

    def __init__(self, d: int, blocks: int, grown: Fraction) -> None:
        if blocks < 1 or blocks & (blocks - 1) or blocks > d:
            raise ConfigurationError(f"the number of blocks is a power of two, at most the {d} values, not {blocks}")
        self.values, self.blocks = d, blocks
        self.block = 1 << (-(-d // blocks)).bit_length()
        self.size, self.half = blocks * self.block, self.block // 2
        self.held = Dyadic.floor(self.half * grown / (self.half * grown + self.size - self.half), PRECISE_BITS)
        self.inside = self.held.fraction / self.half
        self.outside = self.held.complement.fraction / (self.size - self.half)
        self.excess = self.half * (self.inside - self.outside)

    @property
    def even_variance(self) -> Fraction:
        """The mean of all values' variances, per user, but for their own part, if users have all values equally often.

        Blocks have ⌊d/B⌋ or ⌈d/B⌉ values, and a value's users meet those of its own block.
        """
        least, more = divmod(self.values, self.blocks)
        met = Fraction(more * (least + 1) ** 2 + (self.blocks - more) * least**2, self.values**2)
        near, far = self.half * (self.inside + self.outside), 2 * self.half * self.outside
        return (met * near + (1 - met) * far) / self.excess**2
