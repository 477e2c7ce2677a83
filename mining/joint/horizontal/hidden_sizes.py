"""What level 1 with a hidden universe sends, from the numbers on which it hangs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crypto.protocols.alignment.costs import AlignmentSizes, row_union_traffic
from crypto.protocols.union.prefix_costs import AskedBits, prefix_union_traffic
from link.traffic import Traffic


@dataclass(frozen=True)
class HiddenSizes:
    """The numbers on which the traffic of `hidden_items` hangs.

    Attributes:
        items: The lists that are aligned.
        names: Of the union of frequent items; None where nothing is frequent.
    """

    items: AlignmentSizes
    names: AskedBits | None

    @classmethod
    def of(
        cls, items: Mapping[str, int], frequent: int, name_bytes: int, bound: int | None, max_item_bytes: int
    ) -> HiddenSizes:
        """Sizes that are exact where these numbers are.

        Args:
            items: By party, its different items.
            frequent: Frequent items altogether.
            name_bytes: Of the name of a frequent item, on average.
            bound: The job's bound; None where all learn the size class of the longest list.
            max_item_bytes: The longest name that the job allows.
        """
        names = AskedBits.expected(frequent, name_bytes, max_item_bytes) if frequent else None
        return cls(AlignmentSizes.of(items, 0, bound), names)


def hidden_traffic(traffic: Traffic, merger: str, sizes: HiddenSizes) -> None:
    """Enters what `hidden_items` sends beside the tally, which decides on `sizes.items.positions` candidates."""
    row_union_traffic(traffic, sizes.items, merger, agreed=True)
    if sizes.names is not None:
        prefix_union_traffic(traffic, sizes.names)
