"""What joint pseudonyms send and compute; see `joint_prf`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from crypto.params import STANDARD_128
from crypto.protocols.sums.costs import maximum_traffic
from crypto.protocols.union.joint_prf import routes_of
from crypto.protocols.union.layers import pieces
from crypto.protocols.union.size_classes import LISTS
from link.traffic import Traffic


@dataclass(frozen=True)
class PrfSizes:
    """What the costs of joint pseudonyms depend on.

    Attributes:
        length: Of every party's list.
        colluders: As given to `pseudonyms`.
    """

    length: int
    colluders: int | None = None

    @classmethod
    def of(cls, held: Mapping[str, int], bound: int | None, colluders: int | None = None) -> PrfSizes:
        """The sizes where each party holds so many elements."""
        return cls(LISTS.rounded(bound or max(held.values())), colluders)


def prf_traffic(traffic: Traffic, sizes: PrfSizes) -> None:
    """Enters `joint_prf.pseudonyms`: t + 2 rounds."""
    maximum_traffic(traffic, [LISTS.beyond])
    routes = routes_of(traffic.parties, sizes.colluders)
    messages = len(list(pieces(sizes.length)))
    for owner, helpers in routes.items():
        for sender, receiver in pairwise((owner, *helpers, owner)):
            traffic.send(sender, receiver, sizes.length * STANDARD_128.point_bytes, messages)
    traffic.rounds += 1 + len(helpers)


@dataclass(frozen=True)
class PrfWork:
    """What one party computes for joint pseudonyms.

    Attributes:
        hashed: Elements that it hashes to the group.
        drawn: Random points that fill its list.
        multiplications: Group multiplications: two for each of its elements, one for each point of a list it helps.
    """

    hashed: int
    drawn: int
    multiplications: int


def prf_work(sizes: PrfSizes, held: Mapping[str, int]) -> dict[str, PrfWork]:
    """By party, what it computes where each holds so many elements."""
    routes = routes_of(tuple(held), sizes.colluders)
    work = {}
    for name, number in held.items():
        helped = sizes.length * sum(name in helpers for helpers in routes.values())
        work[name] = PrfWork(number, sizes.length - number, 2 * number + helped)
    return work
