"""What a joint horizontal run sends, from the numbers on which it hangs: how many items, candidates and itemsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crypto.protocols.secure_sum import word_for
from crypto.protocols.sum_costs import agreement_traffic, sum_traffic
from crypto.protocols.union_costs import UnionSizes, union_traffic
from link.traffic import Traffic
from mining.joint.parameters import HorizontalMining

_WORD_BYTES = 8


@dataclass(frozen=True)
class MiningSizes:
    """The numbers on which the traffic of a run hangs.

    Attributes:
        n_rows: Transactions of all parties.
        universe: Items that are summed at level 1.
        items: The union of items; None with a public catalogue.
        one_shot: The union of itemsets, where the one-shot strategy is tried and every enumeration is bounded.
        closure: Itemsets of two and more items that the one-shot strategy sums.
        candidates: Level-wise, of 2, 3, … items: how many are counted.
        thinned: Level-wise and thinned, for each of these: the union, whose elements are what is summed.
        tried: Whether the one-shot strategy is tried, with or without success.
    """

    n_rows: int
    universe: int
    items: UnionSizes | None
    one_shot: UnionSizes | None = None
    closure: int = 0
    candidates: tuple[int, ...] = ()
    thinned: tuple[UnionSizes, ...] = ()
    tried: bool = False


@dataclass(frozen=True)
class Sum:
    """A secure sum that is opened to all."""

    lane: str
    label: str


@dataclass(frozen=True)
class Union:
    """A secure set union."""

    lane: str
    label: str
    sizes: UnionSizes


@dataclass(frozen=True)
class Vote:
    """A `Ballot.decide`."""

    lane: str
    candidates: int


Step = Sum | Union | Vote


def steps(sizes: MiningSizes) -> list[Step]:
    """The sums and unions of `horizontal.mine`, one after the other."""
    found: list[Step] = [Sum("rows", "rows")]
    if sizes.items is not None:
        found.append(Union("items", "items", sizes.items))
    found.append(Vote("level-1", sizes.universe))
    if sizes.tried:
        found.append(Sum("bounded", "enumeration_bounded"))
    if sizes.one_shot is not None:
        return [*found, Union("itemsets", "itemsets", sizes.one_shot), Vote("one-shot", sizes.closure)]
    for place, candidates in enumerate(sizes.candidates):
        name = f"level-{place + 2}"
        if place < len(sizes.thinned):
            found.append(Union(f"{name}/thin", "candidates", sizes.thinned[place]))
            candidates = sizes.thinned[place].elements
        found.append(Vote(name, candidates))
    return found


def mining_traffic(traffic: Traffic, lane: str, task: HorizontalMining, sizes: MiningSizes) -> None:
    """Enters `horizontal.mine` on the lane of this path."""
    agreement_traffic(traffic, f"{lane}/keys")
    word_bytes = word_for(sizes.n_rows).itemsize
    for step in steps(sizes):
        path = f"{lane}/{step.lane}"
        match step:
            case Sum(label=label):
                sum_traffic(traffic, path, values=1, word_bytes=_WORD_BYTES, label=label)
            case Union(label=label, sizes=union):
                union_traffic(traffic, path, union, merger=task.merger, label=label)
            case Vote(candidates=candidates) if candidates:
                _vote_traffic(traffic, path, candidates, word_bytes, task.learners)
            case _:
                pass  # nothing is sent where there is nothing to decide


def _vote_traffic(traffic: Traffic, lane: str, candidates: int, word_bytes: int, learners: Sequence[str]) -> None:
    sum_traffic(traffic, lane, values=candidates, word_bytes=word_bytes, label="supports", to=learners)
    outsiders = [party for party in traffic.parties if party not in learners]
    traffic.open(learners[0], outsiders, lane, "frequent", candidates, candidates)
    traffic.rounds += bool(outsiders)
