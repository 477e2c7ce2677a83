"""The coordinator as the dealer of randomness to the two parties of a job.

It draws a seed for each party, which gets it with the start of the job, and answers the requests that stand in the
events of the job. Seeds are never written down: a coordinator that was restarted cannot go on.
"""

from __future__ import annotations

from coordinator.jobs.client import PartyClient
from crypto.protocols.products.outside_dealer import Dealer, Wanted
from link.errors import MalformedMessage, ProtocolViolation
from link.randomness import RandomStream
from protos.v1.control_pb2 import DealRequest


class JobDealer:
    """Deals in one job.

    Attributes:
        seeds: By party.
    """

    def __init__(self, parties: tuple[str, ...], random: RandomStream) -> None:
        """`parties` are the two of the job, in its order."""
        self._dealer, self._second = Dealer(random), parties[1]
        self._answered: set[bytes] = set()
        self.seeds = dict(zip(parties, self._dealer.seeds, strict=True))

    async def answer(self, client: PartyClient, job_id: bytes, request: DealRequest) -> None:
        """Answers a request of the second party, once; it stands in the events until the party has the answer.

        Raises:
            MalformedMessage: The request cannot be, or the first party makes it.
        """
        if request.label in self._answered:
            return
        if client.party != self._second:
            raise MalformedMessage(f"{client.party} asks for what {self._second} is dealt", party=client.party)
        try:
            wanted = Wanted(request.label, request.rows, (request.first, request.second))
        except ProtocolViolation as error:
            raise type(error)(error.message, party=client.party) from None
        products = await self._dealer.here()[1].products(wanted)
        await client.deal(job_id, request.label, products.astype("<u4").tobytes())
        self._answered.add(request.label)
