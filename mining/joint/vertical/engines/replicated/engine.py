"""The engine `replicated`: whom it needs, what it costs and discloses, and how it starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from crypto.primitives.shares.ring_matrix import BLOCK_WORDS
from crypto.protocols.products.chains import Itemset
from crypto.protocols.products.costs import (
    dealt_products_traffic,
    replicated_elements,
    replicated_flops,
    spanning_counts_traffic,
)
from crypto.protocols.products.replicated_counts import STREAMS
from link.disclosure import Learned
from link.errors import ConfigurationError
from link.traffic import Traffic
from mining.joint.vertical.engines.engine import TYPICAL_DENSITY, Engine, EngineCosts, EngineSpeed, Setup
from mining.joint.vertical.engines.products import Naming, Products, numbers_of
from mining.joint.vertical.engines.replicated.products import DealtProducts, ReplicatedProducts
from mining.joint.vertical.parameters import COORDINATOR, VerticalMining, holders_of

_BLOCK_BYTES: Final = 3 * STREAMS * BLOCK_WORDS * 4  # a block's columns: own, sent and received
_MATRIX_FLOPS: Final = 2 * 3  # multiplications and additions a term, in limbs


class Replicated(Engine):
    """Shares of all columns at three parties; between two, randomness that the coordinator deals."""

    name = "replicated"
    takes_helper = True

    def start(self, setup: Setup) -> Products:
        task, parties = setup.task, setup.session.parties
        if not _is_dealt(parties):
            return ReplicatedProducts(setup.secrets, setup.pairs, holders_of(task, parties))
        if setup.dealings is None or task.helper != COORDINATOR:
            raise ConfigurationError(
                'nobody deals randomness to the two parties; [itemsets] engine = "replicated" with two parties needs '
                '[trust] helper = "coordinator"'
            )
        (pair,) = setup.pairs.values()
        return DealtProducts(pair, setup.dealings)

    def costs(self, task: VerticalMining, parties: Sequence[str]) -> EngineCosts:
        return _DealtCosts(parties) if _is_dealt(parties) else _ReplicatedCosts(task, parties)

    def trust(self, task: VerticalMining, parties: Sequence[str]) -> str:
        if _is_dealt(parties):
            return f"the {COORDINATOR}, who deals randomness, not to work together with a party"
        first, second = task.compute
        helper = self.helper(task, parties)
        return f"{first}, {second} and {helper}, who hold shares of all columns: no two of them to work together"

    def learned(self, task: VerticalMining, parties: Sequence[str]) -> list[Learned]:
        if not _is_dealt(parties):
            what = "which rows hold which items of all parties, if any two of them work together"
            return [Learned(holders_of(task, parties), "membership", what)]
        first, second = parties
        again = "" if task.rules is None else ", and in frequent itemsets where the job goes on after a failure"
        short = "as the dealer, the number of row positions, and at each level how many combinations of items are tried"
        sizes = (
            f"as the dealer, the number of positions of rows, and at each level how many combinations of items of "
            f"{first} and of {second} occur in candidates across the two{again}"
        )
        return [
            Learned((COORDINATOR,), "size", short, sizes).main("as the dealer, the number of row positions"),
            *(
                Learned(
                    (COORDINATOR, one), "membership", f"which rows hold which items of {other}, if they work together"
                )
                for one, other in ((first, second), (second, first))
            ),
        ]

    def collusion(self, task: VerticalMining, parties: Sequence[str]) -> str:
        one, two, three = holders_of(task, parties)
        return f"any two of {one}, {two} and {three} together can read the columns of all parties"

    def worst(self, task: VerticalMining, parties: Sequence[str]) -> str:
        return self.collusion(task, parties)

    def usual_helper(self, parties: Sequence[str]) -> str | None:
        """Two parties cannot replicate shares among three, so the coordinator deals."""
        return COORDINATOR if _is_dealt(parties) else None

    def helper(self, task: VerticalMining, parties: Sequence[str]) -> str | None:
        return COORDINATOR if _is_dealt(parties) else holders_of(task, parties)[2]

    def agreements(self, task: VerticalMining, parties: Sequence[str]) -> list[tuple[str, str]]:
        """Of three who hold shares only those who get the result agree."""
        first, second = parties if _is_dealt(parties) else holders_of(task, parties)[:2]
        return [(first, second)]

    def working_bytes(self, moved: int) -> int:
        return min(moved, _BLOCK_BYTES)


def _is_dealt(parties: Sequence[str]) -> bool:
    return len(parties) == 2


class _DealtCosts(EngineCosts):
    def __init__(self, parties: Sequence[str]) -> None:
        first, second = parties
        self._pair = first, second

    def traffic(self, traffic: Traffic, *, rows: int, itemsets: Sequence[Itemset], names: Naming | None = None) -> None:
        dealt_products_traffic(traffic, self._pair, rows=rows, pairs=numbers_of(itemsets, self._pair))

    def seconds(
        self,
        rows: int,
        itemsets: Sequence[Itemset],
        speed: EngineSpeed,
        density: float = TYPICAL_DENSITY,
        names: Naming | None = None,
    ) -> float:
        used = [len(set(side)) for side in numbers_of(itemsets, self._pair).T.tolist()]
        return _MATRIX_FLOPS * 3 * rows * used[0] * used[1] * speed.flop_s  # both holders, and the dealer


class _ReplicatedCosts(EngineCosts):
    def __init__(self, task: VerticalMining, parties: Sequence[str]) -> None:
        self._holders, self._parties = holders_of(task, parties), parties

    def traffic(self, traffic: Traffic, *, rows: int, itemsets: Sequence[Itemset], names: Naming | None = None) -> None:
        spanning_counts_traffic(traffic, self._holders, self._holders[:2], rows=rows, itemsets=itemsets)

    def seconds(
        self,
        rows: int,
        itemsets: Sequence[Itemset],
        speed: EngineSpeed,
        density: float = TYPICAL_DENSITY,
        names: Naming | None = None,
    ) -> float:
        of_each = replicated_flops(rows, itemsets, self._parties) * speed.flop_s
        return 3 * (of_each + replicated_elements(rows, itemsets, self._parties) * speed.element_s)
