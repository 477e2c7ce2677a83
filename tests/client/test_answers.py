"""Kept answers are drawn once, and what leaves devices follows the channel."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.budget import Budget
from client.outcome import Status
from ldp.domain import Domain
from ldp.longitudinal.bit_flip import BitFlip
from ldp.longitudinal.one_bit_mean import OneBitMean
from ldp.mechanism import Mechanism
from ldp.rappor.mechanism import Rappor
from ldp.registry import oracle
from ldp.reports import Reports
from tests.client.devices import KEY, device, grr
from tests.client.node import HOUR, LABELS, Direct, Node, homepages
from tests.ldp.contract import ERROR, chi_square_p

pytestmark = pytest.mark.turn(3)


# -- kept answers -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "mechanism", [BitFlip(Domain(4, LABELS), 1.0, sampled=4), OneBitMean(1.0, 0, 1)], ids=lambda m: m.name
)
def test_a_kept_answer_is_charged_once_and_never_drawn_again(tmp_path: Path, mechanism: Mechanism[Any]) -> None:
    kept = homepages(mechanism)
    node = Node(kept)
    values = ["south", "east"] if isinstance(mechanism, BitFlip) else [0.0, 1.0]
    charges = []
    for number in range(12):
        client = device(tmp_path, node, budget=Budget(2.5))
        charges.append(client.report(KEY, values[number % 2]).charge)
        client.deliver(Direct(node))
        client.close()
        node.now += HOUR
    assert charges[:2] == [Fraction(mechanism.exact_permanent_epsilon)] * 2  # type: ignore[attr-defined]
    assert not any(charges[2:])
    for parity in range(2):
        assert len({data for number, _, data in kept.received if number % 2 == parity}) == 1


@pytest.mark.parametrize(
    "mechanism",
    [oracle("l-grr", Domain(4, LABELS), 1.0), oracle("l-osue", Domain(4, LABELS), 1.0), Rappor.for_budget(1.0, 2.0)],
    ids=lambda m: m.name,
)
def test_answers_that_are_perturbed_anew_are_charged_once(tmp_path: Path, mechanism: Mechanism[Any]) -> None:
    node = Node(homepages(mechanism))
    client = device(tmp_path, node, budget=Budget(5))
    charges = []
    for value in ("south", "south", "east", "south", "east", "north"):
        made = client.report(KEY, value)
        charges.append(float(made.charge) if made.reported else made.status)
        node.now += HOUR
    permanent = pytest.approx(2, abs=0.02)
    assert charges == [permanent, 0, permanent, 0, 0, Status.REFUSED]


def test_the_answer_of_rappor_stays_through_restarts(tmp_path: Path) -> None:
    """With q = 1 and p = 0 a report is the permanent answer itself."""
    mechanism = Rappor(0.5, 0.0, 1.0, bits=32, hashes=1, cohorts=4)
    kept = homepages(mechanism)
    node = Node(kept)
    for _ in range(5):
        client = device(tmp_path, node, budget=Budget(50))
        assert client.report(KEY, "a text").reported
        client.deliver(Direct(node))
        client.close()
        node.now += HOUR
    assert len({data for _, _, data in kept.received}) == 1


# -- the distribution of what leaves ----------------------------------------------------------------------------------
@pytest.mark.parametrize("mechanism", [grr(), BitFlip(Domain(4, LABELS), 1.0, sampled=2)], ids=lambda m: m.name)
def test_what_leaves_devices_follows_the_channel(tmp_path: Path, mechanism: Mechanism[Any]) -> None:
    """A chi-square test over 200 new devices, at the suite's probability of error."""
    kept = homepages(mechanism)
    node = Node(kept)
    for number in range(200):
        client = device(tmp_path / str(number), node)
        client.report(KEY, "east")
        client.deliver(Direct(node))
        client.close()
    reports = Reports.concatenated([mechanism.read(data) for _, _, data in kept.received])
    row = np.array([float(p) for p in mechanism.channel()[LABELS.index("east")]])
    observed = np.bincount(mechanism.outcomes(reports), minlength=len(row))
    assert observed.sum() == 200
    assert chi_square_p(observed, row * 200) > ERROR
