"""What blended mining opens, and what else its parties learn: as data, for exactly these parameters."""

from __future__ import annotations

from link.disclosure import Declared, Learned
from mining.joint.blended.parameters import MAX_NAMED, Blending
from mining.joint.collusion import odds


def openings(task: Blending, parties: tuple[str, ...]) -> tuple[Declared, ...]:
    """Every label under which something may be opened, with its recipients and the most values."""
    everyone, analyst = frozenset(parties), frozenset({task.analyst})
    receivers = frozenset(task.learners) - analyst
    counts = "a trusted party's counts of the head list's items in one half of its records, with noise"
    answers = "of each item of the head list, how many of the party's records said yes, each perturbed"
    result = "the items that were found, with estimated supports"
    named = "items that a trusted party has often in the other half of its records, with noisy counts"
    return (
        Declared("records", everyone, "each party's number of records", 1, "at the start"),
        Declared("head", everyone, named, MAX_NAMED, "before anything is counted"),
        Declared("counts", analyst, counts, task.head, "once"),
        Declared("answers", analyst, answers, task.head, "once"),
        *((Declared("estimates", receivers, result, task.k, "at the end"),) if receivers else ()),
    )


def learned(task: Blending, parties: tuple[str, ...]) -> tuple[Learned, ...]:
    """Who learns what, in words."""
    epsilon, delta = float(task.epsilon), float(task.delta)
    others = tuple(party for party in parties if party not in task.opted_in)
    budget = f"ε = {epsilon:g} and δ = {delta:g} of a record"
    trusted = " and ".join(task.opted_in)
    return (
        Learned(parties, "size", "each party's number of records").main(),
        Learned(
            parties,
            "membership",
            f"noisy counts of the items that the trusted parties have often: {budget} of theirs",
            f"which items {trusted} {'has' if len(task.opted_in) == 1 else 'have'} often, with noisy counts: "
            f"{budget} of theirs, together with all counts",
        ).main("noisy counts of the items that the trusted parties have often"),
        Learned(
            (task.analyst,),
            "count",
            f"noisy counts of the trusted parties, and sums of the others' perturbed answers: {budget}",
            f"noisy counts of {trusted}, and of {' and '.join(others)} sums of perturbed answers, one of each record: "
            f"ε = {epsilon:g} of it",
        ).main("noisy counts of the trusted parties, and sums of the others' perturbed answers"),
        Learned(parties, "count", "no exact support, of no party"),
    )


def collusion(task: Blending) -> str:
    """How many colluders it withstands."""
    return (
        f"any number of parties: each one's noise hides its own records from all others together; the people of "
        f"{' and '.join(task.opted_in)} trust their own party"
    )


def worst(task: Blending) -> str:
    """The worst that colluders could find out, in plain words."""
    return odds("all others together", task.epsilon, task.delta)
