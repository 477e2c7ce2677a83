"""What column groups open beside what every job over columns does, and what else their members learn."""

from __future__ import annotations

from dataclasses import replace

from crypto.protocols.sums import masked_maximum
from crypto.protocols.union import disclosure as union_disclosure
from crypto.protocols.union import joint_prf, prefix_disclosure
from crypto.protocols.union.joint_prf import PSEUDONYM_BYTES
from crypto.protocols.union.prefixes import LIMITS
from crypto.protocols.union.size_classes import LISTS, SETS
from link.disclosure import Declared, Learned
from mining.joint.vertical.grouped.groups import ColumnGroup, Groups
from mining.joint.vertical.grouped.items import names_label, positions_label
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
        members, most = frozenset(group.members), len(group.members) * SETS.rounded(SETS.most)
        what = f"pseudonyms of the items that some party of '{group.name}' has often enough, among random ones"
        found.append(Declared(positions_label(group.name), members, what, most, "before level 1"))
        what = f"pseudonyms and names of the frequent items of '{group.name}'"
        bits = prefix_disclosure.most_opened(most_items, PSEUDONYM_BYTES + MAX_ITEM_BYTES)
        found.append(Declared(names_label(group.name), members, f"{what}, bit by bit", bits, "after level 1"))
    if several(groups):
        # Of rows and of items, a list of pseudonyms and their union; the union of names.
        words = 2 * (SETS.beyond + LISTS.beyond) + sum(LIMITS)
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
    two = len(members) == 2
    what = "which of its own items some member has in enough of its own rows to be a candidate, not which member"
    again = "if the job goes on after a failure at level 1, again what unions of items reveal, with new noise"
    brief = "which of its own items some member has often"
    lines = [Learned(members, "membership", what).main(brief), Learned(members, "size", again)]
    if two:
        what = "of each frequent item that it has in no row itself, that the other has it in all of these rows"
        lines.append(Learned(members, "membership", what))
    unions = union_disclosure.leakage(members, group.speaker)
    names = prefix_disclosure.leakage(members, limits=False)
    further = [line.of(subject) for line in (*joint_prf.leakage(members), *unions)] + [
        line.of(f"the frequent items of the group '{group.name}'") for line in names
    ]
    return [*(line.of(subject) for line in lines), *(replace(line, brief="") for line in further)]
