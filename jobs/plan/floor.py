"""To what count a job's `min_support` comes, and so whether the rule `min_count` of a policy lets the job run.

A policy compares a fraction with its `min_count` only at the run, when the number of all rows is open. A plan knows
that number only as far as sizes are published, and no policy: what it says follows from the job and these sizes alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Final, NamedTuple

from jobs.kinds.registry import kind_of, opens
from jobs.spec.job import JobSpec
from mining.public_sizes import PublicSizes, between
from mining.thresholds import minimum_count

USUAL: Final = 10
"""The `min_count` that `comine init` writes."""
_DIGITS: Final = Context(prec=2, rounding=ROUND_CEILING)  # of a fraction that is proposed


class Bounds(NamedTuple):
    """Between what a number of rows is; no most where nothing says it."""

    least: int
    most: int | None


class Said(NamedTuple):
    """A sentence of a plan.

    Attributes:
        sentence: It.
        warns: Whether the job may end for it.
    """

    sentence: str
    warns: bool


def published_rows(spec: JobSpec, sizes: Mapping[str, PublicSizes]) -> Bounds:
    """Between what the number of rows is over which a job's `min_support` is a fraction.

    Over columns these are the rows that all have, of which only a most is known.

    Args:
        spec: The job.
        sizes: By party what it publishes.
    """
    rows = {name: None if (told := sizes[name].rows) is None else between(told) for name in spec.job.parties}
    groups = spec.groups.values() or [(name,) for name in spec.job.parties]
    if spec.is_vertical:
        of_groups = [[rows[name] for name in group] for group in groups]
        return Bounds(
            0, min((sum(each[1] for each in group if each) for group in of_groups if all(group)), default=None)
        )
    known = [each for each in rows.values() if each is not None]
    most = sum(high for _, high in known) if len(known) == len(rows) else None
    return Bounds(sum(low for low, _ in known), most)


def of_all(spec: JobSpec, sizes: Mapping[str, PublicSizes]) -> Said | None:
    """What anybody can say of `min_count` by what is published; None where it goes without saying."""
    asked = _asked(spec)
    if asked is None:
        return None
    rows = published_rows(spec, sizes)
    if isinstance(asked, int):
        if rows.most is None or asked <= rows.most:
            return None
        whose = "that all parties share" if spec.is_vertical else "of all parties"
        return Said(
            f"min_support = {asked} is more than the rows {whose}, at most {rows.most:,} by published sizes: the job "
            "would end at its start; lower it.",
            warns=True,
        )
    if rows == (0, None):
        return Said(
            f"min_support = {asked} comes to an unknown count, since no sizes are published: a policy's min_count is "
            f"compared with it only at the run; a count such as {USUAL} is compared before anybody is asked.",
            warns=False,
        )
    return _of_fraction(asked, rows)


def _of_fraction(asked: Decimal, rows: Bounds) -> Said:
    least = minimum_count(asked, rows.least)
    most = None if rows.most is None else minimum_count(asked, rows.most)
    ends = "end the job at the run"
    if not rows.least:
        says = f"at most {most:,} rows by published sizes: policies that ask for more (rule min_count) {ends}"
    elif most is None:
        says = f"at least {least:,} rows by published sizes: policies that ask for more (rule min_count) may {ends}"
    elif most > least:
        says = (
            f"{least:,} to {most:,} rows by published sizes: policies that ask for more than {most:,} (rule min_count) "
            f"{ends}, those that ask for up to {least:,} do not"
        )
    else:
        says = f"{least:,} rows by published sizes: policies that ask for more (rule min_count) {ends}, no others do"
    warns = least < USUAL if rows.least else most is not None and most < USUAL
    if least >= USUAL:
        cure = ""
    elif (sure := _sure(USUAL, rows.least)) is not None:
        cure = f"; from min_support = {sure} on it surely reaches {USUAL}, which comine init writes"
    else:
        cure = f"; a count, such as min_support = {USUAL}, is compared before anybody is asked"
    return Said(f"min_support = {asked} comes to {says}{cure}.", warns)


def of_own(spec: JobSpec, least: int, rows: Bounds, me: str) -> str | None:
    """What a party can say to itself of its own rule, by its own rows; None where the rule is not compared at the run.

    Args:
        spec: The job.
        least: The rule.
        rows: Its own rows.
        me: This party.
    """
    asked = _asked(spec)
    if asked is None or isinstance(asked, int) or least <= 1:
        return None
    needed = int(Fraction(least - 1) / Fraction(asked)) + 1
    head = f"Rule min_count, at least {least:,}: min_support = {asked}"
    if spec.is_vertical:
        if rows.most is None or rows.most >= needed or spec.groups:
            return f"{head} comes to that if all share {needed:,} rows or more; with fewer the job ends at the run."
        return f"{head} comes to fewer, as {me} has fewer than {needed:,} rows: the job would end at the run."
    if rows.least >= needed:
        return f"{head} comes to that with the rows of {me} alone."
    sure = _sure(least, rows.least)
    more = "" if sure is None else f"; from {sure} on the rows of {me} alone suffice"
    return (
        f"{head} comes to that if all parties together have {needed:,} rows or more; with fewer the job ends at the "
        f"run{more}."
    )


def _asked(spec: JobSpec) -> Decimal | int | None:
    """The support that is compared with the exact number of rows at the run, where the job has one."""
    if not opens(spec, "itemsets") or kind_of(spec).estimates:
        return None
    return spec.itemsets.min_support_


def _sure(count: int, rows: int) -> Decimal | None:
    """A short fraction that comes to a count of so many rows or of more; None where none does."""
    if rows < count:
        return None
    return _DIGITS.divide(Decimal(count), Decimal(rows))
