"""Itemsets that stand for those of a run: as many of each split over the parties, of conjunctions without a meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, prod

import numpy as np

from crypto.protocols.product_chains import Itemset

Split = tuple[int, ...]
"""How many items each party has of an itemset, in the order of the job."""

_PRESENCE = 0  # the number of a party's conjunction of no items


def made_up(
    parties: Sequence[str], candidates: Mapping[Split, int], available: Callable[[int, int], int], *, union: bool
) -> list[Itemset]:
    """Candidates as an engine gets them.

    Args:
        parties: Of the job.
        candidates: How many there are of each split.
        available: By number of a party and of items, how many conjunctions of its own may be in a candidate.
        union: Whether all parties take part in each candidate, by their presence where they have no item.

    Returns:
        Those of them that span parties.
    """
    found, ends = list[Itemset](), [_PRESENCE + 1] * len(parties)
    blocks = dict[tuple[int, int, bool], int]()  # where the conjunctions of a party and length begin

    def block(party: int, length: int, number: int, *, alone: bool) -> int:
        key = party, length, alone
        if key not in blocks:
            blocks[key] = ends[party]
            ends[party] += number
        return blocks[key]

    for split, number in candidates.items():
        involved = [party for party, own in enumerate(split) if own]
        alone = len(involved) == 1
        if alone and not union:
            continue
        most = [number if alone else max(1, available(party, split[party])) for party in involved]
        number = min(number, prod(most))
        used = _used(number, most)
        cells = np.unravel_index(np.arange(number) * prod(used) // number, used)
        columns = {parties[party]: [_PRESENCE] * number for party in range(len(parties)) if union}
        for party, each, indices in zip(involved, most, cells, strict=True):
            columns[parties[party]] = (block(party, split[party], each, alone=alone) + indices).tolist()
        found += [dict(zip(columns, numbers, strict=True)) for numbers in zip(*columns.values(), strict=True)]
    return found


def _used(number: int, most: Sequence[int]) -> list[int]:
    """How many conjunctions of each party are in so many candidates: halfway between all and as few as there may be."""
    share = (number / prod(most)) ** (0.5 / len(most))
    used = [ceil(each * share) for each in most]
    while prod(used) < number:
        place = min((place for place in range(len(used)) if used[place] < most[place]), key=used.__getitem__)
        used[place] += 1
    return used
