"""What level 1 with a hidden universe opens, and what else its parties learn."""

from __future__ import annotations

from crypto.protocols.alignment import disclosure as alignment_disclosure
from crypto.protocols.union import common_length, prefix_disclosure
from crypto.protocols.union.size_classes import LISTS
from link.disclosure import Declared, Learned
from mining.joint.horizontal.hidden_universe import ITEMS, POSITIONS_LABEL
from mining.joint.parameters import HorizontalMining


def hidden_openings(task: HorizontalMining, parties: tuple[str, ...]) -> tuple[Declared, ...]:
    """The labels under which `hidden_items` opens something, those of the tally and of masked maxima aside."""
    most = len(parties) * LISTS.rounded(task.bound or LISTS.most)
    return (
        alignment_disclosure.placed(parties, task.merger, task.bound, POSITIONS_LABEL, of="items"),
        Declared(
            ITEMS,
            frozenset(parties),
            "names of the frequent items, bit by bit",
            prefix_disclosure.most_opened(most, task.max_item_bytes),
            "after level 1",
        ),
    )


def hidden_learned(task: HorizontalMining, parties: tuple[str, ...]) -> tuple[Learned, ...]:
    """Who learns what of the items, in words."""
    two = len(parties) == 2
    whose = ", not whose they are, and no other names"
    if two:
        whose = " and no other names, and of each that a party does not hold itself, that the other does"
    lines = [
        Learned(parties, "membership", f"the names of the frequent items{whose}").main(
            "the names of the frequent items" + ("" if two else ", not whose they are")
        )
    ]
    if task.disclose == "candidates":
        what = "the support of every item, at a position that names it to those who hold it"
        lines.append(
            Learned(task.learners, "count", what, f"{what}; so how many items there are").main(
                "the support of every item, at a position that its holders know"
            )
        )
    whether = "whether the other has the item" if two else "who else has the item"
    lines += [
        Learned(parties, "membership", f"a random position of each of its own items, not {whether}"),
        common_length.leakage(parties, "items", task.bound).of("the positions"),
    ]
    lines += [line.of("the union of frequent items") for line in prefix_disclosure.leakage(parties)]
    return tuple(lines)
