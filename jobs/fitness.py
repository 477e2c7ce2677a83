"""What the end of a job reveals of one party's rows, and what no end reveals: a part of the disclosure statement.

`link.errors.outward` lets three answers through: that a party cannot take part with its data, that it lacks room or met
a fault, and what all parties learn alike. What may lie behind the first is listed here, kind by kind of job; a test
holds the list against every place that refuses rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from crypto.protocols.sums.masked_maximum import LABEL as SIZE_CLASSES
from jobs.kinds.registry import kind_of
from jobs.spec.job import JobSpec
from link.disclosure import Declared, Learned
from mining.limits import MAX_ITEM_BYTES


@dataclass(frozen=True, slots=True)
class Reason:
    """Something about one party's rows.

    Attributes:
        key: A short name, for tests.
        what: It, in words for people.
        short: The same in short, claiming no more; empty where it is short.
    """

    key: str
    what: str
    short: str = ""


REASONS: Final = (
    Reason(
        "source",
        "its source cannot be read, lacks a column that the job takes, or has one without a proper name",
    ),
    Reason("new rows", "its rows have changed by too few since an earlier job (its own rules min_new_rows, min_group)"),
    Reason("attempt", "its rows have changed since an earlier attempt of this job"),
    Reason("ids", "ids of its rows are empty, or two are equal in the form that [align] asks for"),
    Reason(
        "domains",
        "a cell of a column that [columns] describes has none of its values, or is no number where one is asked for",
    ),
    Reason(
        "leaves",
        "a cell of a quasi-identifier is empty, of another kind, or among the leaves of no hierarchy",
    ),
    Reason(
        "values",
        "a cell of a column that is published as it is has none of the values that the job names, or more than its "
        "most_bytes",
    ),
    Reason("persons", "several of its rows have one id"),
    Reason(
        "unique",
        "most of its rows have a value of their own in a column that is published as it is",
    ),
)
"""Why a party cannot take part with its data, by the kind of the job; the first and the second in every job."""

_OF_EVERY_JOB: Final = frozenset({"source", "new rows"})

LEFT_OUT: Final = (
    Reason(
        "cells",
        f"cells that are no numbers in columns that are put into intervals, and of items with names of more than "
        f"{MAX_ITEM_BYTES:,} bytes",
        "cells that are no numbers in columns cut into intervals, and of items with overlong names",
    ),
    Reason("names", f"items with names of more than {MAX_ITEM_BYTES:,} bytes"),
    Reason(
        "strangers",
        "items that the catalogue does not name",
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
    kind = kind_of(spec)
    own = kind.refusals(spec) | ({"attempt"} if kind.resumes(spec) else set())
    reasons = "; or ".join(reason.what for reason in REASONS if reason.key in own | _OF_EVERY_JOB)
    lines = [
        Learned(
            everybody,
            "membership",
            "whether each party can take part with its data: one that cannot is named, without the reason, and the job "
            "ends",
            "of each party whether it can take part with its data: one that cannot ends the job by its name, and does "
            f"not say which of these it is: {reasons}. Each such end is one bit about its rows, of which a node gives "
            "one coordinator 20 in a day, or as many as its policy says (rule max_failed_jobs)",
        ),
        Learned(
            everybody,
            "size",
            "which party lacks memory or disk for the job, or meets a fault, which may depend on how many rows it has",
        ),
    ]
    if any(line.label == SIZE_CLASSES for line in declared):
        what = "whether some party, not which one, exceeds the job's limits on rows, items or names, which ends the job"
        detail = (
            "whether some party, and not which one, has more rows or items than the job allows, or a longer name: that "
            "ends the job, and a node gives one coordinator 20 such answers in a day on jobs of the same parties, or "
            "as many as its policy says (rule max_failed_jobs)"
        )
        lines.append(Learned(everybody, "size", what, detail))
    lines += [
        Learned(
            everybody,
            "membership",
            f"nothing of {reason.short or reason.what}, which are left out",
            f"nothing of {reason.what}: their party leaves them out and says nothing of it",
        )
        for reason in LEFT_OUT
        if reason.key in own
    ]
    return tuple(lines)
