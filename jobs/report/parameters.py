"""The parameters of a job as people are shown them: what means something there, and who computes by default.

The specification that all parties sign is left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jobs.parameters import engine_of
from jobs.spec import JobSpec

_OF_COLUMNS: Final[Mapping[str, frozenset[str]]] = {
    "itemsets": frozenset({"engine", "cuts", "quantiles"}),
    "trust": frozenset({"helper"}),
}
"""By table what the specification lets stand at its default only, where the parties hold rows of their own."""


def parameters(spec: JobSpec) -> dict[str, dict[str, Any]]:
    """The tables of a job as JSON values, without what it leaves open."""
    tables: dict[str, dict[str, Any]] = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    if not spec.is_vertical:
        for name, meaningless in _OF_COLUMNS.items():
            tables[name] = {key: value for key, value in tables.get(name, {}).items() if key not in meaningless}
    if shares_sums(spec):
        tables["trust"]["compute"] = list(spec.compute)  # who together could learn the most: also where it is a default
    return tables


def shares_sums(spec: JobSpec) -> bool:
    """Whether two computing parties hold shares of what the others bring."""
    if spec.privacy.model != "exact":
        return False
    if spec.mines:
        return spec.itemsets.disclose != "candidates" or engine_of(spec) == "replicated"
    return spec.anonymizes or (spec.k_means is not None and spec.is_vertical)
