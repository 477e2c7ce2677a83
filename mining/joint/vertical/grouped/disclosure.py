"""What column groups open beside what every job over columns does, and what else their members learn."""

from __future__ import annotations

from dataclasses import replace

from crypto.protocols.alignment.disclosure import placed_of_listed
from crypto.protocols.sums import masked_maximum
from crypto.protocols.union import common_length, prefix_disclosure
from crypto.protocols.union.prefixes import LIMITS
from crypto.protocols.union.size_classes import LISTS
from link.disclosure import Declared, Learned
from mining.joint.vertical.grouped.groups import ColumnGroup, Groups
from mining.joint.vertical.grouped.items import PLACE_BYTES, names_label, positions_label
from mining.joint.vertical.grouped.repeated import LABEL, member_pairs
from mining.limits import MAX_ITEM_BYTES


def several(groups: Groups) -> Groups:
    """The groups of two parties or more."""
    return tuple(group for group in groups if len(group.members) > 1)


def repeated_openings(groups: Groups, parties: tuple[str, ...]) -> list[Declared]:
    """What `check_repeated` opens."""
    what = "whether some id is at two parties of one column group, which ends the job"
    return [Declared(LABEL, frozenset(parties), what, 1, "after the alignment")] if member_pairs(groups) else []


def repeated_learned(groups: Groups, parties: tuple[str, ...]) -> list[Learned]:
    """Who learns what by `check_repeated`, in words."""
    what = "whether some id is at two parties of one group, not which or whose, which ends the job"
    return [Learned(parties, "membership", what)] if several(groups) else []


def openings(groups: Groups, parties: tuple[str, ...], most_items: int) -> list[Declared]:
    """The labels of groups of several parties.

    Args:
        groups: Of the job.
        parties: Of the job.
        most_items: The most candidates of a level.
    """
    found = repeated_openings(groups, parties)
    for group in several(groups):
        found.append(placed_of_listed(group.members, positions_label(group.name), f"items of '{group.name}'"))
        what = f"positions and names of the frequent items of '{group.name}'"
        bits = prefix_disclosure.most_opened(most_items, PLACE_BYTES + MAX_ITEM_BYTES)
        to = frozenset(group.members)
        found.append(Declared(names_label(group.name), to, f"{what}, bit by bit", bits, "after level 1"))
    if several(groups):
        words = 3 * LISTS.beyond + sum(LIMITS)  # of rows, of all items and of listed ones; of the union of names
        found.append(masked_maximum.declared(parties, words))
    return found


def learned(groups: Groups, parties: tuple[str, ...]) -> list[Learned]:
    """Who learns what, in words."""
    lines = [
        Learned(
            parties, "membership", "the names of the frequent items and in which group each is, not at which party"
        ).main("the names and group of each frequent item")
    ]
    lines += repeated_learned(groups, parties)
    for group in several(groups):
        lines += _of_members(group)
    return lines


def _of_members(group: ColumnGroup) -> list[Learned]:
    members = group.members
    subject = f"the items of the group '{group.name}'"
    what = "which of its own items some member has in enough of its own rows to be a candidate, not which member"
    lines = [Learned(members, "membership", what).main("which of its own items some member has often")]
    if len(members) == 2:
        what = "of each frequent item that it has in no row itself, that the other has it in all of these rows"
        lines.append(Learned(members, "membership", what))
    sizes = [common_length.leakage(members, each) for each in ("items", "items in enough of its own rows")]
    names = prefix_disclosure.leakage(members, limits=False)
    further = [line.of(f"the frequent items of the group '{group.name}'") for line in names]
    return [*(line.of(subject) for line in lines + sizes), *(replace(line, brief="") for line in further)]
