"""What one coordinator makes a node write for ever, its audit log above all: bounded, whatever it asks for."""

from __future__ import annotations

import asyncio
import datetime as dt
import io
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.audit.catalogue import EVENTS
from jobs.audit.events import Event, Started
from jobs.audit.service_events import EstimatesRead
from jobs.spec.job import JobSpec
from link.errors import LimitExceeded, ResourceError
from link.pki.authority import Authority
from party.node.logs import open_log
from party.state import audit_count
from party.state.audit_count import HOUR_S, JOB_BYTES, MOST_BYTES, OUTCOMES, SERVICES, AuditCount, Bin, first_hour
from party.state.node_audit import NodeAudit
from party.state.node_database import FILE
from tests.errors import fails
from tests.party.nodes import Client, refused, running, weekly

pytestmark = pytest.mark.turn(3)

IDENTITY = Authority.create().issue("north")
NOW = 1_800_000_000.0
SMALL = 400_000  # bytes, in the place of `MOST_BYTES`
# What bounds the events that are not counted.
OTHERWISE = {
    "the log itself, node or operator": "log-began certificate-changed line-torn head-lost log-follows node-started "
    "history-restored node-stopped settings-reloaded "
    "standing-approved standing-revoked owner-cancelled hold-released hold-withheld approval-given "
    "policy-changed policy-put-back console-entered console-left account-added account-changed account-removed "
    "notifications-begun notifications-ended "
    "collection-lost route-lost",
    "one a minute": "console-refused",
    "rule max_plans": "plan-asked",
    "once for each proposal": "approved refused standing-used",
    "some for each start, which is counted": "charged rules-hidden session-began session-lost opened transcript "
    "released ended joint-release-began result-held evidence-kept",
    "once for each collection or route that was created": "collection-closed collection-deleted route-retired",
    "a hundred thousand a day of a coordinator's collections": "round-ended",
    "reports: each batch has a minimum of them": "batch-closed batch-forwarded",
}


def test_every_event_is_counted_or_bounded_otherwise() -> None:
    counted = sorted(event.event for event in SERVICES)
    otherwise = [name for names in OTHERWISE.values() for name in names.split()]
    assert sorted([*counted, *otherwise]) == sorted(EVENTS)


CALLS = st.lists(
    st.tuples(
        st.sampled_from(["jobs", "routes"]),
        st.sampled_from(["hub", "analyst"]),
        st.integers(0, 90 * 3600),  # seconds that pass before
        st.one_of(st.integers(1, MOST_BYTES), st.integers(1, 4 << 20), st.just(MOST_BYTES)),
    ),
    max_size=30,
)


@settings(deadline=None)
@given(calls=CALLS, restarts=st.sets(st.integers(0, 29)))
def test_no_day_has_more_than_it_may_of_any_coordinator(
    calls: list[tuple[str, str, int, int]], restarts: set[int]
) -> None:
    now, taken = NOW, list[tuple[float, Bin]]()

    def restarted(sums: Counter[tuple[str, str, int]]) -> AuditCount:
        return AuditCount([Bin(*key, total) for key, total in sums.items()], lambda job_id: None, lambda: now)

    count = restarted(Counter())
    for number, (service, coordinator, after, size) in enumerate(calls):
        now += after / 30
        one = Bin(service, coordinator, int(now // HOUR_S), size)
        mine = [(at, each) for at, each in taken if each[:2] == one[:2]]
        counts = sum(each.size for _, each in mine if each.hour >= first_hour(now))
        try:
            count.take([one], "north", refuses=True)
        except LimitExceeded:
            assert counts + size > MOST_BYTES
        else:
            taken.append((now, one))
            assert sum(each.size for at, each in mine if at > now - 24 * 3600) + size <= MOST_BYTES
            assert counts + size <= MOST_BYTES
        if number in restarts:  # what is kept is one sum for each hour
            sums = Counter[tuple[str, str, int]]()
            for _, each in taken:
                sums[each[:3]] += each.size
            count = restarted(sums)


def test_it_says_when_to_ask_again() -> None:
    now = NOW
    count = AuditCount((), lambda job_id: None, lambda: now)
    count.take([Bin("jobs", "hub", int(NOW // HOUR_S), MOST_BYTES)], "north", refuses=True)
    again = "2027-01-16 09:00"
    for now in (NOW + 60, NOW - 1e6, NOW + 24 * HOUR_S):
        with fails("E403") as refused:
            count.take([Bin("jobs", "hub", int(now // HOUR_S), 1)], "north", refuses=True)
        assert again in refused.value.message
    now = dt.datetime.fromisoformat(f"{again}+00:00").timestamp()
    count.take([Bin("jobs", "hub", int(now // HOUR_S), MOST_BYTES)], "north", refuses=True)


# -- nodes -------------------------------------------------------------------------------------------------------------
def grown(folder: Path) -> int:
    """Bytes of north's audit log, before which nothing is written of a job anywhere."""
    return (folder / "state" / "north" / "audit.log").stat().st_size


def whole(folder: Path) -> int:
    """Bytes of the state folder of north."""
    return sum(path.stat().st_size for path in (folder / "state" / "north").rglob("*") if path.is_file())


def large(number: int = 1_000) -> JobSpec:
    items = [f"item-{each:055d}" for each in range(number)]
    return weekly(itemsets={"min_support": "0.5", "exclude": items})


async def flood(client: Client, spec: JobSpec, times: int) -> Counter[str]:
    """Proposes and cancels; how often which answer came."""
    codes = Counter[str]()
    for _ in range(times):
        try:
            await client.cancel(await client.propose(spec, os.urandom(16)))
            codes["ok"] += 1
        except grpc.aio.AioRpcError as error:
            codes[str(dict(error.trailing_metadata() or ())["comine-code"])] += 1
    return codes


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_count, "MOST_BYTES", SMALL)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("policy", ["", "max_length = 1"])  # approved, refused
def test_a_flood_of_proposals_ends_and_others_get_in(tmp_path: Path, policy: str) -> None:
    async def test() -> None:
        async with running(tmp_path, policy=policy) as nodes:
            spec = large()
            codes = await flood(nodes.clients["north"], spec, 12)
            first = "E300" if "max_length" in policy else "ok"
            assert 1 <= codes[first] <= SMALL // len(spec.canonical())
            assert codes == {first: codes[first], "E403": 12 - codes[first]}
            before = grown(tmp_path)
            assert await flood(nodes.clients["north"], spec, 12) == {"E403": 12}
            assert grown(tmp_path) == before
            other = nodes.client(nodes.authority.issue("other", "coordinator"))
            assert await flood(other, spec, 1) == {first: 1}
            assert whole(tmp_path) < 10 * SMALL
            await nodes.nodes["north"].stop()
            await nodes.restart("north")
            assert await flood(nodes.clients["north"], spec, 2) == {"E403": 2}
            await nodes.nodes["north"].stop()
            for path in (tmp_path / "state" / "north").glob(f"{FILE}*"):
                if path.suffix != ".lock":
                    path.unlink()
            await nodes.restart("north")
            assert await flood(nodes.clients["north"], spec, 2) == {"E403": 2}

    asyncio.run(test())


@pytest.mark.usefixtures("few")
def test_small_proposals_are_bounded_too_and_repeated_ones_cost_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            client = nodes.clients["north"]
            signed = client.signed(weekly())
            await client.stub.Propose(signed)
            before = grown(tmp_path)
            for _ in range(40):
                assert (await refused(client.stub.Propose(signed))).code == "E401"
            assert grown(tmp_path) == before
            codes = await flood(client, weekly(), 40)
            assert codes["ok"] <= SMALL // JOB_BYTES
            assert codes["ok"] + codes["E403"] == 40
            counted = nodes.nodes["north"].audit.count.sizes
            for _ in range(2):  # each entry once, however often the node starts
                await nodes.nodes["north"].stop()
                assert (await nodes.restart("north")).audit.count.sizes == counted

    asyncio.run(test())


def test_what_a_coordinator_adds_to_approvals_is_counted() -> None:
    """The log keeps approvals as they came, with fields that nobody knows."""
    count = AuditCount((), {bytes(32): "hub"}.get, lambda: NOW)
    padded, other = (Started(job=bytes([each] * 32), attempt=1, approvals=(bytes(300_000),)) for each in range(2))
    (one,) = count.bins([padded, other])  # a job that nobody knows was started by nobody
    assert one[:2] == ("jobs", "hub")
    assert 400_000 <= one.size <= 402_000


@pytest.mark.usefixtures("few")
def test_no_job_starts_beyond_it_and_nothing_is_charged(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            job_id, approvals = await nodes.agree(weekly())
            count = nodes.nodes["north"].audit.count
            count.take([Bin("jobs", "analyst", int(time.time() // HOUR_S), SMALL)], "north", refuses=False)
            before = grown(tmp_path)
            assert (await refused(nodes.clients["north"].start(job_id, approvals))).code == "E403"
            assert grown(tmp_path) == before

    asyncio.run(test())


def some(event: type[Event]) -> Event:
    """An event as `hub` brings it about."""
    of: dict[str, Any] = {"coordinator": "hub", "code": "E300", "reason": "a" * 500, "dataset": "people", "number": 1}
    of |= {"query": "q" * 300, "denied": None, "collection": "visits", "round": 1, "reports": 5, "route": "r"}
    of |= dict.fromkeys(("document_digest", "spec_digest", "request", "certificate"), "00" * 32)
    of |= {"domain_digest": None, "algorithm": "mondrian", "k": 5, "columns": ("a",), "rows": 9, "report": False}
    return event.model_validate({name: of[name] for name in event.model_fields})


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("event", [each for each in SERVICES if "job" not in each.model_fields])
def test_the_log_stops_growing_whatever_is_asked(tmp_path: Path, event: type[Event]) -> None:
    log = NodeAudit.open(tmp_path / "audit.log", IDENTITY)
    log.party, told = "north", some(event)

    async def ask() -> None:
        if event in OUTCOMES:
            log.check(event, "hub")
        await log.record(*[told] * 50)

    async def much() -> None:
        for _ in range(SMALL):
            await ask()

    async def test() -> None:
        with pytest.raises(LimitExceeded):
            await much()
        size = log.path.stat().st_size
        for _ in range(3):
            with pytest.raises(LimitExceeded):
                await ask()
        assert log.path.stat().st_size == size
        assert size < SMALL + 60_000

    asyncio.run(test())
    log.close()


def test_what_could_not_be_written_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = NodeAudit.open(tmp_path / "audit.log", IDENTITY)
    log.party, log.log = "north", open_log("north", io.StringIO())

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("jobs.audit.log.write_all", full)
        with pytest.raises(ResourceError):
            asyncio.run(log.record(some(EstimatesRead)))
    log.count.take([Bin("collections", "hub", int(time.time() // HOUR_S), MOST_BYTES)], "north", refuses=True)
    log.close()
