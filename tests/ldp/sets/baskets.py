"""Users' sets for the tests of mining: planted ones, and reference baskets."""

from __future__ import annotations

import gzip
import pathlib
from fractions import Fraction
from itertools import combinations

import numpy as np

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.dyadic import Dyadic
from ldp.arithmetic.sampling import coin_flips
from ldp.sets.baskets import Baskets
from ldp.sets.itemset_candidates import Itemset, contained, largest_itemset


def planted(shares: list[tuple[Itemset, float]], d: int, n: int, rng: Randomness) -> Baskets:
    """n sets of d items, into each of which each itemset is put with its probability, independently."""
    owners, codes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for itemset, share in shares:
        holders = np.flatnonzero(coin_flips(Dyadic.floor(Fraction(share), 64), n, rng))
        for item in itemset:
            owners.append(holders)
            codes.append(np.full(len(holders), item))
    return Baskets.of_occurrences(np.concatenate(owners), np.concatenate(codes), n, d)


def reference(folder: pathlib.Path, name: str, copies: int = 1) -> Baskets:
    """A file of the reference transactions, its items numbered anew, each basket `copies` times."""
    with gzip.open(folder / "transactions" / f"{name}.dat.gz", "rt", encoding="utf-8") as file:
        rows = [line.split() for line in file if line.strip()]
    _, codes = np.unique(np.array([int(item) for row in rows for item in row]), return_inverse=True)
    owners = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    baskets = Baskets.of_occurrences(owners, codes.astype(np.int64), len(rows), int(codes.max()) + 1)
    return baskets[np.tile(np.arange(len(rows)), copies)]


def most_frequent_items(baskets: Baskets, k: int) -> dict[Itemset, float]:
    """The k most frequent items and their frequencies, the most frequent first."""
    counts = baskets.counts()
    return {(item,): counts[item] / len(baskets) for item in np.argsort(-counts, kind="stable")[:k].tolist()}


def most_frequent_itemsets(baskets: Baskets, k: int) -> dict[Itemset, float]:
    """The same of itemsets: level by level, from those that are among the k most frequent so far."""
    known = most_frequent_items(baskets, k)
    for size in range(2, largest_itemset(k) + 1):
        least = sorted(known.values())[-k]
        alive = [each for each in known if len(each) == size - 1 and known[each] >= least]
        joined = {tuple(sorted({*one, *other})) for one, other in combinations(alive, 2)}
        candidates = sorted(each for each in joined if len(each) == size)
        if candidates:
            counts = contained(baskets, candidates).counts()
            known.update(zip(candidates, (counts / len(baskets)).tolist(), strict=True))
    best = sorted(known, key=lambda each: (-known[each], each))[:k]
    return {each: known[each] for each in best}
