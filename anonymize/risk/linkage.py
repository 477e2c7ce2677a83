"""Linkage attacks on a published table: an attacker's list of people, with quasi-identifiers in the clear, against it.

The chapter's example is a voter list that names everybody's age and postal code (Sweeney 2002; Aggarwal, ch. 20.3). A
person matches every published row whose cells cover what is known of the person. Matches that are few disclose the
*identity*; matches that agree in a sensitive value disclose the *attribute*, be there ever so many.

Suppressed rows that are published all the same (blank or kept) are matched by those people only whom no other row
matches: in full-domain recoding somebody whose own cell is published cannot have been suppressed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from anonymize.columns import text_of
from anonymize.grouping import group, histogram
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.risk.coverage import NO_HIERARCHIES, PublishedTuples, matches
from anonymize.tables import Table
from link.errors import ConfigurationError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Linkage:
    """What an attacker learns of each target.

    Attributes:
        matches: Shape (t,): published rows that each target may be behind; 0 where the target is not in the table, or
            its row was left out.
        values: The sensitive values that are published; empty if no sensitive column was asked for.
        posterior: Shape (t, values): the share of each value among the matching rows; zeros where there are none.
    """

    matches: NDArray[np.int64]
    values: tuple[str, ...]
    posterior: Floats

    @cached_property
    def identity_risk(self) -> Floats:
        """Shape (t,): the chance to pick a target's row among its matches; 0 without a match."""
        return np.where(self.matches > 0, 1 / np.maximum(self.matches, 1), 0.0)

    @cached_property
    def attribute_risk(self) -> Floats:
        """Shape (t,): the largest share of a sensitive value among the matches; 1 is certainty (homogeneity)."""
        largest: Floats = self.posterior.max(axis=1, initial=0.0)
        return largest

    @property
    def unique(self) -> int:
        """Targets with one match."""
        return int((self.matches == 1).sum())

    @property
    def disclosed(self) -> int:
        """Targets whose matches all have the same sensitive value."""
        return int((self.attribute_risk >= 1).sum())


def linkage_attack(
    published: pa.Table,
    targets: Table,
    *,
    sensitive: str | None = None,
    hierarchies: Mapping[str, Hierarchy] = NO_HIERARCHIES,
    suppressed: ArrayLike | None = None,
) -> Linkage:
    """Links people to a published table.

    Args:
        published: The table as everybody sees it.
        targets: What the attacker knows: its quasi-identifiers are published columns, as they were before
            generalisation. They may be fewer than the release's.
        sensitive: The published column that the attacker is after.
        hierarchies: Those that the release was generalised by; they are public, and labels mean nothing without them.
        suppressed: Shape (published rows,), boolean: rows published without quasi-identifiers, if there are such;
            see `suppressed_rows`.

    Raises:
        ConfigurationError: A column is not published.
        InputDataError: A published cell cannot be read with these hierarchies.
    """
    hidden = np.zeros(published.num_rows, np.bool_) if suppressed is None else np.asarray(suppressed, dtype=np.bool_)
    tuples = PublishedTuples.of(published, targets.roles.quasi_identifiers, hidden)
    values, codes, known = _sensitive_codes(published, sensitive)
    shown = ~hidden & known
    counts = histogram(tuples.tuple_of[shown], len(tuples.sizes), codes[shown], len(values)) if values else None
    labels, people = group(targets.quasi_codes)
    first = np.zeros(people, np.int64)
    first[labels[::-1]] = np.arange(targets.n_rows)[::-1]
    found, shares = np.zeros(people, np.int64), np.zeros((people, len(values)))
    distinct = targets.quasi_codes[first].astype(np.int64)
    for block in matches(tuples, targets.quasi_identifiers, distinct, hierarchies):
        found[block.targets] = np.rint(block.matrix @ tuples.sizes.astype(np.float64))
        if counts is not None:
            shares[block.targets] = block.matrix @ counts.astype(np.float64)
    if hidden.any():
        left = found == 0
        found[left] = int(hidden.sum())
        shares[left] = np.bincount(codes[hidden & known], minlength=len(values))
    shares /= np.maximum(found, 1)[:, None]
    return Linkage(found[labels], values, shares[labels])


def population_sizes(
    published: pa.Table,
    population: Table,
    *,
    hierarchies: Mapping[str, Hierarchy] = NO_HIERARCHIES,
    suppressed: ArrayLike | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sizes of the published classes, in the table and in a population: what journalist and marketer risk need.

    Args:
        published: The table as everybody sees it.
        population: Everybody whom the table may be about, with the same quasi-identifiers in the clear.
        hierarchies: Those that the release was generalised by.
        suppressed: As in `linkage_attack`.

    Returns:
        f and F, each of shape (classes,), F counting the people whom the class's cells cover.

    Raises:
        ConfigurationError: A column is not published.
        InputDataError: A published cell cannot be read with these hierarchies.
    """
    tuples = PublishedTuples.of(published, population.roles.quasi_identifiers, suppressed)
    labels, people = group(population.quasi_codes)
    first = np.zeros(people, np.int64)
    first[labels[::-1]] = np.arange(population.n_rows)[::-1]
    weights = np.bincount(labels, minlength=people).astype(np.float64)
    covered = np.zeros(len(tuples.sizes))
    distinct = population.quasi_codes[first].astype(np.int64)
    for block in matches(tuples, population.quasi_identifiers, distinct, hierarchies):
        covered += weights[block.targets] @ block.matrix
    return tuples.sizes, np.rint(covered).astype(np.int64)


def suppressed_rows(rows: NDArray[np.int64] | None, suppressed: NDArray[np.int64]) -> NDArray[np.bool_] | None:
    """Which published rows are of suppressed input rows: those that were blanked or kept.

    Args:
        rows: Input row of each published row, as in a release; None: the records are synthetic.
        suppressed: Input rows that are suppressed.

    Returns:
        Shape (published rows,); None where there are no such rows.
    """
    if rows is None or not len(suppressed):
        return None
    hidden = np.isin(rows, suppressed)
    return hidden if hidden.any() else None


def _sensitive_codes(
    published: pa.Table, name: str | None
) -> tuple[tuple[str, ...], NDArray[np.int64], NDArray[np.bool_]]:
    """Distinct published values of a sensitive column, the code of each row's, and whether a row has one."""
    if name is None:
        return (), np.zeros(published.num_rows, np.int64), np.zeros(published.num_rows, np.bool_)
    if name not in published.column_names:
        raise ConfigurationError(f'Column "{name}" is not published, so nothing can be learnt of it.')
    column = published.column(name)
    plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    known = np.asarray(pc.is_valid(plain).to_numpy(), dtype=np.bool_)
    present = pc.unique(plain.drop_null())
    codes = pc.fill_null(pc.index_in(plain, present), 0).to_numpy().astype(np.int64)
    return tuple(text_of(value) for value in present.to_pylist()), codes, known
