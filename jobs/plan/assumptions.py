"""On what a plan's figures rest, and what its owner should think of, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.kinds.rows.plan_sizes import Expected
from jobs.plan.answer import Answer
from jobs.spec.job import JobSpec
from link.files.printable import enumeration


def assumptions(spec: JobSpec, found: Expected | None, answers: Mapping[str, Answer], latency_s: float) -> list[str]:
    """On what the figures rest.

    Args:
        spec: The job.
        found: What is expected of it.
        answers: What each of its parties publishes.
        latency_s: Seconds that a message is expected to take from party to party.
    """
    published = [name for name, answer in answers.items() if answer.sizes is not None]
    hidden = [name for name in answers if name not in published]
    lines = []
    if found is None:
        lines.append(
            f"None of {enumeration(list(answers))} publishes what these figures depend on: they are what the job costs "
            "at least, and what the job's own limits allow at most."
        )
    elif hidden:
        lines.append(
            f"{enumeration(hidden)} {'hides its' if len(hidden) == 1 else 'hide their'} sizes, or publish"
            f"{'es' if len(hidden) == 1 else ''} none at this support: the figures take "
            f"{'it' if len(hidden) == 1 else 'them'} to be like the others; the job's own limits allow more."
        )
    if found is not None:
        lines += _of_candidates(spec, found)
    lines.append(of_network(spec, latency_s, ", as between them and the coordinator"))
    lines.append("The parties' machines are as busy as when they were asked, and their data are read already.")
    return lines


def of_network(spec: JobSpec, latency_s: float, measured: str = "") -> str:
    """What is taken of the network; `measured` says where the time of a message comes from."""
    given = spec.plan.bandwidth
    width = "the width of the network is taken to be no hindrance" if given is None else f"the network carries {given}"
    return f"A message takes {1000 * latency_s:.1f} ms between parties{measured}; {width}."


def of_unions(machine_s: Mapping[str, float]) -> list[str]:
    """What unions take of all machines together, by party; nothing where there is none."""
    total = sum(machine_s.values())
    if not total:
        return []
    return [
        f"Unions take up to {max(machine_s.values()):.2f} s of a party's machine, {total:.2f} s of all "
        f"{len(machine_s)} together: as much again with each other party and, where lists of all items are aligned, "
        "with the square of their number."
    ]


def advice(spec: JobSpec) -> list[str]:
    """What the job discloses without need, by the number of its parties."""
    if len(spec.job.parties) > 2 or spec.itemsets.disclose == "frequent":
        return []
    one, other = spec.job.parties
    which = "every candidate" if spec.itemsets.disclose == "candidates" else "every frequent itemset"
    return [
        f"With two parties a sum that is opened reveals to each the other's count: {one} and {other} learn each "
        f'other\'s counts of {which}. [itemsets] disclose = "frequent" opens no sum, and reveals only which itemsets '
        "are frequent."
    ]


def _of_candidates(spec: JobSpec, found: Expected) -> list[str]:
    lines = [
        "How many candidates there are is what is published of frequent itemsets, the middle of it by number of rows; "
        "where the parties' rows differ much in kind, it may be far off. Names of items are taken to have 12 "
        "bytes, 33 at the most."
    ]
    if found.beyond is not None:
        lines.append(
            f"More candidates of {found.beyond} items are expected than max_candidates = "
            f"{spec.itemsets.max_candidates} leaves room for, beside the itemsets of fewer items: there the job would "
            "end with an error; raise min_support, set max_length, or raise max_candidates."
        )
    return lines
