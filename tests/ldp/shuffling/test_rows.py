"""Reports as rows of one size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from ldp.mechanism import Mechanism
from ldp.registry import oracle
from ldp.sets.padding import PaddingAndSampling
from ldp.sets.size_histogram import SetSizes
from ldp.shuffling.rows import reports_in, rows_of

MECHANISMS: list[Mechanism] = [  # type: ignore[type-arg]
    PaddingAndSampling(300, 1.0, 2, oracle="grr"),
    PaddingAndSampling(300, 3.0, 2, oracle="olh"),
    SetSizes(12, 1.0),
    oracle("oue", 40, 1.0),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: each.name)
@given(n=st.integers(0, 30), seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_reports_come_back(mechanism: Mechanism, n: int, seed: int) -> None:  # type: ignore[type-arg]
    values = [[0, 1]] * n if "set" in mechanism.name or "padding" in mechanism.name else np.zeros(n, int)
    reports = mechanism.privatise(values, Randomness.from_seed(seed))
    rows = rows_of(reports)
    assert rows.shape == (n, mechanism.report_bytes)
    found, valid = reports_in(rows, mechanism)
    assert valid.all()
    assert found.to_bytes() == reports.to_bytes()
    order = Randomness.from_seed(seed + 1).permutation(n)
    assert reports_in(rows[order], mechanism)[0].to_bytes() == reports[order].to_bytes()


@given(st.lists(st.integers(0, 400), max_size=40))
@settings(deadline=None)
def test_what_nobody_sends_is_marked(values: list[int]) -> None:
    mechanism = PaddingAndSampling(300, 1.0, 2, oracle="grr")  # 300 candidates and 2 dummies
    rows = np.array(values, "<u2").view(np.uint8).reshape(len(values), 2)
    found, valid = reports_in(rows, mechanism)
    assert valid.tolist() == [value < 302 for value in values]
    assert found.fields[0].tolist() == [value for value in values if value < 302]
