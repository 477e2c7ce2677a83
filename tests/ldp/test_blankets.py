"""Privacy blankets of numeric mechanisms, against the channels that they are blankets of."""

from __future__ import annotations

from fractions import Fraction

import pytest

from ldp.blanket import Blanket
from ldp.mechanism import Channel
from ldp.numeric.duchi import Duchi
from ldp.numeric.hybrid import Hybrid
from ldp.numeric.laplace import DiscreteLaplace
from ldp.numeric.piecewise import Piecewise
from ldp.numeric.square_wave import SquareWave

Grouped = dict[tuple[Fraction, Fraction], Fraction]
"""Probabilities under a blanket of the outputs with the same two ratios."""


def of_channel(channel: Channel, first: int, second: int) -> tuple[Fraction, Grouped]:
    """By definition: the blanket consists of the columns' least entries, and its weight is their sum."""
    columns = list(zip(*channel, strict=True))
    weight = sum(map(min, columns), Fraction(0))
    grouped: Grouped = {}
    for column in columns:
        ratios = column[first] * weight / min(column), column[second] * weight / min(column)
        grouped[ratios] = grouped.get(ratios, Fraction(0)) + min(column) / weight
    return weight, grouped


def of_blanket(blanket: Blanket) -> tuple[Fraction, Grouped]:
    grouped: Grouped = {}
    for atom in blanket.atoms:
        ratios = atom.first, atom.second
        grouped[ratios] = grouped.get(ratios, Fraction(0)) + atom.probability
    return blanket.weight, grouped


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("kind", [Duchi, Piecewise, Hybrid, SquareWave])
def test_a_blanket_is_what_all_inputs_share(kind: type, epsilon: float) -> None:
    small = {Duchi: {}, Piecewise: {"grid": 8}, Hybrid: {"grid": 8}, SquareWave: {"bins": 12}}[kind]
    mechanism = kind(epsilon, **small)
    channel, found = mechanism.channel(), mechanism.blanket()
    assert of_blanket(found) == of_channel(channel, 0, len(channel) - 1)
    assert sum(atom.probability for atom in found.atoms) == 1
    assert sum(atom.probability * atom.first for atom in found.atoms) == 1
    assert sum(atom.probability * atom.second for atom in found.atoms) == 1


def test_where_none_is_known_there_is_none() -> None:
    assert DiscreteLaplace(1.0).blanket() is None
