"""LDPMiner: both phases ask everybody, with half of ε each."""

from __future__ import annotations

import numpy as np
import pytest

from crypto.primitives.randomness import Randomness
from ldp.documents import document
from ldp.sets.ldp_miner import LDPMiner
from ldp.sets.metrics import f1, ncr
from ldp.sets.padding import PaddingAndSampling
from ldp.sets.plan import MiningServer
from ldp.sets.svim import ItemMining
from link.errors import ConfigurationError, InputDataError
from tests.errors import fails
from tests.ldp.sets.baskets import most_frequent_items, planted

SINGLES = [((item,), 0.5 - 0.05 * item) for item in range(5)]


def test_both_phases_together_spend_epsilon() -> None:
    plan, baskets = LDPMiner(50, 3.0, 5, 4), planted(SINGLES, 50, 5_000, Randomness.from_seed(1))
    server, spent = MiningServer(plan), 0.0
    while not server.finished:
        mechanism = server.phase.mechanism
        assert isinstance(mechanism, PaddingAndSampling)
        assert server.phase.share == 1
        assert mechanism.length == (10 if server.phase.number else 4)
        assert plan.announced(server.phase.announcement).fingerprint == mechanism.fingerprint
        spent += mechanism.exact_epsilon
        server.add(mechanism.privatise(baskets, Randomness.from_seed(2)))
        server.advance()
    assert 3.0 - 1e-6 < spent <= 3.0
    assert len(server.found()) == 5


def test_a_client_refuses_more_than_half() -> None:
    plan = LDPMiner(50, 3.0, 5, 4)
    with pytest.raises(InputDataError):
        plan.announced(document(PaddingAndSampling(50, 3.0, 4)))
    with fails("E100"):
        plan.assign(10)


def test_planted_items_are_found() -> None:
    baskets = planted(SINGLES, 100, 60_000, Randomness.from_seed(1))
    true = most_frequent_items(baskets, 5)
    found = LDPMiner(100, 6.0, 5, 4).find(baskets, Randomness.from_seed(2))
    assert f1([each.items for each in found], true) == 1
    for each in found:  # no set has more than the 10 candidates to which it is padded
        assert abs(each.frequency - true[each.items]) < 5.5 * each.deviation


def test_svim_finds_more() -> None:
    """At an ε at which LDPMiner misses half; a seed's scores differ by far less than the means here."""
    baskets = planted([((item,), 0.3 - 0.01 * item) for item in range(20)], 400, 40_000, Randomness.from_seed(1))
    true, scores = most_frequent_items(baskets, 10), []
    for seed in range(6):
        plans = (ItemMining(400, 1.5, 10), LDPMiner(400, 1.5, 10, 6))
        found = [[each.items for each in plan.find(baskets, Randomness.from_seed(seed))] for plan in plans]
        scores.append([ncr(each, list(true)) for each in found])
    better, baseline = np.mean(scores, axis=0)
    assert better > baseline + 0.1


@pytest.mark.parametrize("parameters", [{"length": 0}, {"k": 0}, {"epsilon": 0.001}, {"oracle": "magic"}])
def test_wrong_plans_are_refused(parameters: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        LDPMiner(**{"domain": 30, "epsilon": 1.0, "k": 4, "length": 3, **parameters})  # type: ignore[arg-type]
