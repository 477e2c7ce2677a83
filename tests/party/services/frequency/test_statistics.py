"""What the node publishes is as exact as it says: step after step, and over a million values."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc
import numpy as np
import pytest
from scipy.stats import chi2

from client.connection import Connection
from client.fleet import Fleet
from jobs.collections.estimates import Asked, Estimates, rows
from ldp.domain import Domain
from link.errors import ComineError
from party.services.frequency.storage import folding
from tests.examples import slowly
from tests.party.services.frequency.nodes import batch, running
from tests.party.services.frequency.specs import spec_of

ERROR = 1e-9  # the probability with which each test fails by chance
HOUR = 3600.0
CLIENTS, STEPS, W = 3000, 60, 3
TRUTH = np.array([0.6, 0.3, 0.1, 0.0])
MILLION = 1_000_000


@pytest.mark.parametrize("method", slowly(["lbu", "lpu"], now=[0]))
def test_releases_of_a_stream_are_off_by_as_much_as_stated(tmp_path: Path, method: str) -> None:
    """Errors in standard deviations of one value at all steps: their squares add up to a chi-square number.

    `lpu` asks other clients at each of w steps in a row, so draws of clients are independent between blocks of w only.
    Within a block it makes sums vary less. It is a small part of the variance here.
    """
    now = [1_800_000_000.0]
    values = np.repeat(np.arange(4), (TRUTH * CLIENTS).astype(int))

    async def run() -> np.ndarray:
        async with running(tmp_path, now=lambda: now[0]) as world:
            analyst = world.analyst
            await analyst.create(
                spec_of(
                    size=4,
                    window={"length": "1h"},
                    continual={"method": method, "w": W, "users": CLIENTS},
                    access={"gateways": {"fleet": 10**6}},
                )
            )
            fleet, errors = Fleet(CLIENTS, seed=11, clock=lambda: now[0]), []
            with Connection(world.authority.issue("fleet", "client"), "north", world.address) as connection:
                for step in range(STEPS):
                    done = await asyncio.to_thread(fleet.report, connection, "homepages", values)
                    assert done.refused == 0
                    now[0] += HOUR
                    await analyst.describe()
                    assert done.round is not None
                    found = await analyst.estimate(round=done.round)
                    assert (found.head.final, found.head.fresh) == (True, True)
                    if step >= W:  # by then who has joined is no longer waiting
                        truth = TRUTH * found.head.reports
                        errors.append((found.counts - truth) / np.sqrt(found.variances))
            return np.array(errors)

    errors = asyncio.run(run())
    low, high = chi2.ppf([ERROR / 16, 1 - ERROR / 16], len(errors))
    for squares in np.square(errors).sum(axis=0):
        assert low < squares < high
    # Means of so many standard normal numbers: 6.8 standard deviations have a chance of 10^-11.
    assert (np.abs(errors.mean(axis=0)) < 6.8 / np.sqrt(len(errors))).all()


@pytest.mark.parametrize("method", slowly(["lbu", "lpa"], now=[0]))
def test_what_is_told_again_is_told_in_counts_of_its_publication(tmp_path: Path, method: str) -> None:
    """Whether the round has no reports at all, or such that only tell whether to publish."""
    now = [1_800_000_000.0]
    values = np.repeat(np.arange(4), (TRUTH * CLIENTS).astype(int))

    async def run() -> None:
        async with running(tmp_path, now=lambda: now[0]) as world:
            analyst = world.analyst
            await analyst.create(
                spec_of(
                    size=4,
                    epsilon="6.0",
                    window={"length": "1h"},
                    continual={"method": method, "w": 2, "users": CLIENTS},
                    access={"gateways": {"fleet": 10**6}},
                )
            )
            fleet, rounds = Fleet(CLIENTS, seed=11, clock=lambda: now[0]), []
            with Connection(world.authority.issue("fleet", "client"), "north", world.address) as connection:
                for step in range(12):
                    if step < 8:  # two rounds an hour for lpa, and nobody in the end
                        done = await asyncio.to_thread(fleet.report, connection, "homepages", values)
                        rounds.append(done.round)
                    now[0] += HOUR / 2
                    await analyst.describe()
            published, again = 0, 0
            for number in range(int(max(filter(None, rounds))) + 2):
                try:
                    found = await analyst.estimate(round=number)
                except (ComineError, grpc.aio.AioRpcError):
                    continue
                head = found.head
                if not head.final or not np.isfinite(found.variances).all():
                    continue
                if head.fresh and head.round.purpose == "publication":
                    published = head.reports
                    assert head.of == published
                elif not head.fresh and published:
                    again += 1
                    assert head.of == published != head.reports
                    assert found.counts.sum() == pytest.approx(published)
                    shown = Estimates("north", head, np.arange(4), found.counts, found.variances, ())
                    for row in rows(shown, Domain(4), Asked()):
                        assert row.low <= max(row.estimate, 0.0)
                        assert row.high >= min(row.estimate, published)
                        # Shares of a tenth and more are nine deviations above zero. Of what nobody has one estimate in
                        # forty is so far below it that its interval is [0, 0].
                        assert row.high > 0 or not TRUTH[int(row.value)]
            assert again, rounds

    asyncio.run(run())


@pytest.mark.slow
def test_a_million_values_are_folded_and_estimated_rightly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through batches, saved tallies, a restart in the middle, and reports that are read from disk again."""
    monkeypatch.setattr(folding, "SAVE_SEGMENTS", 2)
    monkeypatch.setattr(folding, "MOST_HELD", 1 << 14)
    batches, counts = 10, {0: 500, 77: 300, MILLION - 1: 200}
    values = np.repeat(list(counts), list(counts.values()))

    async def run() -> tuple[np.ndarray, np.ndarray]:
        async with running(tmp_path) as world:
            created = await world.analyst.create(
                spec_of(size=MILLION, mechanism="hr", epsilon="4.0", access={"gateways": {"fleet": 10**6}})
            )
            for number in range(batches):
                if number == batches // 2:
                    await world.restart()
                (receipt,) = await world.caller("fleet").submit(batch(created, values, seed=number))
                assert receipt.counted == len(values)
            found = await world.analyst.estimate()
            assert found.head.reports == batches * len(values)
            return found.counts, found.variances

    estimates, variances = asyncio.run(run())
    truth = np.zeros(MILLION)
    truth[list(counts)] = np.array(list(counts.values())) * batches
    errors = (estimates - truth) / np.sqrt(variances)
    assert np.abs(errors).max() < 7.5  # 6·10^-14 for each value
    # The squares of a million errors: their mean is 1, within 14 standard deviations of independent ones.
    assert abs(np.square(errors).mean() - 1) < 0.02
    assert abs(errors.mean()) < 0.01
