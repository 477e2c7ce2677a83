"""What level 1 with a hidden universe sends, from the numbers on which it hangs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crypto.primitives.blocks import blocks_needed
from crypto.protocols.union.costs import UnionSizes, union_traffic
from crypto.protocols.union.joint_prf import PSEUDONYM_BYTES
from crypto.protocols.union.joint_prf_costs import PrfSizes, prf_traffic
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
    positions: UnionSizes
    names: UnionSizes | None

    @classmethod
    def of(
        cls,
        items: Mapping[str, int],
        positions: Mapping[str, int],
        frequent: int,
        blocks_each: int,
        bound: int | None,
    ) -> HiddenSizes:
        """Sizes that are exact where these numbers are.

        Args:
            items: By party, its different items.
            positions: By party, how many of them are placed: those that reach its local threshold, or all.
            frequent: Frequent items altogether.
            blocks_each: Blocks of the longest name of a frequent item.
            bound: The job's bound; None where all learn the size class of the longest list.
        """
        pseudonym = blocks_needed(PSEUDONYM_BYTES)
        placed = UnionSizes.expected(positions, 0, pseudonym, bound, fill="union")
        capacity = dict.fromkeys(items, frequent)
        names = UnionSizes.expected(capacity, frequent, blocks_each, frequent, fill="merged") if frequent else None
        return cls(PrfSizes.of(items, bound, withstood(len(items))), placed, names)


def hidden_traffic(traffic: Traffic, merger: str, sizes: HiddenSizes) -> None:
    """Enters what `hidden_items` sends beside the tally, which decides on `sizes.positions.elements` candidates."""
    prf_traffic(traffic, sizes.pseudonyms)
    union_traffic(traffic, sizes.positions, merger)
    if sizes.names is not None:
        union_traffic(traffic, sizes.names, merger)
