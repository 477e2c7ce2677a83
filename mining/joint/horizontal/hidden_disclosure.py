"""What level 1 with a hidden universe opens, and what else its parties learn."""

from __future__ import annotations

from crypto.protocols.union import joint_prf, prefix_disclosure
from crypto.protocols.union.disclosure import leakage
from crypto.protocols.union.size_classes import SETS
from link.disclosure import Declared, Learned
from mining.joint.horizontal.hidden_universe import ITEMS, POSITIONS
from mining.joint.parameters import HorizontalMining


def hidden_openings(task: HorizontalMining, parties: tuple[str, ...]) -> tuple[Declared, ...]:
    """The labels under which `hidden_items` opens something, those of the tally aside."""
    everyone, most = frozenset(parties), len(parties) * SETS.rounded(task.bound or SETS.most)
    which = "all items" if task.universe == "hidden-all" else "the items that are locally frequent at some party"
    what = f"pseudonyms of {which}, among random ones"
    return (
        Declared(POSITIONS, everyone, what, most, "before level 1"),
        Declared(
            ITEMS,
            everyone,
            "names of the frequent items, bit by bit",
            prefix_disclosure.most_opened(most, task.max_item_bytes),
            "after level 1",
        ),
    )


def hidden_learned(task: HorizontalMining, parties: tuple[str, ...]) -> tuple[Learned, ...]:
    """Who learns what of the items, in words."""
    two = len(parties) == 2
    where = "; if not at itself, then at the other" if two else ", not at which"
    whose = ", not whose they are, and no other names"
    if two:
        whose = " and no other names, and of each that a party does not hold itself, that the other does"
    lines = [
        Learned(parties, "membership", f"the names of the frequent items{whose}").main(
            "the names of the frequent items" + ("" if two else ", not whose they are")
        )
    ]
    if task.universe == "hidden":
        what = f"of each item that a party holds itself, whether it is locally frequent at some party{where}"
        lines.append(Learned(parties, "membership", what).main("which own items are frequent somewhere"))
    if task.disclose == "candidates":
        which = "every item" if task.universe == "hidden-all" else "every item that is locally frequent at some party"
        what = f"the support of {which}, under its pseudonym, which reveals its name to those who hold it"
        short = f"the support of {which}, under a pseudonym that its holders know"
        lines.append(
            Learned(task.learners, "count", short, f"{what}; so how many these are").main(
                "the support of every item, under a pseudonym that its holders know"
            )
        )
    of_pseudonyms = leakage(parties, task.merger, bound=task.bound, reveals_sizes=task.bound is None)
    of_frequent = prefix_disclosure.leakage(parties)
    lines += [line.of("the items") for line in joint_prf.leakage(parties, task.bound)]
    lines += [line.of("the union of pseudonyms") for line in of_pseudonyms]
    lines += [line.of("the union of frequent items") for line in of_frequent]
    return tuple(lines)
