"""A mechanism's privacy blanket: what an accountant of amplification by shuffling needs to know of it.

Source: Balle, Bell, Gascón and Nissim, "The Privacy Blanket of the Shuffle Model", CRYPTO 2019, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


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
    """The decomposition R(x) = γ·B + (1 − γ)·R'(x) with the largest γ, seen from a worst pair of inputs.

    Attributes:
        weight: γ, the probability with which a report does not depend on the value at all.
        atoms: The outputs grouped by their likelihoods; `probability` adds up to 1, and so do the means of `first` and
            `second` under it.
    """

    weight: Fraction
    atoms: tuple[Atom, ...]
