"""What level 1 with a hidden universe sends, from the numbers on which it hangs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crypto.protocols.union.costs import union_traffic
from crypto.protocols.union.joint_prf_costs import PrfSizes, prf_traffic
from crypto.protocols.union.lists import ListSizes
from crypto.protocols.union.prefix_costs import AskedBits, prefix_union_traffic
from link.traffic import Traffic
from mining.joint.horizontal.hidden_universe import withstood


@dataclass(frozen=True)
class HiddenSizes:
    """The numbers on which the traffic of `hidden_items` hangs.

    Attributes:
        pseudonyms: Of the lists of all items.
        positions: Of the union of pseudonyms; the tally decides on its elements.
        names: Of the union of frequent items; None where nothing is frequent.
    """

    pseudonyms: PrfSizes
    positions: ListSizes
    names: AskedBits | None

    @classmethod
    def of(
        cls,
        items: Mapping[str, int],
        positions: Mapping[str, int],
        frequent: int,
        name_bytes: int,
        bound: int | None,
        max_item_bytes: int,
    ) -> HiddenSizes:
        """Sizes that are exact where these numbers are.

        Args:
            items: By party, its different items.
            positions: By party, how many of them are placed: those that reach its local threshold, or all.
            frequent: Frequent items altogether.
            name_bytes: Of the name of a frequent item, on average.
            bound: The job's bound; None where all learn the size class of the longest list.
            max_item_bytes: The longest name that the job allows.
        """
        placed = ListSizes.expected(positions, bound)
        names = AskedBits.expected(frequent, name_bytes, max_item_bytes) if frequent else None
        return cls(PrfSizes.of(items, bound, withstood(len(items))), placed, names)


def hidden_traffic(traffic: Traffic, merger: str, sizes: HiddenSizes) -> None:
    """Enters what `hidden_items` sends beside the tally, which decides on `sizes.positions.elements` candidates."""
    prf_traffic(traffic, sizes.pseudonyms)
    union_traffic(traffic, sizes.positions, merger)
    if sizes.names is not None:
        prefix_union_traffic(traffic, sizes.names)
