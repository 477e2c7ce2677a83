"""Whether what a request asks of its classes is at least what a node requires."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from jobs.anonymization.model_spec import (
    ClosenessSection,
    DisclosureSection,
    DiversitySection,
    LikenessSection,
    ModelSection,
    SensitivitySection,
    ShareSection,
)
from jobs.anonymization.spec import AnonymizeSection

CLAIMS: Final[Mapping[str, Callable[[ModelSection], Sequence[Any]]]] = {
    "l": lambda model: model.l,
    "t": lambda model: model.t,
    "p": lambda model: model.p,
    "alpha": lambda model: model.alpha,
    "beta": lambda model: model.beta,
    "delta": lambda model: model.delta,
}
"""Entries of a model by its key; k and H have one number each."""


def released(spec: AnonymizeSection) -> tuple[str, ...]:
    """The columns that leave."""
    return (*spec.quasi_identifiers, *spec.sensitive, *spec.insensitive)


def unmet(required: ModelSection, spec: AnonymizeSection, levels_of: str | None = None) -> str | None:
    """What a request lacks of what is required of the columns that it takes.

    Args:
        required: Its entries name their columns.
        spec: The request. An entry without a column is about its only sensitive one.
        levels_of: The column that a required H is about.

    Returns:
        The first entry that no entry of the request is as strict as, in the words of a configuration; None where there
        is none.
    """
    columns = released(spec)
    if required.h is not None and levels_of in columns and (spec.model.h is None or spec.model.h < required.h):
        return f"H = {required.h}"
    for key, entries in CLAIMS.items():
        for least in entries(required):
            for part in _by_column(least):
                (name,) = columns_of(part, spec)
                if name in columns and not any(
                    name in columns_of(given, spec) and _as_strict(given, part) for given in entries(spec.model)
                ):
                    return f"{key} = {{ {', '.join(_words(part))} }}"
    return None


def _by_column(entry: Any) -> list[Any]:
    """An entry for each column, where one is about several."""
    if not isinstance(entry, SensitivitySection):
        return [entry]
    return [entry.model_copy(update={"columns": (name,)}) for name in entry.columns]


def columns_of(entry: Any, spec: AnonymizeSection) -> tuple[str, ...]:
    """The sensitive columns that an entry of a model protects."""
    if isinstance(entry, SensitivitySection):
        return entry.columns or spec.sensitive
    if entry.column is not None:
        return (entry.column,)
    return spec.sensitive if len(spec.sensitive) == 1 else ()


def _as_strict(given: Any, least: Any) -> bool:
    """Whether an entry about the same column holds wherever `given` does, by their parameters."""
    match given, least:
        case DiversitySection(), DiversitySection():
            at_least = given.kind == least.kind and given.value >= least.value
            return at_least and (least.c is None or (given.c is not None and given.c <= least.c))
        case ClosenessSection(), ClosenessSection():
            same = (given.distance, given.ground) == (least.distance, least.ground)
            return same and given.value <= least.value
        case SensitivitySection(), SensitivitySection():
            return given.value >= least.value
        case ShareSection(), ShareSection():
            every = given.values is None or (least.values is not None and set(least.values) <= set(given.values))
            return every and given.value <= least.value
        case LikenessSection(), LikenessSection():
            return given.value <= least.value and (given.enhanced or not least.enhanced)
        case DisclosureSection(), DisclosureSection():
            return given.value <= least.value
    raise AssertionError(given)


def _words(entry: Any) -> list[str]:
    found = []
    for name, value in entry.model_dump(mode="json", exclude_none=True, exclude_defaults=True).items():
        shown = f'"{value}"' if isinstance(value, str) and not value[:1].isdigit() else str(value).replace("'", '"')
        found.append(f"{name} = {shown.lower() if isinstance(value, bool) else shown}")
    return found
