"""SFP: both parts together spend ε, tables add up, and what is frequent is put together."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.budget import exp_below
from ldp.certify import worst_ratio
from ldp.heavy_hitters.bit_strings import Integers, Texts
from ldp.heavy_hitters.fragment_puzzle import SequenceFragmentPuzzle
from ldp.oracles.hadamard_response import HadamardResponse
from ldp.oracles.sketches import HadamardCountMeanSketch
from link.errors import ConfigurationError
from tests.errors import fails
from tests.ldp.contract import ERROR, check_reports, chi_square_p
from tests.ldp.heavy_hitters.test_prefix_extending import WORDS, planted

pytestmark = pytest.mark.turn(6)

SMALL = {"functions": 16, "buckets": 64}


@given(st.floats(0.05, 16.0), st.floats(0.05, 0.95))
def test_both_parts_together_do_not_exceed_epsilon(epsilon: float, share: float) -> None:
    puzzle = SequenceFragmentPuzzle(Texts(2), epsilon, 2, fragment_bits=2, tag_bits=2, share=share, **SMALL)
    assert puzzle.exact_epsilon <= epsilon
    # Given position and functions, the parts are independent: the worst ratio is the product of theirs.
    parts = HadamardResponse(8, puzzle.fragment.epsilon), HadamardCountMeanSketch(8, puzzle.whole.epsilon, 1, 4)
    ratios = [worst_ratio(part.channel()) for part in parts]
    assert all(ratio is not None for ratio in ratios)
    assert Fraction(puzzle.fragment.epsilon) + Fraction(puzzle.whole.epsilon) <= Fraction(epsilon)
    assert (ratios[0] or 0) * (ratios[1] or 0) <= exp_below(epsilon)


def test_reports_and_states_survive_their_bytes() -> None:
    puzzle = SequenceFragmentPuzzle(Integers(12), 2.0, 4, fragment_bits=4, tag_bits=3, **SMALL)
    check_reports(puzzle, np.arange(500), Randomness.from_seed(1))


def test_what_no_client_sends_is_refused() -> None:
    puzzle = SequenceFragmentPuzzle(Integers(12), 2.0, 4, fragment_bits=4, tag_bits=3, **SMALL)
    reports = puzzle.privatise([1], Randomness.from_seed(1))
    for place, largest in ((0, 3), (2, 200), (3, 128)):
        fields = list(reports.fields)
        fields[place] = np.full_like(fields[place], largest)
        with fails("E101"):
            puzzle.read(type(reports)(reports.fingerprint, tuple(fields)).to_bytes())


def test_positions_are_uniform_and_tell_nothing() -> None:
    puzzle, n = SequenceFragmentPuzzle(Texts(5), 1.0, 4, **SMALL), 50_000
    for seed, value in enumerate(("", "bread")):
        positions = puzzle.privatise([value] * n, Randomness.from_seed(seed)).fields[0]
        assert chi_square_p(np.bincount(positions, minlength=5), np.full(5, n / 5)) > ERROR


def test_planted_values_are_found() -> None:
    """The union bound over positions, planted values and pairs stays below the stated probability of error."""
    puzzle, n, share = SequenceFragmentPuzzle(Texts(10), 6.0, len(WORDS)), 90_000, 1 / 16
    users = int(n / puzzle.positions - 6 * np.sqrt(n / puzzle.positions))
    pairs = puzzle.fragment.domain.size
    true = np.zeros(pairs)
    true[0] = share * users
    variance = puzzle.fragment.variance(true, users)
    z = share * users / np.sqrt(variance[0] + variance[1:].max() + share * users)
    assert puzzle.positions * len(WORDS) * pairs * stats.norm.sf(z) < ERROR / 2
    # A false value that the fragments allow would have to look as frequent as a planted one in the sketch of wholes.
    noise = np.sqrt(2 * puzzle.whole.variance(np.array([share * n, 0.0]), n).max() + share * n)
    assert len(WORDS) * (1 << 12) * (1 << puzzle.tag_bits) * stats.norm.sf(share * n / noise) < ERROR / 2
    found = puzzle.find(planted(n, 5), Randomness.from_seed(6))
    assert {each.value for each in found} == set(WORDS)
    assert [each.frequency for each in found] == sorted((each.frequency for each in found), reverse=True)
    values = Counter(planted(n, 5).tolist())
    for each in found:
        assert abs(each.frequency - values[str(each.value)] / n) < stats.norm.isf(ERROR / 16) * each.deviation


def test_deviations_are_right() -> None:
    runs, z = 150, []
    values = np.repeat([40_000, 17], [1200, 800])
    for run in range(runs):
        puzzle = SequenceFragmentPuzzle(
            Integers(16), 8.0, 2, fragment_bits=4, tag_bits=4, functions=64, buckets=64, salt=run
        )
        found = puzzle.find(values, Randomness.from_seed(run))
        z += [(each.frequency - 0.6) / each.deviation for each in found if each.value == 40_000]
    assert len(z) == runs
    assert abs(np.mean(z)) < stats.norm.isf(ERROR / 2) / np.sqrt(runs)
    assert stats.chi2.ppf(ERROR, runs) < np.square(z).sum() < stats.chi2.isf(ERROR, runs)


def test_values_of_one_tag_are_told_apart() -> None:
    texts = ["aaaa", "aabb", "bbaa", "bbbb"]
    puzzle = SequenceFragmentPuzzle(Texts(4), 16.0, 4, tag_bits=1)
    found = puzzle.find(np.array(texts * 500), Randomness.from_seed(1))
    assert {each.value for each in found} == set(texts)


def test_fewer_values_than_sought_are_fine() -> None:
    found = SequenceFragmentPuzzle(Texts(3), 16.0, 5).find(["é"] * 2000, Randomness.from_seed(1))
    assert found[0].value == "é"
    assert found[0].frequency == pytest.approx(1, abs=0.1)
    assert sum(each.frequency > 0.1 for each in found) == 1


def test_noise_alone_makes_no_text() -> None:
    """With one fragment kept a position, tags hardly ever fit: nothing is made up."""
    puzzle = SequenceFragmentPuzzle(Texts(10), 0.1, 1, keep=1)
    assert puzzle.find(planted(1000, 1), Randomness.from_seed(1)) == []


def test_too_few_users_are_refused() -> None:
    puzzle = SequenceFragmentPuzzle(Texts(10), 1.0, 1, **SMALL)
    with fails("E101"):
        puzzle.find(["a", "b"], Randomness.from_seed(1))
    with fails("E101"):
        Aggregator(puzzle).estimate()


def test_parameters_read_back() -> None:
    puzzle = SequenceFragmentPuzzle(Texts(4), 1.0, 4, **SMALL)
    assert SequenceFragmentPuzzle(**puzzle.get_params()).fingerprint == puzzle.fingerprint
    for other in ({"salt": 1}, {"strings": Texts(5)}, {"strings": Integers(32)}, {"share": 0.5}):
        assert puzzle.with_params(**other).fingerprint != puzzle.fingerprint


@pytest.mark.parametrize(
    "parameters",
    [
        {"k": 0},
        {"keep": 3},
        {"epsilon": 0.001},
        {"fragment_bits": 0},
        {"fragment_bits": 5},
        {"fragment_bits": 16, "tag_bits": 5},
        {"tag_bits": 0},
        {"share": 0.0},
        {"share": 1.0},
        {"buckets": 100},
    ],
)
def test_wrong_parameters_are_refused(parameters: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        SequenceFragmentPuzzle(**{"strings": Texts(4), "epsilon": 1.0, "k": 4, **parameters})  # type: ignore[arg-type]
