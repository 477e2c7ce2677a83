"""l-diversity: distinct, entropy and recursive (Machanavajjhala et al. 2006; Aggarwal, Data Mining, section 20.3.2).

A class holds the values of a sensitive column with counts n_1 ≥ … ≥ n_r; N is their sum, p_i = n_i / N.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anonymize.certificate import DiversityClaim
from anonymize.grouping import Histograms
from anonymize.models.model import Claim, Protection, SingleColumnModel
from anonymize.models.rationals import TOLERANCE, Rational, below, exact, whole, written
from anonymize.tables import Table
from link.errors import ConfigurationError


@dataclass(frozen=True)
class DistinctDiversity(SingleColumnModel):
    """Every class has at least l distinct sensitive values: r ≥ l.

    Attributes:
        l: At least 1.
        column: The sensitive column.
    """

    l: int  # noqa: E741 - the paper's letter
    column: str
    name: ClassVar[str] = "distinct l-diversity"
    protection: ClassVar[Protection] = Protection(
        "Each class has at least {l} values of {column}.",
        "One of them may be by far the most likely, and who can rule some out is nearer to the rest.",
    )
    monotone_with_suppression: ClassVar[bool] = True

    def __post_init__(self) -> None:
        whole(self.l, "l")

    @property
    def least_size(self) -> int:
        """As many records as values."""
        return self.l

    def claim(self, table: Table | None) -> Claim:  # noqa: ARG002 - nothing of the table is claimed
        """The key of a certificate's `model`, and the entry there."""
        return "l", DiversityClaim(kind="distinct", value=self.l, column=self.column)

    def satisfied(self, classes: Histograms) -> NDArray[np.bool_]:
        """Shape (c,): which classes have enough values."""
        return np.asarray(np.count_nonzero(classes.sensitive[self.column], axis=1) >= self.l, bool)

    def infeasible(self, table: Table, suppressible: int) -> str | None:  # noqa: ARG002 - certain whatever is left out
        """Certain where the whole table has fewer than l values."""
        return too_few_values(table, self.column, self.l, "l")


@dataclass(frozen=True)
class EntropyDiversity(SingleColumnModel):
    """The entropy of the sensitive values in every class is at least ln l (equation 20.10).

    That is, exp(H) ≥ l, where H = −Σ p_i ln p_i; equality is met within a share of 1e-9.

    Attributes:
        l: At least 1; it need not be whole.
        column: The sensitive column.

    Example:
        Of a table with the ages and illnesses of six people:

        >>> EntropyDiversity(1.5, "illness").satisfied(classes)
        array([ True, False])
    """

    l: float  # noqa: E741 - the paper's letter
    column: str
    name: ClassVar[str] = "entropy l-diversity"
    protection: ClassVar[Protection] = Protection(
        "The values of {column} are spread in each class as widely as {l} equally likely ones.",
        "Values that are alike in meaning count as different.",
    )

    def __post_init__(self) -> None:
        _at_least_one(self.l)

    @property
    def least_size(self) -> int:
        """The entropy of r values is at most ln r."""
        return math.ceil(self.l)

    def claim(self, table: Table | None) -> Claim:  # noqa: ARG002 - nothing of the table is claimed
        """The key of a certificate's `model`, and the entry there."""
        return "l", DiversityClaim(kind="entropy", value=self.l, column=self.column)

    def satisfied(self, classes: Histograms) -> NDArray[np.bool_]:
        """Shape (c,): which classes are diverse enough."""
        return np.asarray(np.exp(entropies(classes.sensitive[self.column])) >= self.l * (1 - TOLERANCE), bool)

    def infeasible(self, table: Table, suppressible: int) -> str | None:
        """Certain where the table is not diverse enough even when its most frequent values lose what may be left out.

        Entropy is concave, so the records that are released have, all together, at least the entropy of their least
        diverse class. Records of the most frequent value raise it most when they are left out; the bound lets fractions
        of records go.
        """
        counts = table.sensitive_column(self.column).counts
        most = float(np.exp(entropies(_capped(counts, suppressible)[None, :])[0]))
        if most >= self.l * (1 - TOLERANCE):
            return None
        return (
            f'Entropy l-diversity with l = {self.l} cannot be met: the values of column "{self.column}" reach '
            f"{most:.4f} at most with {suppressible} of {table.n_rows} records left out."
        )


@dataclass(frozen=True)
class RecursiveDiversity(SingleColumnModel):
    """Recursive (c, l)-diversity: p_1 < c · (p_l + … + p_r) in every class (equation 20.11).

    False where r < l. The comparison is strict and exact: c is the decimal that is written.

    Attributes:
        c: Above 0.
        l: At least 1.
        column: The sensitive column.

    Example:
        Of a table with the ages and illnesses of six people:

        >>> RecursiveDiversity(2, 2, "illness").satisfied(classes)
        array([ True, False])
    """

    c: Rational
    l: int  # noqa: E741 - the paper's letter
    column: str
    name: ClassVar[str] = "recursive (c, l)-diversity"
    protection: ClassVar[Protection] = Protection(
        "In each class the most frequent value of {column} is not much more frequent than those from the l-th on "
        "together (c = {c}, l = {l}).",
        "Values that are alike in meaning count as different.",
    )

    def __post_init__(self) -> None:
        whole(self.l, "l")
        if exact(self.c, "c") <= 0:
            raise ConfigurationError(f"c of recursive (c, l)-diversity is {self.c}; it must be above 0.")

    @property
    def least_size(self) -> int:
        """As many records as values."""
        return self.l

    def claim(self, table: Table | None) -> Claim:  # noqa: ARG002 - nothing of the table is claimed
        """The key of a certificate's `model`, and the entry there."""
        return "l", DiversityClaim(kind="recursive", value=self.l, column=self.column, c=written(self.c))

    def satisfied(self, classes: Histograms) -> NDArray[np.bool_]:
        """Shape (c,): which classes are diverse enough."""
        counts = classes.sensitive[self.column]
        before = min(self.l - 1, counts.shape[1])  # values that the tail leaves out
        tail = classes.sizes
        if before:
            place = counts.shape[1] - before
            tail = tail - np.partition(counts, place, axis=1)[:, place:].sum(axis=1)
        return below(counts.max(axis=1, initial=0), exact(self.c, "c"), tail)


def entropies(counts: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Shape (c,): the entropy, in nats, of each row of counts, shape (c, m); an empty row has none, 0."""
    sizes = np.maximum(counts.sum(axis=1), 1)
    logs = np.log(np.where(counts > 0, counts, 1))
    result: NDArray[np.float64] = np.log(sizes) - (counts * logs).sum(axis=1) / sizes
    return result


def too_few_values(table: Table, column: str, least: int, what: str) -> str | None:
    """Why no class can have so many distinct values of a column; None if the table has them."""
    values = int(np.count_nonzero(table.sensitive_column(column).counts))
    if values >= least:
        return None
    return f'{what} = {least} cannot be met: column "{column}" has {values} distinct values only.'


def _capped(counts: NDArray[np.int64], removed: int) -> NDArray[np.float64]:
    """Counts after the largest are cut to one height, so that `removed` records are out; 1 of each is kept."""
    ordered = np.sort(counts[counts > 0])[::-1].astype(np.float64)
    surplus = np.cumsum(ordered) - ordered * np.arange(1, len(ordered) + 1)  # goes when all are cut to the i-th count
    cut = int(np.searchsorted(surplus, removed, side="right"))  # values that are cut
    height = (ordered[:cut].sum() - removed) / cut
    return np.minimum(ordered, max(height, 1.0))


def _at_least_one(l: float) -> None:  # noqa: E741 - the paper's letter
    if exact(l, "l") < 1:
        raise ConfigurationError(f"l is {l}; it must be at least 1.")
