"""Devices and fleets that share ε by a series, a coin, or answers that wait, against the node itself over TLS."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.budget import Budget
from client.connection import Connection
from client.fleet import Fleet
from client.outcome import Status
from client.reporter import FrequencyClient
from jobs.collections.mechanism import budgets_of
from jobs.collections.spec import labels_of
from ldp.longitudinal.two_rounds import LongitudinalDirectEncoding
from tests.client.node import BEGIN, HOUR, LABELS
from tests.client.test_real_node import GATEWAYS
from tests.clock import Clock
from tests.party.services.frequency.nodes import Estimated, running
from tests.party.services.frequency.specs import spec_of

pytestmark = pytest.mark.turn(3)

FLEET = 2000
HALVES = np.array(["south"] * 1500 + ["east"] * 500, dtype=object)
TRUTH = np.array([0.0, 1501, 500, 0])  # north, south with the device, east, other


def rounds_of(
    folder: Path, clock: Clock, create: dict[str, Any], rounds: int, work: Callable[[int, Connection], None]
) -> tuple[list[Estimated], Any]:
    """Has clients work in each round, and returns what the node tells of each, and how the collection stands."""

    async def run() -> tuple[list[Estimated], Any]:
        async with running(folder, now=clock) as world:
            analyst = world.analyst
            await analyst.create(
                spec_of(size=4, labelled=True, access=GATEWAYS, window={"length": "1h"}, **create), labels_of(LABELS)
            )
            found = []
            with Connection(world.authority.issue("fleet", "client"), "north", world.address) as connection:
                for number in range(rounds):
                    await asyncio.to_thread(work, number, connection)
                    found.append(await analyst.estimate(round=number))
                    clock.now += HOUR
                    await analyst.describe()
            return found, await analyst.describe()

    return asyncio.run(run())


def agrees(found: Estimated, truth: np.ndarray[Any, Any]) -> bool:
    """Within six standard deviations: a chance of 2·10^-9 a value that this fails where all is right."""
    return bool((np.abs(found.counts - truth) <= 6 * np.sqrt(found.variances)).all())


@pytest.mark.parametrize("coin", [None, {"probability": "1/2"}])
def test_a_series_over_windows(tmp_path: Path, coin: dict[str, Any] | None) -> None:
    clock, create = Clock(BEGIN), {"budget": {"series": "p-series"}, "sampling": coin, "mechanism": "auto"}
    terms = budgets_of(spec_of(size=4, labelled=True, window={"length": "1h"}, **create))
    assert terms is not None
    fleet, charges = Fleet(FLEET, seed=1, clock=clock), []

    def work(number: int, connection: Connection) -> None:
        with FrequencyClient.open(tmp_path / "device", clock=clock) as device:
            key = device.follow(connection, "homepages")
            outcome = device.report(key, "south")
            charges.append(outcome.charge)
            ledger_state = device.ledger_state(key)
            assert ledger_state is not None
            assert (ledger_state.spent, ledger_state.epsilon) == (sum(charges), 1)
            assert device.deliver(connection).counted == 1
        assert fleet.report(connection, "homepages", HALVES).counted == FLEET

    found, told = rounds_of(tmp_path / "node", clock, create, 3, work)
    assert [float(charge) for charge in charges] == pytest.approx([float(term) for term in terms[:3]], rel=1e-9)
    assert all(charge <= term for charge, term in zip(charges, terms, strict=False))
    if coin is None:
        assert charges == list(terms[:3])
    assert all(agrees(each, TRUTH) for each in found)
    spread = [float(each.variances.mean()) for each in found]
    assert spread[0] < spread[1] < spread[2]
    assert (told.counters.counted, told.counters.foreign) == (3 * (FLEET + 1), 0)


def test_a_secret_coin_in_every_window(tmp_path: Path) -> None:
    clock, create = Clock(BEGIN), {"sampling": {"probability": "3/8"}, "mechanism": "oue"}
    fleet, charges = Fleet(FLEET, seed=1, budget=Budget("2.5"), clock=clock), []

    def work(number: int, connection: Connection) -> None:
        with FrequencyClient.open(tmp_path / "device", budget=Budget("2.5"), clock=clock) as device:
            key = device.follow(connection, "homepages")
            outcome = device.report(key, "south")
            charges.append(outcome.charge)
            assert outcome.status is (Status.REPORTED if number < 2 else Status.REFUSED)  # a third needs 3
            device.deliver(connection)
        if number < 2:
            assert fleet.report(connection, "homepages", HALVES).counted == FLEET
        else:
            assert fleet.report(connection, "homepages", HALVES).over_budget == FLEET
            assert Fleet(1, seed=2, clock=clock).report(connection, "homepages", HALVES[:1]).counted == 1

    found, told = rounds_of(tmp_path / "node", clock, create, 3, work)
    assert Fraction(9999, 10000) < charges[0] == charges[1] <= 1
    assert all(agrees(each, TRUTH) for each in found[:2])
    assert told.counters.counted == 2 * (FLEET + 1) + 1


def test_answers_that_wait_their_turn(tmp_path: Path) -> None:
    """Values change in every window; a span of three windows pays for two new answers, so the third waits."""
    clock = Clock(BEGIN)
    create = {"mechanism": "l-grr", "epsilon": "2.0", "memo": {"w": 3, "epsilon": "8.0"}}
    price = Fraction(LongitudinalDirectEncoding(4, 2.0).exact_permanent_epsilon)
    fleet, charges = Fleet(FLEET, seed=1, clock=clock), []
    values = ["south", "east", "north", "north"]

    def work(number: int, connection: Connection) -> None:
        with FrequencyClient.open(tmp_path / "device", budget=Budget(100), clock=clock) as device:
            key = device.follow(connection, "homepages")
            charges.append(device.report(key, values[number]).charge)
            ledger_state = device.ledger_state(key)
            assert ledger_state is not None
            assert ledger_state.spent <= ledger_state.epsilon == 8
            assert device.deliver(connection).counted == 1
        assert fleet.report(connection, "homepages", np.array([values[number]] * FLEET, dtype=object)).counted == FLEET

    found, told = rounds_of(tmp_path / "node", clock, create, 4, work)
    assert charges == [price, price, 0, price]
    seen = ["south", "east", "east", "north"]  # what clients could report
    for each, value in zip(found, seen, strict=True):
        assert agrees(each, (FLEET + 1.0) * np.array([label == value for label in LABELS]))
    assert told.counters.counted == 4 * (FLEET + 1)
