"""Columns that determine each other are audited apart, so whoever opens them is warned where he looks at his rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from mining.data.tables import Table
from party.services.queries.dependencies import dependencies
from party.services.queries.policy import QueriesSection

N = 400
DRAW = np.random.default_rng(5)
PAY = DRAW.integers(20_000, 90_000, N)
GRADE = DRAW.integers(1, 9, N)


def table(**columns: object) -> Table:
    cells = [pa.chunked_array([pa.array([str(each) for each in values], pa.string())]) for values in columns.values()]  # type: ignore[attr-defined]
    return Table.of(tuple(columns), cells, (), "the test")


def policy(*columns: str, public: tuple[str, ...] = ()) -> QueriesSection:
    return QueriesSection.model_validate(
        {"public": public, "columns": {name: ["sum"] for name in columns}, "min_size": 3}
    )


OTHERS: dict[str, Callable[[], object]] = {
    "the same": lambda: PAY,
    "a tenth": lambda: PAY // 10,
    "twelfths, rounded": lambda: np.round(PAY / 12, 2),
    "what is left": lambda: 100_000 - PAY,
    "a curve": lambda: PAY**2,
    "nearly": lambda: PAY + DRAW.integers(-500, 500, N),
    "a band": lambda: PAY // 20_000 * 20_000,
}


@pytest.mark.parametrize("other", OTHERS)
def test_columns_that_determine_each_other_are_told(other: str) -> None:
    (hint,) = dependencies(policy("pay", "other"), table(pay=PAY, other=OTHERS[other]()))
    assert hint.kind == "dependent"
    assert "'pay' and 'other' nearly determine each other" in hint.sentence


@pytest.mark.parametrize("exceptions", [0, 8])
def test_public_columns_that_fix_a_value_are_told(exceptions: int) -> None:
    pay = 1000 * GRADE**2
    pay[:exceptions] += 7
    (hint,) = dependencies(
        policy("pay", public=("grade", "town")), table(grade=GRADE, town=DRAW.integers(0, 4, N), pay=pay)
    )
    assert "the public column 'grade' nearly determines 'pay'" in hint.sentence


def test_columns_that_have_little_in_common_are_no_matter() -> None:
    """Of 400 independent records a correlation of ranks of .95 has a chance below 1e-100."""
    given = table(
        pay=PAY, age=DRAW.integers(18, 66, N), name=[f"p{row}" for row in range(N)], town=DRAW.integers(0, 4, N)
    )
    assert dependencies(policy("pay", "age", public=("name", "town")), given) == ()
    assert dependencies(policy("pay", "same"), table(pay=PAY[:9], same=PAY[:9])) == ()
