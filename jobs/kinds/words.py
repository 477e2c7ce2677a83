"""Sentences of disclosure statements that several kinds of jobs have in common."""

from __future__ import annotations

from jobs.spec.job import JobSpec
from link.disclosure import Learned

WATCHED = "the steps of the job or why it failed, and each party's bytes, rounds and seconds"
_COURSE = "the course of the job"


def watched(spec: JobSpec, rows: str, reveals: str = "", *, how: str = "") -> Learned:
    """What the coordinator sees while a job runs, recipient or not.

    Args:
        spec: The job.
        rows: What its number of rows is called; only for a coordinator that is no recipient is it new.
        reveals: What follows from these.
        how: What it takes to do the job, if there is a choice.
    """
    rows = "" if spec.to_coordinator else f"{rows}, "
    what = f"{rows}{f'the {how} taken, ' if how else ''}{WATCHED}"
    if not reveals:
        line = Learned(("coordinator",), "size", what)
    else:
        short = (
            f"{rows}the job's progress or failure, each party's traffic and running time, and the sizes that these "
            "reveal"
        )
        line = Learned(("coordinator",), "size", short, f"{what}, {reveals}")
    return line if spec.to_coordinator else line.main(f"no result; {rows}{_COURSE}")


def cut_to_top(spec: JobSpec) -> tuple[Learned, ...]:
    """Every party that learns supports cuts its result to the first k after the protocol, which finds all."""
    if spec.itemsets.top_k is None:
        return ()
    what = "all frequent itemsets with their supports, not only those of the result"
    taken = most_frequent(spec.itemsets.top_k)
    detail = f"{what}: each party that learns supports takes {taken} out of them at the end"
    return (Learned(spec.learners, "result", what, detail),)


def excluded(spec: JobSpec) -> tuple[Learned, ...]:
    """Items that take no part."""
    if not spec.itemsets.exclude:
        return ()
    patterns = ", ".join(f"'{pattern}'" for pattern in spec.itemsets.exclude)
    what = "nothing of the items that the job excludes: every party removes them from its rows beforehand"
    detail = f"nothing of items that match {patterns}: every party removes them from its rows beforehand"
    return (Learned(spec.job.parties, "membership", what, detail),)


def exact_result(spec: JobSpec) -> str:
    """What recipients of exact itemsets get."""
    rules = spec.rules is not None
    if spec.itemsets.disclose == "frequent":
        return "which itemsets are frequent" + (" and which association rules hold" if rules else "") + ", and N"
    found = "all frequent itemsets with supports"
    if spec.itemsets.top_k is not None:
        found = f"of all frequent itemsets {most_frequent(spec.itemsets.top_k)}, with supports"
    return f"{found}{', the association rules' if rules else ''}, and N"


def estimated_result(spec: JobSpec, found: str, rows: str) -> str:
    """What recipients of estimates get.

    Args:
        spec: The job.
        found: What is found.
        rows: What the number of rows is called.
    """
    return f"{found}{' and association rules with estimated confidences' if spec.rules is not None else ''}, and {rows}"


def most_frequent(k: int) -> str:
    """The first k of all itemsets."""
    return f"the {k:,} most frequent" if k > 1 else "the most frequent one"
