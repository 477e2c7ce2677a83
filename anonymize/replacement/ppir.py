"""PPIR: privacy protection by identity replacement.

Source: Kang and Meng, "An enhanced privacy-protection method based on identity replacement", Journal of Zhengzhou
University (Natural Science Edition) 50(2), 2018, section 2.

Each record is replaced by a virtual one: every attribute moves at random within its range T. The virtual record is
accepted if its identity similarity α lies within given bounds and its feature offset |1 − β| is small enough; else it
is drawn again, up to a number of tries. There is no formal guarantee: a record may come out as it was, unless α has an
upper bound below 1. The paper counts a record as leaked if α ≥ 0.95.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.release import Release, publish
from anonymize.replacement.attributes import Dates, Numbers, Ranks, Replaced, Values
from anonymize.replacement.similarity import Beta, feature_similarity, identity_similarity
from anonymize.tables import Table
from crypto.primitives.randomness import Randomness
from link.errors import ConfigurationError

Floats = NDArray[np.float64]
Exhausted = Literal["best", "suppress"]

LEAK: Final = 0.95
"""The identity similarity from which the paper calls a record leaked."""

_NO_NUMBERS: Final[Mapping[str, float]] = MappingProxyType({})
_NO_HIERARCHIES: Final[Mapping[str, Hierarchy]] = MappingProxyType({})


def ppir(
    table: Table,
    ranges: Mapping[str, float],
    *,
    rng: Randomness,
    alpha: tuple[float, float] = (0.0, 1.0),
    ch_max: float = 1.0,
    beta: Beta = "projection",
    tries: int = 100,
    exhausted: Exhausted = "best",
    scales: Mapping[str, float] = _NO_NUMBERS,
    influences: Mapping[str, float] = _NO_NUMBERS,
    weights: Mapping[str, float] = _NO_NUMBERS,
    hierarchies: Mapping[str, Hierarchy] = _NO_HIERARCHIES,
) -> Release:
    """Publishes a virtual record for each record.

    Args:
        table: Quasi-identifiers of any kind; all other columns are published as they are.
        ranges: T of each quasi-identifier: in its own unit for numbers, days for dates, ranks for ordinal columns, tree
            distance (at most 1) for others. 0 keeps the values.
        rng: Where virtual records come from.
        alpha: Least and greatest α that is accepted.
        ch_max: Greatest |1 − β| that is accepted. β is of the numeric columns; without any it is 1.
        beta: The reading of β, see `feature_similarity`.
        tries: How often a record is drawn at most.
        exhausted: What is published of a record of which no draw was accepted: the draw that came nearest ("best"), or
            nothing ("suppress").
        scales: By numeric column, what a value of 0 is compared with; its range unless given.
        influences: ζ by quasi-identifier; 1 unless given.
        weights: By numeric column, what its numbers are multiplied by in β; 1 unless given. Without weights the column
            of the largest numbers decides β.
        hierarchies: Of quasi-identifiers of kind tree or code; without one, all values of a column differ by 1.

    Returns:
        Rows in the input's order. The statistics hold `accepted` and `exhausted` records, `mean_tries`, and
        `leak_rate`, the share of published records with α ≥ 0.95. The details hold the parameters, and of each input
        row α, β, and how many draws it took, as `identity_similarity`, `feature_similarity` and `draws`.

    Raises:
        ConfigurationError: A parameter or a column does not suit; the sentence says what would.
        InputDataError: A hierarchy lacks values of its column.
    """
    _check(table, ranges, alpha, ch_max, tries, exhausted)
    names = [column.name for column in table.quasi_identifiers]
    for what, given in (("scale", scales), ("influence", influences), ("weight", weights), ("hierarchy", hierarchies)):
        for name in given:
            if name not in names:
                raise ConfigurationError(
                    f'The {what} of "{name}" is given, which is no quasi-identifier; take it away.'
                )
    replaced: list[Replaced] = []
    for column in table.quasi_identifiers:
        reach = float(ranges[column.name])
        if column.kind == "numeric":
            replaced.append(Numbers(column, reach, float(scales.get(column.name, reach))))
        elif column.kind == "date":
            replaced.append(Dates(column, reach))
        elif column.kind == "ordinal":
            replaced.append(Ranks(column, reach))
        else:
            replaced.append(Values(column, reach, hierarchies.get(column.name)))
    vectors = [i for i, attribute in enumerate(replaced) if isinstance(attribute, Numbers)]
    weighted = np.array([weights.get(names[i], 1.0) for i in vectors])
    original = np.stack([a.given for a in replaced if isinstance(a, Numbers)], axis=1) * weighted if vectors else None
    zeta = np.array([influences.get(name, 1.0) for name in names])

    best = _Best(table.n_rows, len(names))
    pending = np.arange(table.n_rows)
    for _ in range(tries):
        virtual = np.stack([attribute.draw(pending, rng) for attribute in replaced], axis=1)
        similar = [a.similarity(pending, column) for a, column in zip(replaced, virtual.T, strict=True)]
        identity = identity_similarity(np.stack(similar, axis=1), zeta)
        feature = np.ones(len(pending))
        if original is not None:
            feature = feature_similarity(original[pending], virtual[:, vectors] * weighted, beta)
        excess = np.maximum(alpha[0] - identity, 0) + np.maximum(identity - alpha[1], 0)
        excess += np.maximum(np.abs(1 - feature) - ch_max, 0)
        best.improve(pending, virtual, identity, feature, excess)
        pending = pending[excess > 0]
        if not len(pending):
            break
    rows = np.flatnonzero(best.excess == 0) if exhausted == "suppress" else np.arange(table.n_rows)
    columns = {n: a.cells(best.virtual[rows, i]) for i, (n, a) in enumerate(zip(names, replaced, strict=True))}
    return Release(
        algorithm="ppir",
        table=publish(table, columns, rows),
        rows=rows,
        classes=None,
        suppressed=np.setdiff1d(np.arange(table.n_rows), rows),
        statistics={
            "accepted": table.n_rows - len(pending),
            "exhausted": len(pending),
            "mean_tries": float(best.draws.mean()),
            "leak_rate": float(np.mean(best.identity[rows] >= LEAK)) if len(rows) else 0.0,
        },
        details={
            "ranges": {name: float(ranges[name]) for name in names},
            "alpha": alpha,
            "ch_max": ch_max,
            "beta": beta,
            "tries": tries,
            "exhausted": exhausted,
            "scales": dict(scales),
            "influences": dict(influences),
            "weights": dict(weights),
            "identity_similarity": best.identity,
            "feature_similarity": best.feature,
            "draws": best.draws,
        },
    )


class _Best:
    """The best draw of each record so far: the one that exceeds the bounds least."""

    def __init__(self, n: int, d: int) -> None:
        self.virtual = np.empty((n, d))
        self.identity, self.feature = np.empty(n), np.empty(n)
        self.excess = np.full(n, np.inf)
        self.draws = np.zeros(n, np.int64)

    def improve(
        self, rows: NDArray[np.int64], virtual: Floats, identity: Floats, feature: Floats, excess: Floats
    ) -> None:
        """Takes those of new draws for some rows that are better."""
        self.draws[rows] += 1
        better = excess < self.excess[rows]
        at = rows[better]
        self.virtual[at], self.identity[at], self.feature[at] = virtual[better], identity[better], feature[better]
        self.excess[at] = excess[better]


def _check(
    table: Table, ranges: Mapping[str, float], alpha: tuple[float, float], ch_max: float, tries: int, exhausted: str
) -> None:
    names = table.roles.quasi_identifiers
    if not names:
        raise ConfigurationError("The table has no quasi-identifiers, so there is nothing to replace; name some.")
    for name in names:
        if name not in ranges:
            raise ConfigurationError(f'Column "{name}" has no range; give it one, 0 to keep its values.')
        if not 0 <= ranges[name] < float("inf"):
            raise ConfigurationError(
                f'The range of column "{name}" is {ranges[name]:g}; it must be 0 or a positive number.'
            )
    for name in ranges:
        if name not in names:
            raise ConfigurationError(f'A range is given for "{name}", which is no quasi-identifier; take it away.')
    if not 0 <= alpha[0] <= alpha[1] <= 1:
        raise ConfigurationError(f"alpha is {alpha[0]:g} to {alpha[1]:g}; both must lie in 0 … 1, the lower one first.")
    if not ch_max >= 0:
        raise ConfigurationError(f"ch_max is {ch_max:g}; it must be 0 or more.")
    if tries < 1:
        raise ConfigurationError(f"tries is {tries}; each record must be drawn once at least.")
    if exhausted not in get_args(Exhausted):
        raise ConfigurationError(f'exhausted is "{exhausted}"; it must be one of {", ".join(get_args(Exhausted))}.')
