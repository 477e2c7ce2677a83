"""Anonymisers that publish centres, synthetic records or virtual ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from anonymize.estimators.base import Anonymizer
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import SensitiveLevels
from anonymize.release import Release
from anonymize.tables import Table
from crypto.primitives.randomness import Randomness
from link.errors import ConfigurationError


@dataclass(eq=False, repr=False)
class Mdav(Anonymizer):
    """Microaggregation: numbers are replaced by the means of groups of k … 2k − 1 rows, see `clustering.mdav`.

    Args:
        k: Rows of a group at least.
        scaling: "deviation", "range" or "none".
    """

    k: int
    _: KW_ONLY
    scaling: Literal["deviation", "range", "none"] = "deviation"

    def _release(self, table: Table) -> Release:
        from anonymize.clustering.mdav import mdav

        return mdav(table, self.k, scaling=self.scaling)


@dataclass(eq=False, repr=False)
class SensitiveClustering(Anonymizer):
    """Classes by clustering with p sensitive values and H levels each: MAA-SLIE or GreedyPKClustering.

    Args:
        k: Rows of a class at least.
        p: Sensitive values of a class at least.
        levels: H, the levels and their weights; may be None for GreedyPKClustering.
        algorithm: "maa-slie", see `clustering.maa_slie`, or "gpkc", see `clustering.gpkc`.
        hierarchies: Of quasi-identifiers of kind tree or code.
        options: Further arguments of the algorithm, such as `{"leftover": "infoloss"}`.
        seed: Repeats all random draws.
    """

    k: int
    p: int = 1
    levels: SensitiveLevels | None = None
    _: KW_ONLY
    algorithm: Literal["maa-slie", "gpkc"] = "maa-slie"
    hierarchies: Mapping[str, Hierarchy] | None = None
    options: Mapping[str, Any] | None = None
    seed: int | None = None

    def _release(self, table: Table) -> Release:
        from anonymize.clustering.gpkc import gpkc
        from anonymize.clustering.maa_slie import maa_slie

        known: dict[str, Any] = {"rng": _rng(self.seed), "hierarchies": self.hierarchies or {}, **(self.options or {})}
        if self.algorithm == "gpkc":
            return gpkc(table, self.k, self.p, levels=self.levels, **known)
        if self.algorithm != "maa-slie":
            raise ConfigurationError(f'algorithm is "{self.algorithm}"; it must be maa-slie or gpkc.')
        if self.levels is None:
            raise ConfigurationError("MAA-SLIE needs levels of sensitivity; give them, or take gpkc.")
        return maa_slie(table, self.k, self.p, self.levels, **known)


@dataclass(eq=False, repr=False)
class Condensation(Anonymizer):
    """Synthetic records with the moments of groups of k rows, see `condensation.static`.

    Args:
        k: Rows of a group at least.
        by: Columns of kinds without moments, whose values synthetic records keep.
        factor: Synthetic records for each row.
        grouping: "random" or "mdav".
        scaling: "deviation", "range" or "none".
        seed: Repeats all random draws.
    """

    k: int
    _: KW_ONLY
    by: Sequence[str] = ()
    factor: int = 1
    grouping: Literal["random", "mdav"] = "random"
    scaling: Literal["deviation", "range", "none"] = "deviation"
    seed: int | None = None

    @property
    def _as_they_are(self) -> Sequence[str]:
        return ()  # synthetic records have none

    def _release(self, table: Table) -> Release:
        from anonymize.condensation.static import condense

        return condense(
            table,
            self.k,
            rng=_rng(self.seed),
            by=self.by,
            factor=self.factor,
            grouping=self.grouping,
            scaling=self.scaling,
        )


@dataclass(eq=False, repr=False)
class IdentityReplacement(Anonymizer):
    """Virtual records within given ranges of the original ones (PPIR), see `replacement.ppir`.

    Args:
        ranges: Of each quasi-identifier.
        alpha: Least and greatest identity similarity that is accepted.
        ch_max: Greatest feature offset that is accepted.
        hierarchies: Of quasi-identifiers of kind tree or code.
        options: Further arguments of the algorithm, such as `{"tries": 20}`.
        seed: Repeats all random draws; who knows it can undo the replacement.
    """

    ranges: Mapping[str, float]
    _: KW_ONLY
    alpha: tuple[float, float] = (0.0, 1.0)
    ch_max: float = 1.0
    hierarchies: Mapping[str, Hierarchy] | None = None
    options: Mapping[str, Any] | None = None
    seed: int | None = None

    def _release(self, table: Table) -> Release:
        from anonymize.replacement.ppir import ppir

        trees = self.hierarchies or {}
        return ppir(
            table,
            self.ranges,
            rng=_rng(self.seed),
            alpha=self.alpha,
            ch_max=self.ch_max,
            hierarchies=trees,
            **(self.options or {}),
        )


def _rng(seed: int | None) -> Randomness:
    return Randomness.from_os() if seed is None else Randomness.from_seed(seed)
