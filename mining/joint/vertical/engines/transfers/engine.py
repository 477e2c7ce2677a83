"""The engine `ot`: what it costs, and how it starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from crypto.protocols.products.costs import pair_products_traffic, pair_products_work
from crypto.protocols.products.ot_matrix import Pairs
from link.traffic import Traffic
from mining.joint.vertical.engines.engine import Engine, EngineCosts, EngineSpeed, Setup
from mining.joint.vertical.engines.pairwise import PairwiseCosts
from mining.joint.vertical.engines.products import Naming, Products
from mining.joint.vertical.engines.transfers.products import TransferProducts
from mining.joint.vertical.parameters import VerticalMining

_WINDOW_BYTES: Final = 100 << 20  # see `vector_transfers.WINDOW`


class Transfers(Engine):
    """Oblivious transfer. Private against all other parties together."""

    name = "ot"

    def start(self, setup: Setup) -> Products:
        return TransferProducts(setup.secrets, setup.pairs, setup.task.compute)

    def costs(self, task: VerticalMining, parties: Sequence[str]) -> EngineCosts:
        return TransferCosts(parties, task.compute)

    def trust(self, task: VerticalMining, parties: Sequence[str]) -> str:
        return "nobody: products withstand all other parties together"

    def working_bytes(self, moved: int) -> int:
        return min(moved, _WINDOW_BYTES)


class TransferCosts(PairwiseCosts):
    """Costs of `TransferProducts`."""

    def pair_traffic(
        self, traffic: Traffic, pair: tuple[str, str], rows: int, pairs: Pairs, names: Naming | None
    ) -> None:
        pair_products_traffic(traffic, pair, rows=rows, pairs=pairs)

    def pair_seconds(
        self, pair: tuple[str, str], rows: int, pairs: Pairs, speed: EngineSpeed, density: float, names: Naming | None
    ) -> float:
        work = pair_products_work(rows, pairs)
        return work.transfers * speed.transfer_s + work.words * speed.correction_s
