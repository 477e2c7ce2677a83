"""The engine `paillier`: what it costs and discloses, and how it starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from crypto.protocols.paillier.costs import exact_products_traffic, exact_products_work
from crypto.protocols.products.ot_matrix import Pairs
from link.disclosure import Learned
from link.traffic import Traffic
from mining.joint.vertical.engines.engine import Engine, EngineCosts, EngineSpeed, Setup
from mining.joint.vertical.engines.paillier.products import Encrypted, PaillierProducts, row_blocks
from mining.joint.vertical.engines.pairwise import PairwiseCosts
from mining.joint.vertical.engines.products import Naming, Products
from mining.joint.vertical.parameters import VerticalMining

_COUNT_BYTES: Final = 8  # of a correlation that makes a count by encryption exact


class Paillier(Engine):
    """Packed ciphertexts. Private against all other parties together, but for the time of answers."""

    name = "paillier"

    def start(self, setup: Setup) -> Products:
        return PaillierProducts(setup)

    def costs(self, task: VerticalMining, parties: Sequence[str]) -> EngineCosts:
        """Ciphertexts are kept until all are used, so it works on all that it moves."""
        return _Costs(parties, task.compute)

    def trust(self, task: VerticalMining, parties: Sequence[str]) -> str:
        return "nobody; but response times reveal something about columns"

    def learned(self, task: VerticalMining, parties: Sequence[str]) -> list[Learned]:
        whose = "the other" if len(parties) == 2 else "another party"
        what = f"from response times, roughly how many rows hold the items of {whose}, and how many of these differ"
        detail = (
            f"from how long {whose} takes to answer, about in how many rows its items occur, and how many "
            "different rows these make"
        )
        brief = f"from response times, roughly how many rows hold the items of {whose}"
        return [Learned(tuple(parties), "count", what, detail).main(brief)]


class _Costs(PairwiseCosts):
    def __init__(self, parties: Sequence[str], compute: tuple[str, str]) -> None:
        super().__init__(parties, compute)
        self._encrypted = Encrypted()

    def pair_traffic(
        self, traffic: Traffic, pair: tuple[str, str], rows: int, pairs: Pairs, names: Naming | None
    ) -> None:
        for block in row_blocks(rows):
            roles = self._encrypted.roles(pair, block, pairs, names)
            exact_products_traffic(
                traffic, roles.holder, roles.evaluator, kept=roles.kept, pairs=roles.pairs, names=roles.names
            )

    def pair_seconds(
        self, pair: tuple[str, str], rows: int, pairs: Pairs, speed: EngineSpeed, density: float, names: Naming | None
    ) -> float:
        total = 0.0
        for block in row_blocks(rows):
            roles = self._encrypted.roles(pair, block, pairs, names)
            part = exact_products_work(roles.kept, roles.pairs, roles.names, density)
            total += part.encryptions * speed.encryption_s + part.decryptions * speed.decryption_s
            total += part.multiplications * speed.multiplication_s + part.residues * speed.residue_s
            total += part.transfers * (speed.transfer_s + _COUNT_BYTES * speed.correction_s)
        return total
