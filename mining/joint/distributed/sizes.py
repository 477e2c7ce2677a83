"""What mining under distributed noise sends, from the numbers on which it hangs: all of them public once it has run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from crypto.protocols.sums.costs import agreement_traffic, sum_traffic
from link.traffic import Traffic
from mining.joint.hybrid.sizes import document_traffic

_WORD_BYTES: Final = 8


@dataclass(frozen=True)
class NamedItems:
    """What one party names, where no catalogue is public.

    Attributes:
        number: How many items.
        size_bytes: Of the list of their names.
    """

    number: int
    size_bytes: int


@dataclass(frozen=True)
class NoisySizes:
    """The numbers on which the traffic of a run hangs.

    Attributes:
        candidates: Of 1, 2, … items: how many are counted; of 1, all items of the universe.
        named: By party; none with a public catalogue.
        classes: Of 1, 2, … items: into how many classes rows are put by their sizes; 0 where they are not.
    """

    candidates: tuple[int, ...]
    named: Mapping[str, NamedItems] = field(default_factory=dict)
    classes: tuple[int, ...] = ()


def noisy_traffic(traffic: Traffic, lane: str, sizes: NoisySizes) -> None:
    """Enters `distributed.mine` on the lane of this path.

    Rounds: 1 for keys, 1 for the rows, 1 for names, and those of a secure sum for each length, or of two where rows
    are classed.
    """
    agreement_traffic(traffic, f"{lane}/keys")
    sum_traffic(traffic, f"{lane}/rows", values=1, word_bytes=_WORD_BYTES, label="noisy_rows")
    for party, named in sizes.named.items():
        to = traffic.others(party)
        document_traffic(traffic, f"{lane}/items", party, to, "items", named.size_bytes, named.number)
    traffic.rounds += bool(sizes.named)
    for length, number in enumerate(sizes.classes, 1):
        if number:
            values = number if length == 1 else 2 * number
            sum_traffic(traffic, f"{lane}/sizes-{length}", values=values, word_bytes=_WORD_BYTES, label="noisy_sizes")
    for length, number in enumerate(sizes.candidates, 1):
        sum_traffic(traffic, f"{lane}/level-{length}", values=number, word_bytes=_WORD_BYTES, label="noisy_supports")
