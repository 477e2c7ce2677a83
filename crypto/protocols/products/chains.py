"""Itemsets that span parties as chains of factors, so that those which begin alike are multiplied once.

An itemset names at most one column of each party, that of the conjunction of its items there. Its chain lists them in
the order of the job; every beginning of a chain with two columns or more is a product that others may share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

Itemset = Mapping[str, int]
"""By party, the number of its column."""

Factor = tuple[str, int]
Chain = tuple[Factor, ...]


def chains(itemsets: Iterable[Itemset], parties: Sequence[str]) -> list[Chain]:
    """A chain for each itemset.

    Args:
        itemsets: Public.
        parties: In the order of the job.

    Raises:
        ValueError: An itemset has columns of fewer than two parties, or of one that is not in the job.
    """
    made = [tuple((party, itemset[party]) for party in parties if party in itemset) for itemset in itemsets]
    for itemset, chain in zip(itemsets, made, strict=True):
        if len(chain) < 2 or len(chain) != len(itemset):
            raise ValueError(f"a product takes columns of two parties of the job or more, not of {sorted(itemset)}")
    return made


def beginnings(every: Iterable[Chain]) -> set[Chain]:
    """All products that chains begin with: two columns or more, and not the last."""
    return {chain[:length] for chain in every for length in range(2, len(chain))}


def heads(every: Iterable[Chain]) -> list[list[Chain]]:
    """By length, from 2: the beginnings of chains in ascending order."""
    found: dict[int, list[Chain]] = {}
    for beginning in beginnings(every):
        found.setdefault(len(beginning), []).append(beginning)
    return [sorted(found[length]) for length in sorted(found)]


def columns_of(every: Iterable[Chain], party: str) -> list[int]:
    """The party's columns that occur, in ascending order."""
    return sorted({column for chain in every for name, column in chain if name == party})
