"""What a joint vertical mining run opens, and what else its parties learn: as data, for exactly these parameters."""

from __future__ import annotations

from crypto.protocols.replicated import broadcasts
from link.disclosure import Declared, Learned
from mining.joint import align
from mining.joint.collusion import NOBODY_ELSE
from mining.joint.disclosure import infrequent, which_are_frequent
from mining.joint.shared_rules import rules_learned, rules_openings
from mining.joint.vertical.choice import chosen_engine, is_dealt
from mining.joint.vertical.grouped import disclosure as grouped
from mining.joint.vertical.parameters import COORDINATOR, VerticalMining, in_job_order

_MOST_LEVELS = 64
_MOST_COLUMNS = 1 << 20


def openings(task: VerticalMining, parties: tuple[str, ...]) -> tuple[Declared, ...]:
    """Every label under which something may be opened, with its recipients and the most values."""
    everyone, learners = frozenset(parties), frozenset(task.learners)
    outsiders = everyone - learners
    levels = min(task.max_length or _MOST_LEVELS, _MOST_LEVELS)
    sums = task.max_candidates * (levels + 1)
    found = [
        Declared("columns", everyone, "names of each party's columns", _MOST_COLUMNS, "at the start"),
        *align.openings(task.alignment, parties),
        Declared("items", everyone, "names of each party's frequent items", task.max_candidates, "at level 1"),
    ]
    if task.mode == "union":
        found.append(
            Declared("rows", everyone, f"number of rows that all {_holders(task)} have", 1, "after the alignment")
        )
        found.append(Declared("item_numbers", everyone, _numbers(task), 1, "at level 1"))
    if task.is_verified:  # names of columns and of items, and what the merger opens
        found.append(broadcasts.declared(parties, 2 * len(parties) + 1))
    found += grouped.openings(task.groups, parties, task.max_candidates)
    if task.disclose != "frequent":
        which = "each candidate's" if task.disclose == "candidates" else "each frequent itemset's"
        what = f"{which} support among the common rows"
        found.append(Declared("supports", learners, what, sums, "once per level"))
    receivers = everyone if task.disclose != "candidates" else outsiders
    if receivers:
        found.append(Declared("frequent", receivers, "whether each candidate is frequent", sums, "once per level"))
    return (*found, *rules_openings(task, parties))


def learned(task: VerticalMining, parties: tuple[str, ...]) -> tuple[Learned, ...]:
    """Who learns what, in words."""
    outsiders = tuple(p for p in parties if p not in task.learners)
    lines = [
        which_are_frequent(task.disclose, task.learners, parties),
        Learned(parties, "size", f"the number N of rows that all {_holders(task)} have in common").main(
            "the number N of common rows"
        ),
        *_of_items(task, parties),
        Learned(parties, "membership", "the names of all parties' columns").main("names of all columns"),
        *align.learned(task.alignment, parties),
    ]
    if task.mode == "union":
        lines.append(Learned(parties, "size", _numbers(task)))
    if task.disclose == "candidates":
        lines.append(
            Learned(task.learners, "count", _every_candidate(task)).main(
                "the support of every candidate, frequent or not"
            )
        )
    else:
        lines.append(infrequent(parties, "support", opened=task.disclose == "supports"))
    if task.disclose == "supports":
        lines.append(Learned(task.learners, "count", "the support of every frequent itemset").main())
    elif task.disclose == "frequent":
        what = "no support of any itemset"
        if task.mode == "intersection":
            what += " that spans parties; of an itemset of its own items alone each party counts the support itself"
        lines.append(Learned(parties, "count", what).main("no support of any itemset that spans parties"))
    if outsiders and task.disclose != "frequent":
        lines.append(Learned(outsiders, "membership", "which candidates are frequent, but no support").main())
    return (
        *lines,
        *chosen_engine(task).learned(task, parties),
        *rules_learned(task, parties),
    )


def collusion(task: VerticalMining, parties: tuple[str, ...]) -> str:
    """Which parties may work together without learning more, in words."""
    first, second = in_job_order(parties, task.compute)
    if is_dealt(task, parties):
        return f"none: the {COORDINATOR}, who deals randomness, and either party together can read the other's columns"
    if len(parties) == 2:
        return "none is needed: each of the two parties is alone"
    products = chosen_engine(task).collusion(task, parties)
    if task.disclose != "candidates":
        products += f"; sums that stay hidden withstand all parties but {first} and {second} together"
    return f"{products}; {align.collusion(parties)}"


def worst(task: VerticalMining, parties: tuple[str, ...]) -> str:
    """The worst that colluders could find out, in plain words."""
    first, second = in_job_order(parties, task.compute)
    if is_dealt(task, parties):
        return f"the {COORDINATOR} and either party together could read the other's columns"
    if len(parties) == 2:
        return NOBODY_ELSE
    read = chosen_engine(task).worst(task, parties)
    if read:
        return read
    if task.disclose == "candidates":
        return align.worst(parties)
    return f"{first} and {second} together could compute supports that stay hidden"


def _holders(task: VerticalMining) -> str:
    return "groups" if task.groups else "parties"


def _of_items(task: VerticalMining, parties: tuple[str, ...]) -> list[Learned]:
    if task.groups:
        return grouped.learned(task.groups, parties)
    line = Learned(parties, "membership", "the names of the frequent items and at which party each is")
    return [line.main("the names and party of each frequent item")]


def _numbers(task: VerticalMining) -> str:
    if task.groups:
        return "how many items of each group are decided on; of a group of several parties, only about how many"
    return "how many of each party's items are in as many of its own rows as a frequent item needs"


def _every_candidate(task: VerticalMining) -> str:
    """Items are counted at home after an intersection; after a union their sums are opened like all others."""
    if task.mode == "union":
        return "the support of every candidate, frequent or not; an item that is not has a number there, and no name"
    return "the support of every frequent item, and of every candidate of two or more items, frequent or not"
