"""What column groups send beside what every job over columns does, from the numbers on which it hangs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crypto.protocols.alignment.costs import ListedSizes, listed_traffic
from crypto.protocols.comparison.comparison import width_for
from crypto.protocols.sums.costs import agreement_traffic
from crypto.protocols.union.prefix_costs import AskedBits, prefix_union_traffic
from link.traffic import Traffic
from mining.joint.tally import SumRange
from mining.joint.tally_costs import compared_traffic
from mining.joint.vertical.engines.engine import EngineCosts
from mining.joint.vertical.grouped.groups import ColumnGroup, Groups
from mining.joint.vertical.grouped.repeated import member_pairs


@dataclass(frozen=True)
class GroupSizes:
    """The numbers on which the traffic of one group's level 1 hangs, where it has several members.

    Attributes:
        lists: Of all items, and of those that members have in enough of their own rows; the positions of these are the
            group's candidates of one item.
        names: What the union of the names of frequent items asks for; None where nothing is frequent.
    """

    lists: ListedSizes
    names: AskedBits | None


def repeated_traffic(
    traffic: Traffic, groups: Groups, compute: tuple[str, str], costs: EngineCosts, positions: int
) -> None:
    """Enters `repeated.check_repeated`.

    Args:
        traffic: Where it is entered.
        groups: Of the job.
        compute: The two computing parties, in the order of the job.
        costs: Of the engine, for columns of parties.
        positions: Of rows.
    """
    pairs = member_pairs(groups)
    if pairs and positions:
        costs.traffic(traffic, rows=positions, itemsets=pairs)
        compared_traffic(traffic, compute, 1, SumRange(np.dtype(np.uint64), width_for(positions * len(pairs))))


def before_level_1(traffic: Traffic, group: ColumnGroup, sizes: GroupSizes) -> int:
    """Enters what the members send until their items have numbers; returns how many rounds this takes."""
    part = traffic.among(group.members)
    agreement_traffic(part)
    listed_traffic(part, sizes.lists, group.speaker, agreed=True)  # as the union of rows has
    return part.rounds - traffic.rounds


def after_level_1(traffic: Traffic, group: ColumnGroup, sizes: GroupSizes) -> int:
    """Enters what the members send until frequent items have names; returns how many rounds this takes."""
    part = traffic.among(group.members)
    if sizes.names is not None:
        prefix_union_traffic(part, sizes.names)
    return part.rounds - traffic.rounds
