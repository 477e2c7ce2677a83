"""Made-up itemsets of a run: as many of each split over the parties, of conjunctions without a meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, prod

import numpy as np

from crypto.protocols.products.chains import Itemset

Split = tuple[int, ...]
"""How many items each party has of an itemset, in the order of the job."""

_PRESENCE = 0  # the number of a party's conjunction of no items
_BLOCK_BITS = 32  # of the numbers of a length


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
        Those of them that span parties. A conjunction of some length has the same number whatever the candidates'.
    """
    found = list[Itemset]()
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
        for party, indices in zip(involved, cells, strict=True):
            columns[parties[party]] = (_block(split[party], alone=alone) + indices).tolist()
        found += [dict(zip(columns, numbers, strict=True)) for numbers in zip(*columns.values(), strict=True)]
    return found


def _block(length: int, *, alone: bool) -> int:
    """Where the numbers of conjunctions of so many items begin: those of which others have a part, and those alone."""
    return 2 * length + alone << _BLOCK_BITS


def _used(number: int, most: Sequence[int]) -> list[int]:
    """How many conjunctions of each party are in so many candidates: halfway between all and as few as there may be."""
    share = (number / prod(most)) ** (0.5 / len(most))
    used = [ceil(each * share) for each in most]
    while prod(used) < number:
        place = min((place for place in range(len(used)) if used[place] < most[place]), key=used.__getitem__)
        used[place] += 1
    return used
