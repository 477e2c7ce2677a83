"""What the end of a job tells of one party's rows, and what no end tells: a part of the disclosure statement.

`link.errors.outward` lets three answers through: that a party cannot take part with its data, that it lacks room or met
a fault, and what all parties were told alike. What may lie behind the first is listed here, kind by kind of job; a test
holds the list against every place that refuses rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from crypto.protocols.masked_maximum import LABEL as SIZE_CLASSES
from jobs.resumption import goes_on
from jobs.spec import JobSpec
from link.disclosure import Declared, Learned
from mining.limits import MAX_ITEM_BYTES


@dataclass(frozen=True, slots=True)
class Reason:
    """Something about one party's rows, for jobs of some kinds.

    Attributes:
        key: A short name, for tests.
        what: It, in words for people.
        applies: Whether it can be so in a job.
    """

    key: str
    what: str
    applies: Callable[[JobSpec], bool]


def _always(_spec: JobSpec) -> bool:
    return True


def _aligns(spec: JobSpec) -> bool:
    return spec.is_vertical or spec.job.task == "align"


def _publishes(spec: JobSpec) -> bool:
    return spec.anonymizes and bool(set(spec.anonymization.insensitive) - set(spec.anonymization.allow_unique))


def _names_freely(spec: JobSpec) -> bool:
    """Whether parties name items behind noise of their own, and no catalogue does."""
    return spec.mines and spec.privacy.model in ("distributed", "blended") and spec.itemsets.catalogue is None


REASONS: Final = (
    Reason(
        "source",
        "its source cannot be read, lacks a column that the job takes, or has one without a proper name",
        _always,
    ),
    Reason("new rows", "its rows have changed by too few since an earlier job (its own rule min_new_rows)", _always),
    Reason("attempt", "its rows have changed since an earlier attempt of this job", goes_on),
    Reason("ids", "ids of its rows are empty, or two are equal in the form that [align] asks for", _aligns),
    Reason(
        "domains",
        "a cell of a column that [columns] describes has none of its values, or is no number where one is asked for",
        lambda spec: spec.trains,
    ),
    Reason(
        "leaves",
        "a cell of a quasi-identifier is empty, of another kind, or among the leaves of no hierarchy",
        lambda spec: spec.anonymizes,
    ),
    Reason(
        "values",
        "a cell of a column that is published as it is has none of the values that the job names, or more than its "
        "most_bytes",
        lambda spec: spec.anonymizes,
    ),
    Reason("persons", "several of its rows have one id", lambda spec: spec.anonymizes and not spec.is_vertical),
    Reason(
        "unique",
        "most of its rows have a value of their own in a column that is published as it is",
        _publishes,
    ),
)
"""Why a party cannot take part with its data."""

LEFT_OUT: Final = (
    Reason(
        "cells",
        f"cells that are no numbers in columns that are put into intervals, and of items with names of more than "
        f"{MAX_ITEM_BYTES:,} bytes",
        lambda spec: spec.mines and spec.is_vertical,
    ),
    Reason("names", f"items with names of more than {MAX_ITEM_BYTES:,} bytes", _names_freely),
    Reason(
        "strangers",
        "items that the catalogue does not name",
        lambda spec: spec.mines and spec.itemsets.catalogue is not None,
    ),
)
"""What takes no part, without a word from the party that has it."""


def learned(spec: JobSpec, declared: Sequence[Declared]) -> tuple[Learned, ...]:
    """Who learns what of one party's rows from a job's end, or from its going on.

    Args:
        spec: The job.
        declared: All that it may open.
    """
    everybody = ("coordinator", *spec.job.parties)
    reasons = "; or ".join(reason.what for reason in REASONS if reason.applies(spec))
    lines = [
        Learned(
            everybody,
            "membership",
            "of each party whether it can take part with its data: one that cannot ends the job by its name, and does "
            f"not say which of these it is: {reasons}. Each such end is one bit about its rows, of which a node gives "
            "one coordinator 20 in a day, or as many as its policy says (rule max_failed_jobs)",
        ),
        Learned(
            everybody,
            "size",
            "which party lacks memory or disk for the job, or meets a fault, which may hang on how many rows it has",
        ),
    ]
    if any(line.label == SIZE_CLASSES for line in declared):
        what = (
            "whether some party, and not which one, has more rows or items than the job allows, or a longer name: that "
            "ends the job, and a node gives one coordinator 20 such answers in a day on jobs of the same parties, or "
            "as many as its policy says (rule max_failed_jobs)"
        )
        lines.append(Learned(everybody, "size", what))
    lines += [
        Learned(everybody, "membership", f"nothing of {reason.what}: their party leaves them out and tells nobody")
        for reason in LEFT_OUT
        if reason.applies(spec)
    ]
    return tuple(lines)
