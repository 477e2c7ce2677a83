"""`auto`: which oracle is chosen, and that the reason is true."""

from __future__ import annotations

import pytest

from ldp.choice import choose
from ldp.registry import oracle
from tests.errors import fails


@pytest.mark.parametrize(
    ("d", "epsilon", "n", "limit", "expected"),
    [
        (4, 1.0, None, None, "grr"),
        (10, 1.0, None, None, "ss"),
        (1024, 1.0, None, None, "olh"),
        (1024, 1.0, None, 4, "hr"),
        (1_000_000, 1.0, 10_000_000, None, "hr"),
        (1_000_000, 1.0, 10_000, None, "olh"),
        (1000, 8.0, None, None, "grr"),
    ],
)
def test_by_domain_budget_users_and_bandwidth(
    d: int, epsilon: float, n: int | None, limit: int | None, expected: str
) -> None:
    choice = choose(d, epsilon, n=n, max_report_bytes=limit)
    assert choice.oracle.name == expected
    assert choice.reason.startswith(expected)
    assert [each.deviation for each in choice.candidates] == sorted(each.deviation for each in choice.candidates)
    for each in choice.candidates:
        if each.deviation < choice.candidates[0].deviation * 0.999:
            assert each.oracle.name in choice.reason


def test_a_limit_that_no_oracle_keeps() -> None:
    with fails("E100"):
        choose(1000, 1.0, max_report_bytes=1)


def test_auto_is_a_name() -> None:
    assert oracle("auto", 1024, 1.0).name == "olh"
    assert oracle("auto", ["yes", "no"], 1.0).name == "grr"
