"""Privacy blankets, against the channels that they are blankets of, and against shuffled reports themselves."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from ldp.blanket import MOST_ATOMS, Atom, Blanket, on_few_points
from ldp.context.idue import InputDiscriminativeUnaryEncoding
from ldp.heavy_hitters.bit_strings import Integers
from ldp.heavy_hitters.fragment_puzzle import SequenceFragmentPuzzle
from ldp.mechanism import Channel, Mechanism
from ldp.numeric.duchi import Duchi
from ldp.numeric.duchi_vector import DuchiVector
from ldp.numeric.hybrid import Hybrid
from ldp.numeric.laplace import DiscreteLaplace
from ldp.numeric.piecewise import Piecewise
from ldp.numeric.records import Attribute, Categorical, MixedRecords, Numeric
from ldp.numeric.square_wave import SquareWave
from ldp.numeric.vectors import SampledVector
from ldp.rappor.mechanism import Rappor
from ldp.registry import oracle
from tests.examples import examples

pytestmark = pytest.mark.turn(8)

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


def check_sums(blanket: Blanket) -> None:
    """All three are distributions."""
    assert 0 < blanket.weight < 1
    assert all(atom.probability > 0 for atom in blanket.atoms)
    assert all(min(atom.first, atom.second) >= blanket.weight for atom in blanket.atoms)
    for ratio in ("one", "first", "second"):
        assert sum(atom.probability * getattr(atom, ratio, 1) for atom in blanket.atoms) == 1


# -- exact ones -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("kind", [Duchi, Piecewise, Hybrid, SquareWave])
def test_a_blanket_is_what_all_inputs_share(kind: type, epsilon: float) -> None:
    small: dict[type, dict[str, int]] = {
        Duchi: {},
        Piecewise: {"grid": 8},
        Hybrid: {"grid": 8},
        SquareWave: {"bins": 12},
    }
    mechanism = kind(epsilon, **small[kind])
    channel, found = mechanism.channel(), mechanism.blanket()
    assert of_blanket(found) == of_channel(channel, 0, len(channel) - 1)
    check_sums(found)


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4, 5, 6])
def test_the_blanket_of_a_vector_is_that_of_opposite_corners(dimensions: int) -> None:
    vector = DuchiVector(dimensions, 1.0)
    channel = vector.channel()
    assert of_blanket(vector.blanket()) == of_channel(channel, 0, len(channel) - 1)


def test_the_weight_of_laplace_noise_is_what_all_inputs_share() -> None:
    for epsilon, grid in ((0.1, 2), (1.0, 4), (6.0, 8), (16.0, 2)):
        laplace = DiscreteLaplace(epsilon, grid=grid)
        channel, found = laplace.channel(), laplace.blanket()
        weight, grouped = of_channel(channel, 0, len(channel) - 1)
        assert found.weight == weight
        assert float(weight) == pytest.approx(math.exp(-epsilon / 2), rel=epsilon / 4)
        ends = {ratio for atom in found.atoms for ratio in (atom.first, atom.second)}
        assert min(ends) <= min(min(each) for each in grouped)
        assert max(max(each) for each in grouped) <= max(ends)
        check_sums(found)


def test_the_grid_of_laplace_noise_hardly_matters() -> None:
    coarse, fine = (DiscreteLaplace(1.0, grid=grid).blanket() for grid in (64, 1 << 15))
    assert float(fine.weight) == pytest.approx(math.exp(-0.5), abs=1e-4)
    assert float(coarse.weight) == pytest.approx(float(fine.weight), abs=0.01)


@pytest.mark.parametrize("hashes", [1, 2, 3])
def test_every_text_of_rappor_has_its_blanket(hashes: int) -> None:
    rappor = Rappor(0.5, 0.25, 0.75, bits=2 * hashes, hashes=hashes, cohorts=4)
    found, channel = rappor.blanket(), rappor.channel()
    check_sums(found)
    empty = [
        math.prod(rappor.p_star if y >> bit & 1 else 1 - rappor.p_star for bit in range(rappor.bits))
        for y in range(1 << rappor.bits)
    ]
    assert all(row[y] >= found.weight * base for row in channel for y, base in enumerate(empty))
    # The first and the last filter with h ones have no bit in common.
    full = [row for row in channel if row[(1 << hashes) - 1] == max(channel[-1])] + [channel[-1]]
    grouped: Grouped = defaultdict(Fraction)
    for y, base in enumerate(empty):
        grouped[full[0][y] / base, full[-1][y] / base] += base
    assert of_blanket(found)[1] == grouped


# -- upper bounds -----------------------------------------------------------------------------------------------------
SMALL: dict[str, Mechanism[Any]] = {
    **{name: oracle(name, 3, 1.5) for name in ("grr", "sue", "oue", "the", "ss", "hr", "l-grr", "l-osue")},
    "hr-4": oracle("hr", 4, 3.0, blocks=2),
    "idue": InputDiscriminativeUnaryEncoding(3, [0.5, 1.0, 2.0]),
    "duchi": Duchi(1.0),
    "pm": Piecewise(1.0, grid=4),
    "hm": Hybrid(2.0, grid=2),
    "sw": SquareWave(1.0, bins=3),
    "duchi-vector": DuchiVector(3, 1.0),
    "rappor": Rappor(0.5, 0.25, 0.75, bits=4, hashes=2, cohorts=1),
}


def shuffled(channel: Channel, n: int, grown: float) -> float:
    """The worst δ for which n shuffled reports are (ln grown, δ)-private: one user's input changes, others' do not."""
    rows = np.array([[float(p) for p in row] for row in channel])
    places, inputs = range(rows.shape[1]), range(len(rows))
    orders = [sorted(set(permutations(outputs))) for outputs in combinations_with_replacement(places, n)]
    worst = 0.0
    for others in combinations_with_replacement(inputs, n - 1):
        laws = np.array(
            [
                [sum(math.prod(rows[x, y] for x, y in zip((victim, *others), order, strict=True)) for order in each)
                 for each in orders]
                for victim in inputs
            ]
        )  # fmt: skip
        for first, second in permutations(inputs, 2):
            worst = max(worst, float(np.clip(laws[first] - grown * laws[second], 0, None).sum()))
    return worst


def bound(blanket: Blanket, n: int, grown: float) -> float:
    """E[(L_1 + … + L_M)⁺] / (γ·n)."""
    gamma, total = float(blanket.weight), 0.0
    losses = [(float(atom.probability), float(atom.first - grown * atom.second)) for atom in blanket.atoms]
    for drawn in range(1, n + 1):
        mean = sum(
            math.prod(p for p, _ in each) * max(sum(loss for _, loss in each), 0)
            for each in product(losses, repeat=drawn)
        )
        total += math.comb(n, drawn) * gamma**drawn * (1 - gamma) ** (n - drawn) * mean
    return total / gamma / n


@pytest.mark.turn(9)
@pytest.mark.parametrize("name", SMALL)
def test_shuffled_reports_are_as_private_as_the_blanket_says(name: str) -> None:
    mechanism = SMALL[name]
    channel, found = mechanism.channel(), mechanism.blanket()
    assert found is not None
    check_sums(found)
    for n in (1, 2) if len(channel[0]) > 4 else (1, 2, 3):
        for grown in (1.0, 1.3, 2.0):
            assert shuffled(channel, n, grown) <= bound(found, n, grown) * (1 + 1e-9)


def test_laplace_noise_is_as_private_as_its_blanket_says() -> None:
    laplace = DiscreteLaplace(2.0, grid=2)
    blanket, channel = laplace.blanket(), laplace.channel()
    for grown in (1.0, 1.5, 3.0, 7.0):
        assert shuffled(channel, 1, grown) <= bound(blanket, 1, grown) * (1 + 1e-9)


# -- of several parts -------------------------------------------------------------------------------------------------
def independent(one: Channel, other: Channel) -> Channel:
    """Two reports, each of an input of its own."""
    return [[p * q for p in a for q in b] for a, b in product(one, other)]


def test_two_reports_together_have_the_joint_blanket() -> None:
    direct, duchi = oracle("grr", 3, 1.0), Duchi(0.5)
    joined = independent(direct.channel(), duchi.channel())
    found = Blanket.joint([direct.blanket(), duchi.blanket()])
    # From the first value and lower end to the second value and upper end: everything differs.
    assert of_blanket(found) == of_channel(joined, 0, 3)
    for grown in (1.0, 1.5, 3.0):
        assert shuffled(joined, 2, grown) <= bound(found, 2, grown) * (1 + 1e-9)


def test_one_of_several_attributes() -> None:
    parts: list[Any] = [oracle("grr", 3, 1.0), oracle("grr", 3, 1.0), Duchi(1.0)]
    found = Blanket.sampled([each.blanket() for each in parts], 1)
    third = Fraction(1, 3)
    assert found == Blanket.mixture((third, each.blanket()) for each in parts)
    # A record of all three; the report tells which attribute it is of.
    rows = [
        [third * p for part, x in zip(parts, record, strict=True) for p in part.channel()[x]]
        for record in product(range(3), range(3), range(2))
    ]
    assert of_blanket(found) == of_channel(rows, 0, 9)  # nothing in common with the first record
    for grown in (1.0, 2.0):
        assert shuffled([rows[0], rows[9]], 2, grown) <= bound(found, 2, grown) * (1 + 1e-9)


def test_two_of_three_attributes() -> None:
    parts: list[Any] = [oracle("grr", 2, 1.0), oracle("oue", 2, 1.0), Duchi(0.5)]
    blankets = [each.blanket() for each in parts]
    pairs = [(0, 1), (0, 2), (1, 2)]
    wanted = Blanket.mixture((Fraction(1, 3), Blanket.joint([blankets[i], blankets[j]])) for i, j in pairs)
    assert of_blanket(Blanket.sampled(blankets, 2)) == of_blanket(wanted)


def test_records_and_vectors() -> None:
    alone = Hybrid(1.0).blanket()
    assert of_blanket(SampledVector(7, 1.0).blanket()) == of_blanket(alone)  # type: ignore[arg-type]
    schema: list[Attribute] = [
        Numeric("age", 0, 120),
        Categorical("job", 30),
        Categorical("town", 500),
        Numeric("pay", 0, 9),
    ]
    for epsilon, frequency in ((1.0, "oue"), (5.0, "grr"), (16.0, "hr")):
        records = MixedRecords(schema, epsilon, frequency=frequency)
        found = records.blanket()
        assert found is not None
        check_sums(found)
        worst = max(atom.first / atom.second for atom in found.atoms)
        assert math.log(worst) <= records.exact_epsilon * (1 + 1e-9)
    puzzle = SequenceFragmentPuzzle(Integers(8), 4.0, k=2, fragment_bits=4, tag_bits=2).blanket()
    check_sums(puzzle)


def test_many_different_attributes_have_few_atoms() -> None:
    parts = [oracle("grr", d, 1.0).blanket() for d in range(2, 12)]
    found = Blanket.sampled(parts, 5)
    assert len(found.atoms) <= MOST_ATOMS
    check_sums(found)
    assert found.weight == sum_of_products([part.weight for part in parts], 5) / math.comb(10, 5)


def sum_of_products(weights: list[Fraction], k: int) -> Fraction:
    """The elementary symmetric polynomial."""
    sums = [Fraction(1)] + [Fraction(0)] * k
    for weight in weights:
        for size in range(k, 0, -1):
            sums[size] += weight * sums[size - 1]
    return sums[k]


@examples(5, 20)
@given(st.data())
def test_atoms_put_on_few_points_bound_what_they_were(data: st.DataObject) -> None:
    number = MOST_ATOMS + 1
    ratios = 1 + 8 * np.random.default_rng(data.draw(st.integers(0, 99))).random((number, 2)) ** 3
    masses = {(Fraction(a), Fraction(b)): Fraction(1, number) for a, b in ratios}
    few = on_few_points(masses)
    assert len(few) <= MOST_ATOMS
    assert sum(few.values()) == sum(masses.values())
    c, d, shift = (data.draw(st.floats(0, 4)) for _ in range(3))

    def mean(atoms: dict[tuple[Fraction, Fraction], Fraction]) -> float:
        return sum(float(mass) * max(c * float(a) - d * float(b) - shift, 0) for (a, b), mass in atoms.items())

    assert mean(dict(few)) >= mean(masses) * (1 - 1e-9) - 1e-12
    assert mean(dict(few)) <= mean(masses) + 0.3


def test_limits_that_agree_are_one_atom() -> None:
    half = Fraction(1, 2)
    assert Blanket.between(half, 2 - half).atoms == (Atom(half, 2 - half, half), Atom(half, half, 2 - half))


# -- published figures ------------------------------------------------------------------------------------------------
def amplified(blanket: Blanket, n: int, delta: float) -> float:
    """The ε of n shuffled reports by the blanket's bound: a sum of n losses, each 0 but with probability γ, by FFT."""
    gamma, points = float(blanket.weight), 1 << 16
    p, first, second = (np.array([float(getattr(a, of)) for a in blanket.atoms]) for of in FIELDS)

    def spent(epsilon: float) -> float:
        losses = first - math.exp(epsilon) * second
        spread = 2 * abs(n * gamma * (p @ losses)) + 14 * math.sqrt(n * gamma * (p @ losses**2))
        step = spread / points
        below = np.floor(losses / step)
        above = losses / step - below  # put on both neighbours with the mean kept, which is an upper bound
        law = np.zeros(points)
        law[0] = 1 - gamma
        np.add.at(law, below.astype(int) % points, gamma * p * (1 - above))
        np.add.at(law, (below.astype(int) + 1) % points, gamma * p * above)
        total = np.fft.irfft(np.fft.rfft(law) ** n, points)[: points // 2]
        return float(total @ np.arange(points // 2)) * step / gamma / n

    return float(brentq(lambda epsilon: spent(epsilon) - delta, 1e-4, 0.5, xtol=1e-8))


FIELDS = ("probability", "first", "second")


@pytest.mark.parametrize(
    ("name", "d", "at_one", "at_two"),
    [
        ("grr", 2, 0.043206, 0.114400),
        ("grr", 4, 0.034260, 0.101964),
        ("grr", 64, 0.009117, 0.036472),
        ("grr", 1024, 0.002026, 0.008667),
        ("ss", 64, 0.029924, None),  # its sets have another size here
        ("olh", 64, 0.029337, 0.079681),
        ("sue", 64, 0.030688, 0.087518),
        ("oue", 64, 0.029735, 0.078825),
    ],
)
def test_amplified_budgets_are_those_of_reference(name: str, d: int, at_one: float, at_two: float | None) -> None:
    for epsilon, expected in ((1.0, at_one), (2.0, at_two)):
        if expected is not None:
            assert amplified(oracle(name, d, epsilon).blanket(), 10_000, 1e-6) == pytest.approx(expected, abs=4e-6)


def test_the_amplified_budget_of_hadamard_response() -> None:
    assert amplified(oracle("hr", 64, 1.0, blocks=1).blanket(), 10_000, 1e-6) == pytest.approx(0.029742, abs=4e-6)
    assert amplified(oracle("hr", 64, 2.0, blocks=1).blanket(), 10_000, 1e-6) == pytest.approx(0.078956, abs=4e-6)


def test_what_a_simple_blanket_of_laplace_noise_costs() -> None:
    """Of the ideal noise, cut into thin cells, against the two limits that are taken here."""
    for epsilon, more in ((1.0, 0.05), (4.0, 0.18)):
        cells = 200
        y = (np.arange(cells) + 0.5) / cells
        masses = {(Fraction(math.exp(epsilon)), Fraction(1)): Fraction(math.exp(-epsilon) / 2)}
        masses[Fraction(1), Fraction(math.exp(epsilon))] = Fraction(math.exp(-epsilon) / 2)
        for place in y.tolist():
            ratios = (math.exp(epsilon * max(0, side)) for side in (1 - 2 * place, 2 * place - 1))
            a, b = map(Fraction, ratios)
            masses[a, b] = Fraction(math.exp(-epsilon * max(place, 1 - place)) * epsilon / 2 / cells)
        fine, simple = Blanket.of_masses(masses), DiscreteLaplace(epsilon).blanket()
        costs = amplified(simple, 10_000, 1e-6) / amplified(fine, 10_000, 1e-6) - 1
        assert costs == pytest.approx(more, abs=0.01)
