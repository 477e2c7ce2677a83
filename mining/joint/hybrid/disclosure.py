"""What mining by perturbed records opens, and what else its parties learn: as data, for exactly these parameters."""

from __future__ import annotations

from typing import Final

from link.disclosure import Declared, Learned
from mining.joint.collusion import odds
from mining.joint.hybrid.parameters import HybridMining

_MAX_RECORDS: Final = 1 << 40
_PHASES: Final = {"svim": 3, "svsm": 5, "ldp-miner": 2, "privset": 1, "wheel": 1}


def openings(task: HybridMining, parties: tuple[str, ...]) -> tuple[Declared, ...]:
    """Every label under which something may be opened, with its recipients and the most values."""
    phases, receivers = _PHASES[task.search], frozenset(task.learners) - {task.analyst}
    result = "the itemsets that were found, with estimated supports, and rules over them"
    what = "this party's perturbed records" if task.model == "local" else "the perturbed records, shuffled"
    return (
        Declared("records", frozenset(parties), "each party's number of records, by phase", phases, "at the start"),
        Declared(
            "candidates",
            frozenset(parties) - {task.analyst},
            "the itemsets that are asked about, and to which length rows are padded",
            phases * 2 * task.k,
            "before each phase",
        ),
        Declared("reports", frozenset({task.analyst}), what, _MAX_RECORDS, "in each phase"),
        *((Declared("estimates", receivers, result, task.k, "at the end"),) if receivers else ()),
    )


def learned(task: HybridMining, parties: tuple[str, ...]) -> tuple[Learned, ...]:
    """Who learns what, in words."""
    others = tuple(party for party in parties if party != task.analyst)
    lines = [
        Learned(parties, "size", "each party's number of records").main(),
        Learned(
            parties,
            "membership",
            "which itemsets are asked about in each phase: those that seem frequent by the reports of the one before",
        ).main("which itemsets are asked about"),
        Learned(parties, "count", "nothing of items beyond the public catalogue, which records do not enter"),
    ]
    if task.model == "local":
        what = f"a report of every record, perturbed at its party: ε = {task.epsilon:g} of a record"
        detail = (
            f"a report of every record of each party, perturbed at its party: ε = {task.epsilon:g} of a record, "
            "against the analyst and all others together"
        )
        return (*lines, Learned((task.analyst,), "membership", what, detail).main())
    through = " and ".join(task.shufflers)
    central = f"ε = {task.epsilon:g} and δ = {task.delta:g} of a record"
    lines += [
        Learned(
            (task.analyst,),
            "membership",
            f"a report of every record, perturbed and shuffled, and not whose it is: {central}",
            f"a report of every record, perturbed at its party and shuffled by {through}, and not whose it is: "
            f"{central}",
        ).main("a report of every record, perturbed and shuffled, not whose it is"),
        Learned(
            others,
            "membership",
            f"of the others' records nothing but what candidates and the result reveal: {central} as well",
        ),
        Learned(
            task.shufflers,
            "size",
            "how many sealed reports there are in each phase, and how many were dropped as broken or repeated; none "
            "can open one",
        ).main("how many sealed reports there are, none of which it can open"),
    ]
    return tuple(lines)


def collusion(task: HybridMining) -> str:
    """How many colluders it withstands."""
    if task.model == "local":
        return f"any number of parties: a report has ε = {task.epsilon:g} by itself"
    shufflers = task.shufflers
    whom = f"the shuffler {shufflers[0]}" if len(shufflers) == 1 else "all shufflers together"
    looks = "a party alone" if task.colluding == 0 else f"a party with {task.colluding} others"
    largest = "largest party" if task.colluding == 0 else f"{task.colluding + 1} largest parties"
    return (
        f"{looks}, the analyst or another one, while one shuffler is not among them; so reports of the {largest} count "
        f"for nothing in ε. The analyst with {whom} sees each party's reports, of at most ε = {task.most_local:g} each"
    )


def worst(task: HybridMining) -> str:
    """The worst that colluders could find out, in plain words."""
    another = "with another"
    if task.model == "local":
        return odds("all others together", task.epsilon, other=another)
    whom = task.shufflers[0] if len(task.shufflers) == 1 else "all shufflers"
    return odds(f"{task.analyst} and {whom} together", task.most_local, other=another)
