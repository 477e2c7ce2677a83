"""A report depends on its own row's draws alone: in whatever batch a value is perturbed, its report is the same."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from crypto.primitives.row_streams import RowStreams
from ldp.heavy_hitters.bit_strings import Integers, Texts
from ldp.heavy_hitters.fragment_puzzle import SequenceFragmentPuzzle
from ldp.heavy_hitters.prefix_extending import PrefixExtending
from ldp.longitudinal.bit_flip import BitFlip
from ldp.longitudinal.one_bit_mean import OneBitMean
from ldp.mechanism import Mechanism
from ldp.rappor.mechanism import Rappor
from ldp.registry import ORACLES, oracle
from ldp.streams.sampled import Sampled
from tests.errors import fails
from tests.examples import examples
from tests.ldp.contract import ERROR, chi_square_p

pytestmark = pytest.mark.turn(5)

KEY = bytes(range(32))
SECRETS = np.frombuffer(Randomness.from_seed(5).bytes(32 * 600), np.uint8).reshape(600, 32)
SIZES = (2, 5, 64, 65, 300)


def streams(which: Any, purpose: str = "a test") -> RowStreams:
    """Of some of 600 clients."""
    return RowStreams(KEY, (purpose,), SECRETS[which], np.zeros((len(which), 16), np.uint8))


def collected() -> list[tuple[str, Mechanism[Any], Any]]:
    """All mechanisms that a service collects by, with values for them."""
    numbers = np.arange(600)
    found: list[tuple[str, Mechanism[Any], Any]] = [
        (f"{name}-{d}", oracle(name, d, epsilon), numbers % d)
        for name in ORACLES
        for d, epsilon in zip(SIZES, (1.0, 3.0, 0.5, 2.0, 1.0), strict=True)
    ]
    texts = np.array([f"word {number % 40}" for number in numbers], dtype=object)
    shares = numbers / 600
    return [
        *found,
        ("hr-blocks", oracle("hr", 300, 4.0, blocks=4), numbers % 300),
        ("ss-wide", oracle("ss", 3000, 0.5), numbers % 3000),
        ("dbitflip", BitFlip(300, 1.0), numbers % 300),
        ("dbitflip-all", BitFlip(12, 1.0, sampled=12), numbers % 12),
        ("1bit-mean", OneBitMean(1.0, 0.0, 1.0), shares),
        ("1bit-mean-points", OneBitMean(1.0, 0.0, 1.0, intervals=7), shares),
        ("rappor", Rappor(0.3, 0.4, 0.7, bits=70, hashes=2, cohorts=5), texts),
        ("sfp", SequenceFragmentPuzzle(Integers(16), 2.0, 3), numbers),
        ("prefix-hashing", PrefixExtending(Texts(4), 2.0, 2, groups=2).oracle(0), texts_of_four(numbers)),
        ("sampled", Sampled.for_budget("oue", 20, 0.5, Fraction(1, 4)), numbers % 20),
        ("sampled-ss", Sampled.for_budget("ss", 200, 0.5, Fraction(1, 4)), numbers % 200),
    ]


def texts_of_four(numbers: Any) -> Any:
    return np.array([f"{number % 90:04}" for number in numbers], dtype=object)


CASES = collected()


@pytest.mark.parametrize(("mechanism", "values"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
@examples(2, 6)
@given(data=st.data())
def test_a_report_is_the_same_in_every_batch(mechanism: Mechanism[Any], values: Any, data: st.DataObject) -> None:
    alone = mechanism.privatise(values, streams(np.arange(600))).fields
    seed = data.draw(st.integers(0, 1 << 30))
    some = Randomness.from_seed(seed).permutation(600)[: data.draw(st.integers(1, 600))]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(some)), max_size=4)))
    for part in np.split(some, cuts):
        again = mechanism.privatise(values[part], streams(part)).fields
        assert all(np.array_equal(one[part], other) for one, other in zip(alone, again, strict=True))
    # What the others hold changes nothing for one client.
    one = int(some[0])
    changed = np.roll(values, data.draw(st.integers(1, 599)))
    changed[one] = values[one]
    other = mechanism.privatise(changed, streams(np.arange(600))).fields
    assert all(np.array_equal(before[one], after[one]) for before, after in zip(alone, other, strict=True))


@pytest.mark.parametrize("name", ["grr", "oue", "sue", "the", "hr", "ss", "l-grr", "l-osue"])
def test_rows_with_streams_of_their_own_follow_the_channel(name: str) -> None:
    """6,000 draws each of a value, by one row each: an error of 10^-9 in each case."""
    mechanism, n = oracle(name, 5, 1.5), 6000
    secrets = np.frombuffer(Randomness.from_seed(8).bytes(32 * n), np.uint8).reshape(n, 32)
    rows = RowStreams(KEY, (name,), secrets, np.zeros((n, 16), np.uint8))
    reports = mechanism.privatise(np.full(n, 3), rows)
    law = np.array([float(p) for p in mechanism.channel()[3]])
    observed = np.bincount(mechanism.outcomes(reports), minlength=len(law))
    order = np.argsort(law)
    groups = np.searchsorted(np.cumsum(law[order]) * n, np.arange(20, n, 20))  # at least 20 are expected in each
    edges = np.unique(np.concatenate([[0], groups + 1]))
    expected = np.add.reduceat(law[order] * n, edges[edges < len(law)])
    assert chi_square_p(np.add.reduceat(observed[order], edges[edges < len(law)]), expected) > ERROR


def test_rows_draw_from_streams_of_their_own() -> None:
    rows = streams(np.arange(600))
    first, second = rows.uint64(1800).reshape(600, 3), rows.uint64(600)
    assert len(set(first.ravel().tolist()) | set(second.tolist())) == 2400
    for one in (0, 7, 599):
        alone = streams(np.array([one]))
        assert np.array_equal(alone.uint64(3), first[one])
        assert alone.uint64(1)[0] == second[one]
    assert not np.array_equal(streams(np.arange(600), "another").uint64(600), streams(np.arange(600)).uint64(600))
    assert abs(float(first.mean()) / 2**63 - 1) < 6 / np.sqrt(12 * 1800) * 2  # 6 standard deviations


def test_numbers_that_are_redrawn_come_from_their_own_row() -> None:
    bound = (1 << 63) + 1  # half of all words are rejected
    whole = streams(np.arange(600)).integers(bound, 1200).reshape(600, 2)
    assert whole.max() < bound
    for one in (0, 9, 311, 599):
        assert np.array_equal(streams(np.array([one])).integers(bound, 2), whole[one])


def test_what_is_no_rows_own_is_refused() -> None:
    rows = streams(np.arange(10))
    for draw in (
        lambda: rows.uint64(11),
        lambda: rows.bytes(10),
        lambda: rows.below(3),
        lambda: rows.permutation(10),
        lambda: rows.derive("x"),
    ):
        with fails("E700"):
            draw()
    assert rows.uint64(0).size == rows.rows(np.array([], np.int64)).uint64(0).size == 0
