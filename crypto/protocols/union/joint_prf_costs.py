"""What joint pseudonyms send and compute; see `joint_prf`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from crypto.params import STANDARD_128
from crypto.protocols.sums.costs import maximum_traffic
from crypto.protocols.union.joint_prf import routes_of
from crypto.protocols.union.layers import pieces
from crypto.protocols.union.size_classes import LISTS
from link.traffic import Traffic
from protos.v1.joint_prf_pb2 import BlindedPoints


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


def prf_traffic(traffic: Traffic, lane: str, sizes: PrfSizes) -> None:
    """Enters `joint_prf.pseudonyms`: t + 2 rounds.

    Args:
        traffic: Where the frames are entered.
        lane: The path of the lane on which it is called.
        sizes: Of the lists.
    """
    path, parties = f"{lane}/joint-prf", traffic.parties
    maximum_traffic(traffic, f"{path}/length", [LISTS.beyond])
    routes = routes_of(parties, sizes.colluders)
    for owner, helpers in routes.items():
        for points, times in Counter(stop - start for start, stop in pieces(sizes.length, 1)).items():
            size = points * STANDARD_128.point_bytes
            for sender, receiver in pairwise((owner, *helpers, owner)):
                traffic.send_array(sender, receiver, f"{path}/list/{owner}", BlindedPoints, size, times)
    traffic.rounds += 1 + len(routes[parties[0]])


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
