"""Poisoning of padding and sampling, and of what is mined with it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from crypto.primitives.randomness import Randomness
from ldp.attacks.poisoning import Attack, MaximalGain, RandomItem, RandomPerturbedValue
from ldp.attacks.set_poisoning import added, craft, gain
from ldp.reports import Reports
from ldp.sets.padding import PaddingAndSampling
from ldp.sets.plan import MiningServer
from ldp.sets.svim import ItemMining
from link.errors import InputDataError
from tests.errors import fails
from tests.examples import slowly

pytestmark = pytest.mark.turn(6)

ATTACKS = (RandomPerturbedValue(), RandomItem(), MaximalGain(tries=400))


@pytest.mark.parametrize(
    ("attack", "length", "oracle"),
    slowly(product(ATTACKS, [1, 3, 6], ["grr", "olh"]), now={*range(18)} - {13, 17}),  # of the dear ones, one
    ids=lambda value: getattr(value, "name", value),
)
def test_what_fake_users_add_is_the_gain(attack: Attack, length: int, oracle: str) -> None:
    mechanism, targets, m, beta = PaddingAndSampling(40, 2.0, length, oracle=oracle), [3, 17, 30], 40_000, 0.05
    fake = craft(attack, mechanism, targets, m, Randomness.from_seed(length))
    assert len(mechanism.read(fake.to_bytes())) == m
    expected = gain(attack, mechanism, 0.01, len(targets), beta) / beta + 0.01
    # m independent reports that add at most l·r/(p − q) each: five deviations, so an error below 1e-6 a case
    reach = 5 * mechanism.length * len(targets) / float(mechanism.single.p - mechanism.single.q) / 2 / m**0.5
    assert added(mechanism, fake, targets) == pytest.approx(expected, abs=reach)


def test_a_set_of_all_targets_gains_what_it_claims() -> None:
    mechanism = PaddingAndSampling(40, 1.0, 4)
    assert gain(RandomItem(), mechanism, 0.0, 2, 0.1) == pytest.approx(0.2)  # two items that a tenth claims to have
    assert gain(RandomItem(), mechanism, 0.0, 9, 0.1) == pytest.approx(0.4)  # four of nine go through
    longer = PaddingAndSampling(40, 1.0, 8, oracle="olh")
    shorter = PaddingAndSampling(40, 1.0, 2, oracle="olh")
    assert gain(MaximalGain(), longer, 0.0, 2, 0.1) == pytest.approx(4 * gain(MaximalGain(), shorter, 0.0, 2, 0.1))


def test_fake_users_choose_what_is_mined() -> None:
    rng, d, k, targets = Randomness.from_seed(5), 256, 8, [60, 61, 62, 63]
    genuine = [[user % 8, 8 + user % 16, 24 + user % 32] for user in range(20_000)]
    for fakes, expected in ((0, 0), (5_000, len(targets))):
        server = MiningServer(ItemMining(d, 4.0, k))
        groups = server.plan.assign(len(genuine), rng)
        while not server.finished:
            phase = server.phase
            asked = [genuine[user] for user in np.flatnonzero(groups == phase.number)]
            reports = [phase.mechanism.privatise(asked, rng)]
            if fakes and isinstance(phase.mechanism, PaddingAndSampling):
                named = phase.mechanism.candidates
                numbers = targets if named is None else [named.index((each,)) for each in targets if (each,) in named]
                part = round(fakes * float(phase.share))
                reports.append(craft(MaximalGain(), phase.mechanism, numbers, part, rng))
            server.add(Reports.concatenated(reports))
            server.advance()
        found = {items[0] for items in (each.items for each in server.found())}
        assert len(found & set(targets)) == expected


def test_wrong_targets_are_refused() -> None:
    mechanism = PaddingAndSampling(10, 1.0, 3)
    with fails("E100"):
        craft(MaximalGain(), mechanism, [10], 5)
    for targets in ([], [3, 3], [99]):
        with pytest.raises(InputDataError):
            craft(RandomItem(), mechanism, targets, 5)
