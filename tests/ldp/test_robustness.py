"""Every mechanism either works or refuses with one clear sentence, whatever it is given."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.blanket import Blanket
from ldp.mechanism import Mechanism
from ldp.numeric.duchi_vector import DuchiVector
from ldp.numeric.names import NUMERIC, numeric
from ldp.numeric.records import Categorical, MixedRecords, Numeric
from ldp.numeric.square_wave import SquareWave
from ldp.numeric.vectors import SampledVector
from ldp.rappor.mechanism import Rappor
from ldp.registry import ORACLES, oracle, settable
from link.errors import ComineError, ConfigurationError, InputDataError

pytestmark = pytest.mark.turn(5)

# A sketch's work for an estimate grows with its functions, and its table with its buckets.
SMALL = {"flh": {"functions": 16}, "cms": {"functions": 8, "buckets": 64}, "hcms": {"functions": 8, "buckets": 64}}
BUDGETS: tuple[Any, ...] = (math.nan, -1, 0, 0.0, math.inf, -math.inf, 16.1, 1e-12, "1", None, True, [1.0], 1j)


def sentence(error: ComineError) -> str:
    """What an error tells: one sentence of at most a few lines."""
    text = error.message
    assert 20 <= len(text) <= 400, text
    assert not text.endswith((".", "!", ":")), text
    assert "\n" not in text, text
    return text


def refused(kind: type[ComineError], act: Any) -> None:
    with pytest.raises(kind) as caught:
        act()
    sentence(caught.value)


def check_blanket(blanket: Blanket | None, epsilon: float) -> None:
    """It consists of distributions, and tells no two inputs better apart than ε allows."""
    assert blanket is not None
    assert 0 < blanket.weight < 1
    for of in ("one", "first", "second"):
        assert sum(atom.probability * getattr(atom, of, 1) for atom in blanket.atoms) == 1
    assert min(min(atom.first, atom.second) for atom in blanket.atoms) >= blanket.weight
    assert math.log(max(atom.first / atom.second for atom in blanket.atoms)) <= epsilon + 1e-9


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize(("epsilon", "d"), [(0.01, 2), (0.01, 1_000_000), (1, 3), (10, 1000)])
def test_every_oracle_works_at_every_size(name: str, d: int, epsilon: float) -> None:
    found = oracle(name, d, epsilon, **SMALL.get(name, {}))
    assert 0 < found.exact_epsilon <= epsilon
    check_blanket(found.blanket(), epsilon)
    values = np.array([0, d - 1, d - 1, 1])
    reports = found.read(found.privatise(values, Randomness.from_seed(1)).to_bytes())
    assert found.report_bytes * len(values) <= len(reports.to_bytes())
    estimate = Aggregator(found).add(reports).estimate()
    for numbers in (estimate.counts, estimate.variances):
        assert numbers.shape == (d,)
        assert np.isfinite(numbers).all()
    assert (estimate.variances >= 0).all()
    low, high = estimate.intervals(0.9, joint=True)
    assert np.all((low >= 0) & (low <= high) & (high <= len(values)))
    assert found.supports(reports, np.array([0, d - 1])).shape == (len(values), 2)


@pytest.mark.parametrize("name", ORACLES)
def test_oracles_refuse_in_one_sentence(name: str) -> None:
    for budget in BUDGETS:
        refused(ConfigurationError, lambda budget=budget: oracle(name, 4, budget))
    for domain in (0, 1, -3, 1 << 25, [], ["one"], ["a", "a"]):
        refused(ConfigurationError, lambda domain=domain: oracle(name, domain, 1.0))
    refused(ConfigurationError, lambda: oracle(name, 4, 1.0, no_such=1))
    for parameter in settable(name):
        if parameter != "salt":
            for value in (-1, 0, 1 << 40):
                refused(ConfigurationError, lambda p=parameter, v=value: oracle(name, 4, 1.0, **{p: v}))
    found = oracle(name, 4, 1.0, **SMALL.get(name, {}))
    for wrong in ([4], [-1], [0.5], ["a"], [[1]], [math.nan], [None], [1, 1 << 70], 3, [True, 1, None], ["0"]):
        refused(InputDataError, lambda wrong=wrong: found.privatise(wrong))
    empty = found.privatise([])
    assert len(found.read(empty.to_bytes())) == 0
    refused(InputDataError, Aggregator(found).add(empty).estimate)
    refused(InputDataError, lambda: oracle(name, ["bread", "milk"], 1.0, **SMALL.get(name, {})).privatise(["tea"]))


def others(epsilon: Any) -> list[Any]:
    """Makers of the mechanisms that are no oracles, with a budget."""
    return [
        *(lambda name=name: numeric(name, epsilon) for name in NUMERIC),
        lambda: SquareWave(epsilon),
        lambda: DuchiVector(3, epsilon),
        lambda: SampledVector(3, epsilon),
        lambda: MixedRecords([Numeric("age", 0, 9), Categorical("job", 5)], epsilon),
        lambda: Rappor.for_budget(epsilon, 2 * epsilon if isinstance(epsilon, int | float) else epsilon),
    ]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_other_mechanisms_refuse_wrong_budgets(budget: Any) -> None:
    for make in others(budget):
        refused(ConfigurationError, make)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 7.5])
def test_other_mechanisms_work_and_have_blankets(epsilon: float) -> None:
    rng = Randomness.from_seed(2)
    inputs: list[Any] = [[0.5, -1, 1]] * len(NUMERIC) + [[0.5, 0, 1], [[0.5, -1, 1]], [[0.5, -1, 1]] * 40]
    inputs += [[[3, 4]] * 40, ["bread", ""]]
    for make, values in zip(others(epsilon), inputs, strict=True):
        found: Mechanism[Any] = make()
        assert 0 < found.exact_epsilon <= epsilon * (1 + 1e-12)
        Aggregator(found).add(found.read(found.privatise(values, rng).to_bytes())).estimate()
        refused(InputDataError, Aggregator(found).estimate)
        check_blanket(found.blanket(), found.exact_epsilon)


@pytest.mark.parametrize("values", [[math.nan], [math.inf], [2.0], ["a"], [[0.1]], [None], 0.1, [1j]])
def test_numbers_refuse_in_one_sentence(values: Any) -> None:
    for name in NUMERIC:
        refused(InputDataError, lambda name=name: numeric(name, 1.0).privatise(values))
