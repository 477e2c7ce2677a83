"""Synthetic people and the five functions that decide their class, of Agrawal and Srikant, SIGMOD 2000.

They are from Agrawal, Imielinski and Swami, "Database Mining: A Performance Perspective", IEEE TKDE 5(6), 1993.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# The range of each column, in the order of `people`.
RANGES = {
    "salary": (20_000.0, 150_000.0),
    "commission": (0.0, 75_000.0),
    "age": (20.0, 80.0),
    "education": (-0.5, 4.5),
    "house": (50_000.0, 1_350_000.0),
    "house_years": (1.0, 30.0),
    "loan": (0.0, 500_000.0),
}


def people(n: int, seed: int) -> Floats:
    """Shape (n, 7): one column for each range."""
    rng = np.random.default_rng(seed)
    salary = rng.uniform(20_000, 150_000, n)
    commission = np.where(salary >= 75_000, 0, rng.uniform(10_000, 75_000, n))
    zipcode = rng.integers(1, 10, n)
    return np.stack(
        [
            salary,
            commission,
            rng.uniform(20, 80, n),
            rng.integers(0, 5, n).astype(float),
            rng.uniform(0.5, 1.5, n) * zipcode * 100_000,
            rng.uniform(1, 30, n),
            rng.uniform(0, 500_000, n),
        ],
        axis=1,
    )


def groups(function: int, records: Floats) -> NDArray[np.bool_]:
    """Whether each person is in group A under function 1 to 5."""
    salary, commission, age, education, house, years, loan = records.T
    young, old = age < 40, age >= 60
    middle = ~young & ~old

    def earns(low: float, high: float) -> NDArray[np.bool_]:
        return (low * 1000 <= salary) & (salary <= high * 1000)

    def educated(low: int, high: int) -> NDArray[np.bool_]:
        return (low <= education) & (education <= high)

    income = 0.67 * (salary + commission) - 0.2 * loan
    equity = 0.1 * house * np.maximum(years - 20, 0)
    return (
        young | old,
        (young & earns(50, 100)) | (middle & earns(75, 125)) | (old & earns(25, 75)),
        (young & ((educated(0, 1) & earns(25, 75)) | (educated(2, 3) & earns(50, 100))))
        | (middle & ((educated(1, 3) & earns(50, 100)) | (educated(4, 4) & earns(75, 125))))
        | (old & ((educated(2, 4) & earns(50, 100)) | (educated(1, 1) & earns(25, 75)))),
        income - 10_000 > 0,
        income + 0.2 * equity - 10_000 > 0,
    )[function - 1]
