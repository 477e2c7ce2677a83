"""What column groups send beside what every job over columns does, from the numbers on which it hangs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crypto.primitives.blocks import blocks_needed
from crypto.protocols.sums.costs import agreement_traffic
from crypto.protocols.union.costs import UnionSizes, union_traffic
from crypto.protocols.union.joint_prf import PSEUDONYM_BYTES
from crypto.protocols.union.joint_prf_costs import PrfSizes, prf_traffic
from link.traffic import Traffic
from mining.joint.vertical.grouped.groups import ColumnGroup


@dataclass(frozen=True)
class GroupSizes:
    """The numbers on which the traffic of one group's level 1 hangs, where it has several members.

    Attributes:
        held: By member, its different items.
        placed: By member, those that it has in enough of its own rows.
        frequent: Of the group's items.
        longest: Bytes of the longest name of a frequent item.
    """

    held: Mapping[str, int]
    placed: Mapping[str, int]
    frequent: int
    longest: int

    @property
    def pseudonyms(self) -> PrfSizes:
        """Of the lists of all items."""
        return PrfSizes.of(self.held, None)

    @property
    def positions(self) -> UnionSizes:
        """Of the union of pseudonyms; its elements are the group's candidates of one item."""
        return UnionSizes.expected(self.placed, 0, blocks_needed(PSEUDONYM_BYTES), None, fill="union")

    @property
    def names(self) -> UnionSizes | None:
        """Of the union of names; None where nothing is frequent."""
        if not self.frequent:
            return None
        capacity = dict.fromkeys(self.held, self.frequent)
        blocks = blocks_needed(PSEUDONYM_BYTES + self.longest)
        return UnionSizes.expected(capacity, self.frequent, blocks, self.frequent, fill="merged")


def before_level_1(traffic: Traffic, group: ColumnGroup, sizes: GroupSizes) -> int:
    """Enters what the members send until their items have numbers; returns how many rounds this takes."""
    part = traffic.among(group.members)
    agreement_traffic(part)
    prf_traffic(part, sizes.pseudonyms)
    union_traffic(part, sizes.positions, group.speaker)
    return part.rounds - traffic.rounds


def after_level_1(traffic: Traffic, group: ColumnGroup, sizes: GroupSizes) -> int:
    """Enters what the members send until frequent items have names; returns how many rounds this takes."""
    part = traffic.among(group.members)
    if sizes.names is not None:
        union_traffic(part, sizes.names, group.speaker)
    return part.rounds - traffic.rounds
