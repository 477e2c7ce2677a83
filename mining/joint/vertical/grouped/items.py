"""Level 1 of a column group: its members count items at positions that name none, and name those that are frequent.

Steps, among the members of each group that has several, all groups at once:
    A  positions    the members list items that they have in c/m of their own rows, m the number of members: an item of
                    support ≥ c is among them. A union aligns what is listed: every member learns the positions of its
                    own items, of those that it has listed and of those that others have. There are as many positions
                    as all lists have places together. The group opens their number to the others as `item_numbers`
    B  level 1      every position is decided on as a candidate of one item; a member that has nothing at a position
                    brings an empty column
    C  names        a union by prefixes of the frequent positions with their names, said by those who hold the items;
                    the names, in the order of positions, are the group's. It opens them to the others as `items`

A group of one member names its items as a party without groups does: those that reach c in its own rows have numbers.

Rounds: those of `alignment.union_of_listed` and of a union by prefixes.
Output: the group's items by number; then the names of the frequent ones, to all parties.
Adversary and collusion: those of the protocols it consists of, among the members.
Leakage: `grouped.disclosure`. A member sees of an item that it holds itself whether it is at some position. The other
    groups see how many positions there are, and the names of frequent items, which one member opens for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.scratch_file import ScratchLimits
from crypto.protocols.alignment import alignment
from crypto.protocols.comparison.two_party import Pairs
from crypto.protocols.sums.pairwise import PairwiseSecrets, agree
from crypto.protocols.union.prefix_union import prefix_union
from link.errors import ProtocolViolation
from link.session import Session
from link.tasks import together
from mining.data.items.item_columns import ItemRows
from mining.joint.item_names import decoded
from mining.joint.vertical.grouped.groups import ColumnGroup, Groups, group_of
from mining.joint.vertical.names import open_names_to, receive_names
from mining.limits import MAX_ITEM_BYTES

ITEMS = "items"  # labels
NUMBERS = "item_numbers"
PLACE_BYTES = 4  # of a position, before the name of what is there


def positions_label(group: str) -> str:
    """Of step A."""
    return f"item_positions/{group}"


def names_label(group: str) -> str:
    """Of step C."""
    return f"item_names/{group}"


@dataclass(frozen=True, eq=False, slots=True)
class _Members:
    """What the members of this party's group agree upon, where it has several.

    Attributes:
        session: A lane among them.
        secrets: Of theirs alone.
        pairs: What this party agrees upon with each of the others.
    """

    session: Session
    secrets: PairwiseSecrets
    pairs: Pairs


@dataclass(frozen=True, eq=False, slots=True)
class GroupItems:
    """The candidates of one item of all groups, as this party knows them.

    Attributes:
        numbers: By candidate of its own group, which of its items this is; −1 where it has none of the kind.
        sizes: By group, in their order, how many candidates it has.
    """

    numbers: NDArray[np.int64]
    sizes: Mapping[str, int]
    _session: Session
    _groups: Groups
    _columns: ItemRows
    _members: _Members | None

    @classmethod
    async def of(
        cls,
        session: Session,
        pairs: Pairs,
        groups: Groups,
        columns: ItemRows,
        min_count: int,
        limits: ScratchLimits,
    ) -> GroupItems:
        """Numbers the items of all groups.

        Args:
            session: A lane of its own.
            pairs: What this party agrees upon with each of the others.
            groups: Of the job.
            columns: This party's items over the positions of rows.
            min_count: c, public.
            limits: What lists of items may take at this party.

        Raises:
            ConfigurationError: Some member has more items than an alignment takes; nobody learns which.
            MalformedMessage: A peer's messages are not as they must be.
        """
        own = group_of(groups, session.me)
        counts = columns.counts()
        if len(own.members) == 1:
            members, numbers = None, np.flatnonzero(counts >= min_count)
        else:
            members, numbers = await _placed(session, pairs, own, columns.items, counts, min_count, limits)
        if session.me == own.speaker:
            await session.open(NUMBERS, np.array([len(numbers)], np.uint32), _outside(session, own))
        sizes = {}
        for group in groups:
            if group == own:
                sizes[group.name] = len(numbers)
            else:
                (number,) = await session.receive_opened(group.speaker, NUMBERS, np.uint32, (1,))
                sizes[group.name] = int(number)
        return cls(numbers, sizes, session, groups, columns, members)

    async def named(self, frequent: NDArray[np.bool_]) -> dict[str, list[str]]:
        """The names of the frequent items, by group.

        Args:
            frequent: Which candidates of this party's own group are.

        Raises:
            ProtocolViolation: The names that came out are not those of the frequent positions.
            MalformedMessage: A peer's messages are not as they must be.
        """
        own = group_of(self._groups, self._session.me)
        items = self._columns.items
        if self._members is None:
            names = [items[number] for number in self.numbers[frequent]]
        else:
            names = await _names(self._members, own, frequent, self.numbers, items)
        return await _exchanged(self._session, self._groups, own, names)


async def _placed(
    session: Session,
    pairs: Pairs,
    group: ColumnGroup,
    items: tuple[str, ...],
    counts: NDArray[np.int64],
    min_count: int,
    limits: ScratchLimits,
) -> tuple[_Members, NDArray[np.int64]]:
    """Step A: which of this member's items is at each of the group's positions."""
    lane = session.among("members", group.members)
    secrets, pairs = await agree(lane.lane("keys")), {peer: pairs[peer] for peer in lane.others}
    held = np.flatnonzero(counts)
    often = counts[held] >= -(-min_count // len(group.members))
    listed, others = held[often], held[~often]
    placed = await alignment.union_of_listed(
        lane.lane("positions"),
        secrets,
        pairs,
        [items[item].encode() for item in listed],
        [items[item].encode() for item in others],
        merger=group.speaker,
        label=positions_label(group.name),
        limits=limits,
    )
    numbers = np.concatenate([listed, others, [-1]])[placed]  # −1 where this member has none
    return _Members(lane, secrets, pairs), numbers


async def _names(
    members: _Members,
    group: ColumnGroup,
    frequent: NDArray[np.bool_],
    numbers: NDArray[np.int64],
    items: tuple[str, ...],
) -> list[str]:
    """Step C: the names of a group's frequent items, in the order of their positions."""
    chosen = np.flatnonzero(frequent).tolist()
    if not chosen:
        return []
    mine = [_at(place) + items[numbers[place]].encode() for place in chosen if numbers[place] >= 0]
    union = await prefix_union(
        members.session.lane("names"),
        members.secrets,
        members.pairs,
        mine,
        max_element_bytes=PLACE_BYTES + MAX_ITEM_BYTES,
        bound=len(chosen),
        label=names_label(group.name),
    )
    if [element[:PLACE_BYTES] for element in union] != [_at(place) for place in chosen]:
        raise ProtocolViolation(
            "the names of the frequent items are not those of the frequent positions, so a node is faulty or has "
            "another version; check all nodes",
            party=members.session.others[0] if len(members.session.others) == 1 else None,
        )
    return list(decoded([element[PLACE_BYTES:] for element in union]))


def _at(place: int) -> bytes:
    """A position, so that bytes ascend as numbers do."""
    return place.to_bytes(PLACE_BYTES, "big")


async def _exchanged(session: Session, groups: Groups, own: ColumnGroup, names: list[str]) -> dict[str, list[str]]:
    """Every group opens the names of its frequent items to the others, by one of its members."""
    lane = session.lane("items")
    if session.me == own.speaker:
        await open_names_to(lane, ITEMS, names, _outside(session, own))
    others = [group for group in groups if group != own]
    theirs = await together(receive_names(lane, ITEMS, group.speaker) for group in others)
    found = {own.name: names, **{group.name: each for group, each in zip(others, theirs, strict=True)}}
    return {group.name: found[group.name] for group in groups}


def _outside(session: Session, group: ColumnGroup) -> list[str]:
    return [party for party in session.others if party not in group.members]
