from __future__ import annotations

import asyncio
from typing import Any

import numpy as np

from coordinator.jobs.dealing import JobDealer
from crypto.primitives.randomness import Randomness
from crypto.protocols.products.dealt_products import dealt_products
from crypto.protocols.products.outside_dealer import Wanted
from protos.v1.control_pb2 import DealRequest
from tests.errors import fails

REQUEST = DealRequest(label=b"l" * 32, rows=10, first=2, second=3)


class Client:
    """Keeps what a party is dealt."""

    def __init__(self, party: str) -> None:
        self.party, self.dealt = party, list[tuple[bytes, bytes, bytes]]()

    async def deal(self, job_id: bytes, label: bytes, data: bytes) -> None:
        self.dealt.append((job_id, label, data))


def answer(dealer: JobDealer, client: Any, request: DealRequest) -> None:
    asyncio.run(dealer.answer(client, b"job", request))


def test_the_second_party_is_answered_once() -> None:
    dealer, south = JobDealer(("north", "south"), Randomness.from_seed(0)), Client("south")
    answer(dealer, south, REQUEST)
    answer(dealer, south, REQUEST)
    ((job_id, label, data),) = south.dealt
    assert (job_id, label) == (b"job", REQUEST.label)
    wanted = Wanted(REQUEST.label, 10, (2, 3))
    streams = [wanted.masks(dealer.seeds[party]) for party in ("north", "south")]
    assert (np.frombuffer(data, "<u4").reshape(2, 3) == dealt_products(*streams, 10, (2, 3))).all()


def test_other_requests_are_refused_and_their_sender_named() -> None:
    dealer = JobDealer(("north", "south"), Randomness.from_seed(0))
    with fails("E402", party="north") as caught:
        answer(dealer, Client("north"), REQUEST)
    assert caught.value.party == "north"
    with fails("E402") as caught:
        answer(dealer, Client("south"), DealRequest(label=b"short", rows=10, first=2, second=3))
    assert caught.value.party == "south"


def test_seeds_differ() -> None:
    dealers = [JobDealer(("north", "south"), Randomness.from_seed(seed)) for seed in (0, 1)]
    assert len({seed for dealer in dealers for seed in dealer.seeds.values()}) == 4
