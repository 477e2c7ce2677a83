"""Another way to do a job beside the job as it is written: what it costs, and what it discloses more or less."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from jobs.plan.figures import SessionFigures
from jobs.plan.plan import Alternative
from jobs.proposed import job_from_canonical
from jobs.spec.job import JobSpec
from jobs.statement import Statement, statement
from link.errors import ConfigurationError


def is_possible(changed: JobSpec) -> bool:
    """Whether a job file may say this: what a plan recommends is read as what a party is asked for."""
    with suppress(ConfigurationError):
        job_from_canonical(changed.canonical())
        return True
    return False


def alternative(
    name: str,
    change: Sequence[str],
    written: JobSpec,
    changed: JobSpec,
    strategy: str | None,
    figures: SessionFigures | None,
) -> Alternative:
    """A line of the plan.

    Args:
        name: What the other way is about.
        change: The lines of the job file that choose it.
        written: The job.
        changed: The job with these lines.
        strategy: That the parties would take; None where it is not known.
        figures: Of the changed job; None where parties publish too little.
    """
    here, there = statement(written), statement(changed)
    ours, theirs = here.exact_prose(), there.exact_prose()
    return Alternative(
        name=name,
        change=list(change),
        strategy=strategy,
        rounds=None if figures is None else figures.traffic.rounds,
        seconds=None if figures is None else figures.seconds,
        bytes_sent=None if figures is None else figures.bytes_sent,
        adds=[line for line in theirs if line not in ours],
        drops=[line for line in ours if line not in theirs],
        in_short=_in_short(here, there, written.job.parties),
    )


def _in_short(here: Statement, there: Statement, parties: tuple[str, ...]) -> str:
    """In a line what the other statement says more and less than the first."""
    ours, theirs = _clauses(here, parties), _clauses(there, parties)
    drops, adds = _fewer(ours, theirs), _fewer(theirs, ours)
    if drops and adds:
        return f"no longer: {'; '.join(drops)}. Instead: {'; '.join(adds)}."
    if drops or adds:
        return f"{'no longer' if drops else 'also'}: {'; '.join(drops or adds)}."
    return "the same is disclosed."


def _clauses(declared: Statement, parties: tuple[str, ...]) -> dict[str, str]:
    """The statement's lines in their exact form, each with its short one; a protocol's own lines as one.

    They name who learns them, where these are not all parties.
    """
    found = {line: line for line in (f"collusion: {clause}" for clause in declared.collusion.split("; "))}
    for line in declared.learned:
        about, _, rest = line.what.partition(": ")
        if rest and about.startswith("of the "):
            summary = f"{about}: sizes and what is shared"
            found[summary] = summary
        else:
            whom = "" if line.who == parties else f"to {' and '.join(line.who)}: "
            found[whom + line.exact] = whom + line.what
    return found


def _fewer(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """The lines that the other lacks; in their exact form where the short one is the same."""
    return [exact if short in other.values() else short for exact, short in one.items() if exact not in other]
