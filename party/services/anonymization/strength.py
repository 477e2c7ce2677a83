"""Whether what a request asks of its classes is at least what a node requires."""

from __future__ import annotations

from jobs.anonymization.model_entry import Entry
from jobs.anonymization.model_spec import ModelSection
from jobs.anonymization.spec import AnonymizeSection


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
    for key, entries in required.entries.items():
        asked = spec.model.entries.get(key, ())
        for part in (part for least in entries for part in least.by_column()):
            (name,) = part.named
            about = [given for given in asked if name in given.columns_of(spec.sensitive)]
            if name in columns and not any(given.is_as_strict_as(part) for given in about):
                return f"{key} = {{ {', '.join(_words(part))} }}"
    return None


def _words(entry: Entry) -> list[str]:
    found = []
    for name, value in entry.model_dump(mode="json", exclude_none=True, exclude_defaults=True).items():
        shown = f'"{value}"' if isinstance(value, str) and not value[:1].isdigit() else str(value).replace("'", '"')
        found.append(f"{name} = {shown.lower() if isinstance(value, bool) else shown}")
    return found
