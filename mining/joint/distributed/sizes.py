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
class NoisySizes:
    """The numbers on which the traffic of a run hangs.

    Attributes:
        candidates: Of 1, 2, … items: how many are counted; of 1, all items of the universe.
        named: By party, bytes of the names of its items; none with a public catalogue.
        classes: Of 1, 2, … items: into how many classes rows are put by their sizes; 0 where they are not.
    """

    candidates: tuple[int, ...]
    named: Mapping[str, int] = field(default_factory=dict)
    classes: tuple[int, ...] = ()


def noisy_traffic(traffic: Traffic, sizes: NoisySizes) -> None:
    """Enters `distributed.mine`.

    Rounds: 1 for keys, 1 for the rows, 1 for names, and those of a secure sum for each length, or of two where rows
    are classed.
    """
    agreement_traffic(traffic)
    sum_traffic(traffic, _WORD_BYTES)
    for party, size in sizes.named.items():
        document_traffic(traffic, party, traffic.parties, size)
    traffic.rounds += bool(sizes.named)
    for length, number in enumerate(sizes.classes, 1):
        if number:
            sum_traffic(traffic, _WORD_BYTES * number * min(length, 2))
    for number in sizes.candidates:
        sum_traffic(traffic, _WORD_BYTES * number)
