"""What of a started job counts for what several jobs reveal together, and when their sums tell of too few parties.

Take each party's own number as one unknown: a job opens the sum of its parties' unknowns. From several sums all their
combinations follow, and nothing else. A combination in which only parties of T are left is a number of these parties
alone. The unknowns are the same in every job here, as if no rows had changed: with more of them, less would follow.

Nothing of this depends on rows or results, so a refusal reveals nothing of them. The arithmetic is exact.

Source: Chin, "Security problems on inference control for SUM, MAX, and MIN queries", JACM 33(3), 1986.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Final, NamedTuple

from jobs.documents.budget import ColumnsTaken
from jobs.kinds.registry import kind_of
from jobs.spec.job import AlignSection, JobSpec

UNKNOWN: Final = "?"
MOST_WORK: Final = 2_000_000  # multiplications: about half a second of a core
_ADDITIVE: Final = frozenset({"itemsets", "model"})


class JointResult(NamedTuple):
    """What counts of a job.

    Attributes:
        parties: All of them, in order.
        sums: Whether each number that it opens is a sum of numbers that its parties have each of their own rows.
        threshold: The least support of a job that opens no supports, as in its specification; empty of others, and
            `UNKNOWN` where nobody can read it any more.
        columns: Of a job over columns, which rows are common and into which intervals numbers are put, as far as its
            specification decides that: JSON; likewise `UNKNOWN`, and empty of other jobs.
    """

    parties: tuple[str, ...]
    sums: bool
    threshold: str = ""
    columns: str = ""


def joint_result(spec: JobSpec) -> JointResult:
    """What counts of a job."""
    sums = not spec.is_vertical and kind_of(spec).facets(spec) <= _ADDITIVE
    hidden = spec.itemsets_ is not None and spec.itemsets.disclose == "frequent"
    threshold = _written(spec.itemsets.min_support_) if hidden else ""
    return JointResult(tuple(sorted(spec.job.parties)), sums, threshold, _columns(spec) if spec.is_vertical else "")


def tells_of_few(new: Collection[str], before: Collection[Collection[str]], least: int) -> bool:
    """Whether the sums of a job, combined with those of earlier ones, give a number of fewer parties than `least`.

    What earlier jobs give without this one does not count. Where there are too many combinations to look at, the
    answer is yes.

    Args:
        new: The parties of the job.
        before: Those of earlier jobs.
        least: From 2 on.
    """
    others = {frozenset(each) for each in before} - {frozenset(new)}
    if len(new) < least or not others:
        return len(new) < least
    sets = [frozenset(new), *sorted(others, key=sorted)]
    # Parties that are in the same jobs have the same coefficient in every combination: one column stands for them all.
    sizes = Counter(tuple(name in each for each in sets) for name in frozenset().union(*sets))
    columns = list(sizes)
    rows = [[int(column[at]) for column in columns] for at in range(len(sets))]
    small = sum(size < least for size in sizes.values())
    if sum(comb(small, number) for number in range(least)) * len(rows) ** 2 * len(columns) > MOST_WORK:
        return True
    rank = _rank(rows[1:])
    repeated = _rank(rows) == rank  # the new sum follows from earlier ones: any small combination of these renews it
    for few in _unions(list(sizes.values()), least - 1):
        left = [[row[at] for at in range(len(columns)) if at not in few] for row in rows]
        outside = _rank(left[1:])
        if _rank(left) == outside and (not repeated or outside < rank):
            return True
    return False


def too_close(asked: str, before: str, least: int, fewest_rows: int | None) -> bool:
    """Whether two thresholds may differ by less than some transactions, so that verdicts on both pin a hidden support.

    Args:
        asked: The threshold of a job, as in `JointResult`.
        before: That of another.
        least: By how many transactions they have to differ, unless they are equal.
        fewest_rows: Rows that all parties have at least; None where nobody knows.
    """
    if not asked or not before or asked == before:
        return False
    if UNKNOWN in (asked, before):
        return True
    if ("." in asked) != ("." in before):
        return True
    apart = abs(Fraction(asked) - Fraction(before))
    if "." not in asked:
        return apart < least
    # Of N rows the counts are ⌈f N⌉, whose difference is above |f − f'| N − 1.
    return fewest_rows is None or apart * fewest_rows < least


def other_columns(asked: str, before: str) -> bool:
    """Whether two jobs over columns may count other rows, or put numbers into other intervals; arguments as `columns`.

    Then the difference of their counts is one of few rows: of ids that are equal only once they are trimmed, of numbers
    between two cuts.
    """
    if not asked or not before or asked == before:
        return False
    if UNKNOWN in (asked, before):
        return True
    new, old = json.loads(asked), json.loads(before)
    return any(new[what] != old[what] for what in new.keys() & old.keys())


def columns_taken(columns: str) -> ColumnsTaken | None:
    """How jobs over columns take them, for people and programs; None where nobody can read it any more.

    Args:
        columns: As in `JointResult`, and not empty.
    """
    if columns == UNKNOWN:
        return None
    known = json.loads(columns)
    trim, case, unicode = known["ids"]
    return ColumnsTaken(
        trim=trim, case=case, unicode=unicode, groups=known["groups"], intervals=known.get("intervals", {})
    )


def _columns(spec: JobSpec) -> str:
    align = spec.align or AlignSection()
    found: dict[str, object] = {
        "ids": (align.trim, align.case, align.unicode),
        "groups": sorted(sorted(members) for members in (spec.groups_ or {}).values()),
    }
    if spec.itemsets_ is not None:
        cuts = {column: [_plain(cut) for cut in cuts] for column, cuts in spec.itemsets.cuts.items()}
        found["intervals"] = cuts | dict(spec.itemsets.quantiles)
    return json.dumps(found, sort_keys=True)


def _plain(number: Decimal) -> str:
    return f"{number.normalize():f}"


def _written(support: Decimal | int | None) -> str:
    """A fraction has a point, a count has none."""
    if not isinstance(support, Decimal):
        return "" if support is None else str(support)
    text = _plain(support)
    return text if "." in text else f"{text}.0"


def _unions(sizes: Sequence[int], most: int) -> Iterator[frozenset[int]]:
    """The largest sets of columns that stand for at most so many parties, by their numbers."""
    small = [at for at, size in enumerate(sizes) if size <= most]
    for number in range(min(most, len(small)), 0, -1):
        for chosen in combinations(small, number):
            left = most - sum(sizes[at] for at in chosen)
            if left >= 0 and all(sizes[at] > left for at in small if at not in chosen):
                yield frozenset(chosen)


def _rank(rows: Sequence[Sequence[int]]) -> int:
    """Of a matrix, in rational numbers."""
    left, rank = [[Fraction(value) for value in row] for row in rows], 0
    for at in range(len(rows[0]) if rows else 0):
        pivot = next((row for row in left[rank:] if row[at]), None)
        if pivot is None:
            continue
        left.remove(pivot)  # of equal rows the first, which it is
        left.insert(rank, pivot)
        for number in range(rank + 1, len(left)):
            if factor := left[number][at] / pivot[at]:
                left[number] = [x - factor * y for x, y in zip(left[number], pivot, strict=True)]
        rank += 1
    return rank
