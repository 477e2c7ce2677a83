"""A mechanism's privacy blanket: what an accountant of amplification by shuffling needs to know of it.

With γ·B ≤ R(x) for every input x, a report of x is drawn from B with probability γ, else from the rest of R(x).
For n shuffled reports, one of which is of x or x', Balle et al. show that δ(ε) is at most

    E[(L_1 + … + L_M)⁺] / (γ·n),  M ~ Bin(n, γ),  L_i = X_i − e^ε·Y_i,  X = R(x)(W) / B(W),  Y = R(x')(W) / B(W),  W ~ B

This is convex in each pair (X, Y), so that a bound stays one where a pair is spread with its mean kept. Hence

- one law can serve for all pairs of inputs: of given laws of X and Y, X − e^ε·Y spreads most where one is large when
  the other is small, and of all laws between two limits, one that takes the limits only;
- inputs that are drawn first are no worse than the worst of those that are drawn;
- too many atoms are put on few points, each on those next to it.

Source: Balle, Bell, Gascón and Nissim, "The Privacy Blanket of the Shuffle Model", CRYPTO 2019.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Final, TypeAlias

MOST_ATOMS: Final = 512
_POINTS: Final = 20  # of each ratio, where atoms are put on few points

Masses: TypeAlias = Mapping[tuple[Fraction, Fraction], Fraction]
"""Ratios R(x)/(γ·B) and R(x')/(γ·B), and the mass of γ·B that has them; γ in all."""


@dataclass(frozen=True, slots=True)
class Atom:
    """Outputs that look alike to two given inputs.

    Attributes:
        probability: Of these outputs under the blanket.
        first: The first input's probability of each, divided by the blanket's.
        second: The same of the second input.
    """

    probability: Fraction
    first: Fraction
    second: Fraction


@dataclass(frozen=True, slots=True)
class Blanket:
    """The decomposition R(x) = γ·B + (1 − γ)·R'(x), seen from a worst pair of inputs, or from what bounds all pairs.

    Attributes:
        weight: γ, the probability with which a report does not depend on the value at all.
        atoms: The outputs grouped by their likelihoods; `probability` adds up to 1, and so do the means of `first` and
            `second` under it.
    """

    weight: Fraction
    atoms: tuple[Atom, ...]

    @classmethod
    def between(cls, low: Fraction, high: Fraction) -> Blanket:
        """No better than that of any two inputs whose ratios to it lie between low, its weight, and high.

        A ratio has mean 1, so the one that spreads most takes the two ends only; two of them differ most where they
        agree as seldom as they can. Exact where ratios take these two values, and two inputs' outputs with the higher
        one have nothing in common, as in direct encoding.
        """
        one = (1 - low) / (high - low)
        apart, same = min(one, 1 - one), low if one <= Fraction(1, 2) else high
        return cls(low, _atoms((apart, high, low), (apart, low, high), (1 - 2 * apart, same, same)))

    @classmethod
    def independent(cls, low: Fraction, high: Fraction) -> Blanket:
        """The same where the two inputs' ratios are independent, as where different bits decide on them."""
        one = (1 - low) / (high - low)
        ends = ((one, high), (1 - one, low))
        return cls(low, _atoms(*((p * q, first, second) for (p, first), (q, second) in product(ends, repeat=2))))

    @classmethod
    def mixture(cls, parts: Iterable[tuple[Fraction, Blanket]]) -> Blanket:
        """Of a report by one of several mechanisms, drawn without regard to the value and named in the report.

        Args:
            parts: With which probability it is each one, and its blanket.
        """
        masses: dict[tuple[Fraction, Fraction], Fraction] = defaultdict(Fraction)
        for share, part in parts:
            for ratios, mass in part.masses().items():
                masses[ratios] += share * mass
        return cls.of_masses(masses)

    @classmethod
    def joint(cls, parts: Iterable[Blanket]) -> Blanket:
        """Of a report that consists of independent ones, whose inputs may all differ."""
        masses: Masses = {(Fraction(1), Fraction(1)): Fraction(1)}
        for part in parts:
            masses = _times(masses, part.masses())
        return cls.of_masses(masses)

    @classmethod
    def sampled(cls, parts: Sequence[Blanket], k: int) -> Blanket:
        """Of k of several mechanisms, a uniform set of them, which the report names, reporting on one input each."""
        unit: Masses = {(Fraction(1), Fraction(1)): Fraction(1)}
        sets: list[Masses] = [unit, *({} for _ in range(k))]  # by how many are drawn, the masses of all such sets
        for part, number in Counter(parts).items():
            powers = [unit]
            for _ in range(min(number, k)):
                powers.append(_times(powers[-1], part.masses()))
            joined: list[dict[tuple[Fraction, Fraction], Fraction]] = [defaultdict(Fraction) for _ in sets]
            for drawn, power in enumerate(powers):
                for size in range(drawn, k + 1):
                    for ratios, mass in _times(sets[size - drawn], power).items():
                        joined[size][ratios] += math.comb(number, drawn) * mass
            sets = [on_few_points(masses) for masses in joined]
        return cls.of_masses({ratios: mass / math.comb(len(parts), k) for ratios, mass in sets[k].items()})

    @classmethod
    def of_masses(cls, masses: Masses) -> Blanket:
        """From the masses of γ·B by their ratios to the two inputs' probabilities."""
        weight = sum(masses.values(), Fraction(0))
        return cls(weight, _atoms(*((mass / weight, a * weight, b * weight) for (a, b), mass in masses.items())))

    def masses(self) -> Masses:
        """The masses of γ·B by their ratios."""
        found: dict[tuple[Fraction, Fraction], Fraction] = defaultdict(Fraction)
        for atom in self.atoms:
            found[atom.first / self.weight, atom.second / self.weight] += atom.probability * self.weight
        return found


def _atoms(*parts: tuple[Fraction, Fraction, Fraction]) -> tuple[Atom, ...]:
    return tuple(Atom(*part) for part in parts if part[0])


def _times(one: Masses, other: Masses) -> Masses:
    """Of two independent reports together."""
    found: dict[tuple[Fraction, Fraction], Fraction] = defaultdict(Fraction)
    for ((a, b), mass), ((c, d), share) in product(one.items(), other.items()):
        found[a * c, b * d] += mass * share
    return on_few_points(found)


def on_few_points(masses: Masses) -> Masses:
    """The same, or where that is too many atoms, each put on the four points of a grid next to it, its mean kept."""
    if len(masses) <= MOST_ATOMS:
        return masses
    grids = [_grid([ratios[side] for ratios in masses]) for side in (0, 1)]
    found: dict[tuple[Fraction, Fraction], Fraction] = defaultdict(Fraction)
    for (a, b), mass in masses.items():
        for (first, p), (second, q) in product(_neighbours(a, grids[0]), _neighbours(b, grids[1])):
            found[first, second] += mass * p * q
    return found


def _grid(ratios: Sequence[Fraction]) -> list[Fraction]:
    """Points from the least ratio to the largest one, at about equal factors."""
    least, most = min(ratios), max(ratios)
    step = math.log(most / least) / (_POINTS - 1)
    inner = {Fraction(math.exp(step * place)) * least for place in range(1, _POINTS - 1)}
    return sorted({least, most, *(point for point in inner if least < point < most)})


def _neighbours(ratio: Fraction, grid: Sequence[Fraction]) -> list[tuple[Fraction, Fraction]]:
    """The grid's points below and above, and with which probabilities they have the ratio as their mean."""
    place = bisect_right(grid, ratio)
    below = grid[place - 1]
    if below == ratio:
        return [(ratio, Fraction(1))]
    above = grid[place]
    up = (ratio - below) / (above - below)
    return [(below, 1 - up), (above, up)]
