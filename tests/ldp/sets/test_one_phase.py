"""Items found by one report of a whole set."""

from __future__ import annotations

import numpy as np
import pytest

from crypto.primitives.randomness import Randomness
from ldp.sets.one_phase import WholeSetMining
from ldp.sets.plan import MiningServer

SHARES = np.array([0.8, 0.6, 0.4, 0.2, 0.1, 0.05])
USERS = 20_000


@pytest.mark.parametrize("kind", ["privset", "wheel"])
def test_the_most_frequent_items_are_found_within_their_deviations(kind: str) -> None:
    rng = np.random.default_rng(1)
    held = rng.random((USERS, len(SHARES))) < SHARES
    sets = [np.flatnonzero(row).tolist() for row in held]
    plan = WholeSetMining(len(SHARES), 2.0, 3, len(SHARES), kind)  # type: ignore[arg-type]
    found = plan.find(sets, Randomness.from_seed(2))
    assert [each.items for each in found] == [(0,), (1,), (2,)]
    for each, truth in zip(found, held.mean(axis=0), strict=False):
        assert abs(each.frequency - truth) < 5 * each.deviation  # fails in one of 10^6 runs
    server = MiningServer(plan)
    announced = plan.announced(server.phase.announcement)
    assert announced.exact_epsilon <= 2.0
    server.add(announced.privatise(sets[:500], Randomness.from_seed(3)))
    again = MiningServer.from_bytes(server.to_bytes(), plan)
    again.advance()
    assert again.finished
