"""What joint pseudonyms send and compute; see `joint_prf`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from crypto.params import STANDARD_128
from crypto.protocols.joint_prf import capacity, routes_of, rung
from crypto.protocols.layers import pieces
from link.traffic import Traffic
from protos.v1.joint_prf_pb2 import BlindedPoints, PrfAnnouncement


@dataclass(frozen=True)
class PrfSizes:
    """What the costs of joint pseudonyms depend on.

    Attributes:
        lengths: By party, the length of its list.
        announced: Whether each party announces its size class, since the job fixes no bound.
        colluders: As given to `pseudonyms`.
    """

    lengths: Mapping[str, int]
    announced: bool
    colluders: int | None = None

    @classmethod
    def of(cls, held: Mapping[str, int], bound: int | None, colluders: int | None = None) -> PrfSizes:
        """The sizes where each party holds so many elements."""
        lengths = {name: bound or capacity(rung(number)) for name, number in held.items()}
        return cls(lengths, bound is None, colluders)


def prf_traffic(traffic: Traffic, lane: str, sizes: PrfSizes) -> None:
    """Enters `joint_prf.pseudonyms`: t + 1 rounds, and one more where lengths are announced.

    Args:
        traffic: Where the frames are entered.
        lane: The path of the lane on which it is called.
        sizes: Of the lists.
    """
    path, parties = f"{lane}/joint-prf", traffic.parties
    if sizes.announced:
        for party in parties:
            traffic.broadcast(party, path, PrfAnnouncement(rung=rung(sizes.lengths[party])))
    routes = routes_of(parties, sizes.colluders)
    for owner, helpers in routes.items():
        for start, stop in pieces(sizes.lengths[owner], 1):
            size = (stop - start) * STANDARD_128.point_bytes
            for sender, receiver in pairwise((owner, *helpers, owner)):
                traffic.send_array(sender, receiver, f"{path}/list/{owner}", BlindedPoints, size)
    traffic.rounds += 1 + len(routes[parties[0]]) + sizes.announced


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
        helped = sum(sizes.lengths[owner] for owner, helpers in routes.items() if name in helpers)
        work[name] = PrfWork(number, sizes.lengths[name] - number, 2 * number + helped)
    return work
