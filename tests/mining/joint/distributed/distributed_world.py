"""Runs of mining under distributed noise inside one test, and its parts by brute force."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from mining.data.transactions import Transactions
from mining.joint.distributed import budget
from mining.joint.distributed.disclosure import openings
from mining.joint.distributed.mine import mine
from mining.joint.distributed.parameters import DistributedMining
from mining.joint.estimated import EstimatedOutcome
from tests.mining.joint.oracle import Rows
from tests.world import run_parties

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def task_for(data: Mapping[str, Rows], min_support: int | Decimal | None, **parameters: Any) -> DistributedMining:
    """Public parameters; the catalogue names all items of the data, unless said."""
    items = tuple(sorted({item for rows in data.values() for row in rows for item in row}))
    given = {"catalogue": items or ("none",), "contributions": (10_000,), "max_length": 4} | parameters
    return replace(DistributedMining(Decimal(2), Decimal("1e-6"), min_support, tuple(data)), **given)


def run(data: Mapping[str, Rows], task: DistributedMining, seed: int = 0, **world: Any) -> dict[str, EstimatedOutcome]:
    """A whole run, by party."""

    async def role(session: Any) -> EstimatedOutcome:
        return await mine(session.lane("task"), Transactions.from_rows(data[session.me]), task)

    return run_parties(list(data), role, declared=openings(task, tuple(data)), seed=seed, **world)


def supports(result: EstimatedOutcome) -> dict[frozenset[str], float]:
    """What was found, with noisy counts."""
    assert result.estimated is not None
    found = result.estimated.itemsets
    return {
        frozenset(found.items[item] for item in each): count
        for sets, counts, _ in found.levels
        for each, count in zip(sets.tolist(), counts.tolist(), strict=True)
    }


def silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the noise out of sums."""
    monkeypatch.setattr(budget.SumNoise, "share", lambda self, size, random: np.zeros(size, np.int64))


def truncated_items(row: Sequence[str], most: int) -> set[str]:
    """The items that a row keeps, as the documentation says it."""
    items = set(row)
    if len(items) <= most:
        return items
    places = {item: int.from_bytes(hashlib.sha256(item.encode()).digest()[:8], "little") for item in items}
    start = sum(place * GOLDEN for place in places.values()) & MASK
    return set(sorted(items, key=lambda item: (places[item] - start & MASK, item))[:most])


def truncated_sets(rows: Rows, candidates: Sequence[frozenset[str]], most: int) -> list[int]:
    """How many rows each candidate keeps, where a row keeps the first that it holds of this sequence."""
    counts = [0] * len(candidates)
    for row in rows:
        held = [at for at, each in enumerate(candidates) if each <= set(row)]
        for at in held[:most]:
            counts[at] += 1
    return counts


def is_closed(found: set[frozenset[str]]) -> bool:
    """Whether every subset of an itemset that was found was found too."""
    return all(
        frozenset(part) in found for each in found if len(each) > 1 for part in combinations(each, len(each) - 1)
    )
