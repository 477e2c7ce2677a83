"""Loss of a release column by column: where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.release import Release
from anonymize.risk.coverage import NO_HIERARCHIES, PublishedTuples, coverage
from anonymize.tables import Table
from anonymize.utility.divergence import kl_bits
from anonymize.utility.loss import gcp, non_uniform_entropy
from link.errors import ConfigurationError


@dataclass(frozen=True)
class ColumnLoss:
    """What one quasi-identifier has lost.

    Attributes:
        ncp: Mean NCP of its cells.
        entropy: Non-uniform entropy in bits a row.
        divergence: KL divergence, in bits, of the original distribution from the one that the release suggests: each
            published row spread evenly over the values that its cell may cover. Infinite where a value that exists
            is covered by no published cell, since all its rows were left out.
        distinct: Published cells that differ.
    """

    ncp: float
    entropy: float
    divergence: float
    distinct: int


def column_losses(
    release: Release, table: Table, hierarchies: Mapping[str, Hierarchy] = NO_HIERARCHIES
) -> dict[str, ColumnLoss]:
    """Loss of each quasi-identifier of a release of generalised cells.

    Args:
        release: What an algorithm returned.
        table: Its input.
        hierarchies: Those that it was generalised by.

    Raises:
        ConfigurationError: Cells are not generalised, but centres or synthetic.
        InputDataError: A published cell cannot be read with these hierarchies.
    """
    if release.rows is None or release.cell_loss is None:
        raise ConfigurationError("Loss by column is that of generalised cells; measure moments of synthetic records.")
    suppressed = np.ones(table.n_rows, np.bool_)
    suppressed[release.rows] = False
    suppressed[release.suppressed] = True
    found = {}
    for place, column in enumerate(table.quasi_identifiers):
        shown = PublishedTuples.of(release.table, [column.name])
        groups = np.zeros(table.n_rows, np.int64)
        groups[release.rows] = shown.tuple_of
        covered = coverage(shown.cells[0], column, hierarchies.get(column.name))[shown.codes[:, 0]].astype(np.float64)
        members = covered.sum(axis=1)
        if not (members > 0).all():
            raise ConfigurationError(
                f'Column "{column.name}" publishes cells that cover no value of the input, such as centres; '
                "measure their distortion."
            )
        suggested = (shown.sizes / members) @ covered
        found[column.name] = ColumnLoss(
            ncp=gcp(release.cell_loss[:, place]),
            entropy=non_uniform_entropy(column.codes, groups, suppressed) / table.n_rows,
            divergence=kl_bits(column.counts, suggested) if suggested.sum() else float("inf"),
            distinct=len(shown.sizes),
        )
    return found
