"""The parameters of a job as people are shown them: what means something there, and who computes by default.

The specification that all parties sign is left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jobs.kinds.registry import kind_of
from jobs.spec.job import AUTO_HELPER, JobSpec

_OF_COLUMNS: Final[Mapping[str, frozenset[str]]] = {
    "itemsets": frozenset({"engine", "cuts", "quantiles"}),
}
"""By table what the specification lets stand at its default only, where the parties hold rows of their own."""


def parameters(spec: JobSpec) -> dict[str, dict[str, Any]]:
    """The tables of a job as JSON values, without what it leaves open."""
    tables: dict[str, dict[str, Any]] = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    if not spec.is_vertical:
        for name, meaningless in _OF_COLUMNS.items():
            tables[name] = {key: value for key, value in tables.get(name, {}).items() if key not in meaningless}
        if (helper := kind_of(spec).helper(spec)) is None:
            del tables["trust"]["helper"]
        else:
            tables["trust"]["helper"] = helper  # whom "auto" takes
    elif spec.trust.helper == AUTO_HELPER:
        tables["trust"]["helper"] = kind_of(spec).helper(spec) or "none"
    if kind_of(spec).shares(spec):
        tables["trust"]["compute"] = list(spec.compute)  # who together could learn the most: also where it is a default
    return tables
