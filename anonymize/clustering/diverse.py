"""A table on its way to (H, p, k)-anonymity: what MAA-SLIE and GreedyPKClustering read, and how they publish."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonymize.clustering.attributes import Attribute, Codes, Floats, Members
from anonymize.clustering.centres import publish_centres
from anonymize.clustering.entropy import level_entropy
from anonymize.clustering.growing import Clustering, GrowingClass, LossTable, Objective
from anonymize.clustering.inputs import attributes_of, check_k, sensitive_column
from anonymize.columns import Column
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models.sensitive_levels import SensitiveLevels
from anonymize.release import Release
from anonymize.tables import Table
from link.errors import ConfigurationError


@dataclass(frozen=True, eq=False)
class DiverseTable:
    """A table, and what its classes must have.

    Attributes:
        table: The input.
        attributes: Of its quasi-identifiers.
        codes: Shape (d, n), of its quasi-identifiers.
        sensitive: The column whose values and levels count.
        levels_of_values: Shape (values,): the level of each of its values.
        weights: Shape (levels,): of each level.
        k: Least number of records of a class.
        p: Least number of sensitive values of a class.
        H: Least number of levels of a class.
    """

    table: Table
    attributes: tuple[Attribute, ...]
    codes: Codes
    sensitive: Column
    levels_of_values: Codes
    weights: Floats
    k: int
    p: int
    H: int

    @classmethod
    def of(
        cls,
        table: Table,
        k: int,
        p: int,
        levels: SensitiveLevels | None,
        column: str | None,
        hierarchies: Mapping[str, Hierarchy],
    ) -> DiverseTable:
        """Checks table and model.

        Args:
            table: The input.
            k: Least number of records of a class.
            p: Least number of sensitive values of a class.
            levels: H, and the levels. Without them all values of `column` have one level; without weights each weighs
                1.
            column: The sensitive column where no levels name it; where there is only one, None is enough.
            hierarchies: Of quasi-identifiers.

        Raises:
            ConfigurationError: A parameter does not suit the table; the sentence says what would.
            InputDataError: A value has no place in its column's hierarchy.
        """
        attributes = attributes_of(table, hierarchies)
        check_k(k, table.n_rows)
        sensitive = sensitive_column(table, column if levels is None else levels.column)
        levels = levels or SensitiveLevels(1, (sensitive.texts,), sensitive.name)
        of_values = levels.codes(sensitive)
        weights = np.ones(len(levels.levels)) if levels.weights is None else np.array(levels.weights, np.float64)
        level_counts = np.bincount(of_values, sensitive.counts, len(weights))
        _check_diversity("p", p, k, sensitive.counts, "sensitive values")
        _check_diversity("H", levels.h, k, level_counts, "levels of sensitivity")
        codes = np.ascontiguousarray(table.quasi_codes.T)
        return cls(table, attributes, codes, sensitive, of_values, weights, k, p, levels.h)

    def clustering(self, loss: LossTable, objective: Objective) -> Clustering:
        """The rules of a clustering."""
        return Clustering(
            attributes=self.attributes,
            codes=self.codes,
            values=self.sensitive.codes,
            levels_of_values=self.levels_of_values,
            levels=len(self.weights),
            k=self.k,
            p=self.p,
            H=self.H,
            loss=loss,
            objective=objective,
        )

    def publish(
        self, algorithm: str, classes: Sequence[GrowingClass], leftover: int, details: Mapping[str, object]
    ) -> Release:
        """The release of centres.

        Its statistics are `classes_built`, `leftover` (records), `largest` (records of a class), `epp`, the mean
        entropy of classes (eq. 22), and `r_il`, the mean distance of records from their centres, summed over
        attributes (eq. 23).

        Args:
            algorithm: Its name.
            classes: All records are in one of them.
            leftover: How many joined last.
            details: What the release says besides the parameters of the model.
        """
        labels = np.empty(self.table.n_rows, np.int64)
        for number, grown in enumerate(classes):
            labels[grown.rows] = number
        entropies = level_entropy([grown.level_counts for grown in classes], self.weights)
        statistics = {
            "classes_built": len(classes),
            "leftover": leftover,
            "largest": max(len(grown.rows) for grown in classes),
            "epp": float(entropies.mean()),
        }
        known = {"k": self.k, "p": self.p, "H": self.H, "column": self.sensitive.name, **details}
        release = publish_centres(algorithm, self.table, self.attributes, labels, statistics, known)
        assert release.cell_loss is not None
        statistics["r_il"] = float(release.cell_loss.sum() / self.table.n_rows)
        return release


def centroid_loss(attribute: Attribute, members: Members, candidates: Codes) -> Floats:
    """InfoLoss: the distances of a class's records from its centre (MAA-SLIE, eq. 20)."""
    return attribute.loss_with(members, candidates)


def generalisation_loss(attribute: Attribute, members: Members, candidates: Codes) -> Floats:
    """Records times the width of the one value that covers them (Campan, Truta, Miller and Sinca)."""
    return (len(members) + 1) * attribute.spread_with(members, candidates)


def _check_diversity(name: str, wanted: int, k: int, counts: NDArray[np.int64] | Floats, what: str) -> None:
    most = int(np.count_nonzero(counts))
    if not 1 <= wanted <= most:
        raise ConfigurationError(f"{name} is {wanted}, but the table has {most} {what}; choose from 1 to {most}.")
    if wanted > k:
        raise ConfigurationError(
            f"{name} is {wanted}, but a class of k = {k} records may have {k} {what} only; raise k."
        )
