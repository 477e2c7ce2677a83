"""What a certificate claims of all models together, as data: each model states its own part."""

from __future__ import annotations

from typing import Any

from anonymize.certificate import Claims
from anonymize.models import Requirements
from anonymize.tables import Table


def claims_of(requirements: Requirements | None, table: Table | None) -> Claims:
    """The claims of a release that meets requirements.

    Args:
        requirements: None where a release claims no condition, as after identity replacement.
        table: The input, whose order of values ordered distances need; None if nobody has it any more.

    Raises:
        ConfigurationError: t-closeness is claimed without a table.
    """
    if requirements is None:
        return Claims(k=None)
    entries: dict[str, Any] = {}
    for model in requirements.models:
        key, claim = model.claim(table)
        entries.setdefault(key, []).append(claim)
    k = max(entries.pop("k", [requirements.k]))
    return Claims(k=k, **entries)
