"""What nodes, coordinators, devices and gateways keep from one process to the next, made wrong in any of its files.

Whoever reads it again ends well, or with an error of comine: one sentence, a code, no traceback.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from anonymize.auditing.sums import SumAuditor
from anonymize.certifying import publish_folder
from anonymize.models import KAnonymity, Requirements
from anonymize.multidimensional.mondrian import mondrian
from anonymize.roles import Roles
from anonymize.tables import Table
from client.budget import Budget
from client.fleet import Fleet
from client.fleet_state.record import FleetRecord, Leaving
from client.gateway import GatewaySecret
from client.reporter import FrequencyClient
from coordinator.jobs.records.store import Store as JobStore
from coordinator.jobs.runner import draft
from coordinator.jobs.status import as_data, describe, job_list
from coordinator.shuffle.routes import CollectorFolder, read_state
from crypto.primitives.randomness import Randomness
from jobs.audit.key import AuditKey
from jobs.collections.route import RouteSpec
from jobs.consent import approve
from jobs.privacy_account import Charge
from link.errors import ComineError
from link.journal import Known, Step
from link.pki.authority import Authority
from party.console.release_pictures import lattice_of, points_of
from party.services.anonymization.kept import KeptRelease, KeptReleases
from party.services.anonymization.releases import Releases
from party.services.anonymization.sample import sample_of
from party.services.frequency.storage.reading import FrequencyRecords
from party.services.frequency.storage.store import FrequencyStore
from party.services.queries.kept import KeptAuditors
from party.services.queries.log import Bound, QueryLog
from party.services.shuffler.store import Segment, ShufflerStore, StoredRoute
from party.state.journals import Journals
from party.state.ledger import Entry, Ledger
from party.state.plan_count import PlanCount
from party.state.store import Record, Store
from protos.v1.control_pb2 import RUNNING, Release, ResultHeader
from tests.client.devices import KEY, grr
from tests.client.node import LABELS, Direct, homepages
from tests.client.node import Node as Service
from tests.examples import examples
from tests.fuzz.mutations import mutated, otherwise
from tests.party.nodes import weekly
from tests.party.services.frequency.storage.storing import GRR, a_round, collection

pytestmark = pytest.mark.turn(3)

EXAMPLES = int(os.environ.get("COMINE_FUZZ_EXAMPLES", "15"))
FUZZED = examples(
    EXAMPLES,
    EXAMPLES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
AUTHORITY = Authority.create()
HUB, NORTH = AUTHORITY.issue("hub", "coordinator"), AUTHORITY.issue("north")
ID = bytes(range(16))
BUDGET = Budget(8)
PEOPLE = Table.of({"age": ["1", "1", "2", "2"]}, Roles(quasi_identifiers=["age"]))
ROUTE = '[route]\nname = "weekly"\nshufflers = ["north", "south"]\nsize = 8\nminimum = 5\nevery = "1h"\n'


@dataclass(frozen=True)
class State:
    """What is kept in a folder.

    Attributes:
        make: Makes it honestly.
        use: Reads all of it again.
    """

    make: Callable[[Path], object]
    use: Callable[[Path], object]


# -- a coordinator ---------------------------------------------------------------------------------------------------
def _make_job(folder: Path) -> None:
    store, spec = JobStore(folder), weekly()
    record = draft(spec, HUB, 600, plan={"parties": {}})
    record.approvals["north"] = approve(record.id, "hub", NORTH, decided=5, by="ann")
    release = Release(party="north", bytes_sent=5).SerializeToString()
    record.released["north"] = ResultHeader(release=release, signature=b"s", certificate=NORTH.certificate_pem)
    made = store.create(record)
    made.keep_table(b"counts")
    made.ask_cancel("enough")
    made.note("cancelled", "anna")
    store.save_plan(spec.digest, {"parties": {}})
    made.unlock()


def _use_job(folder: Path) -> None:
    store = JobStore(folder)
    as_data(job_list(store))
    store.load_plan(weekly().digest)
    for job in store.jobs():
        record = job.record()
        as_data(describe(record, driven=False, answers={}))
        job.cancel_asked()
        job.table()


def _make_collector(folder: Path) -> None:
    (folder / "route.toml").write_text(ROUTE)
    CollectorFolder(folder).prepare(RouteSpec.load(folder / "route.toml"), 8, "coordinator/hub")
    (folder / "kept.json").write_text('{"counted": [1, 2]}')


def _use_collector(folder: Path) -> None:
    with contextlib.suppress(ComineError):
        RouteSpec.load(folder / "route.toml")
    with contextlib.suppress(ComineError):
        read_state(folder / "kept.json")
    route = CollectorFolder(folder).route()
    if route is not None:
        CollectorFolder(folder).private_key(route)


# -- a node ----------------------------------------------------------------------------------------------------------
def _make_frequency(folder: Path) -> None:
    store = FrequencyStore.open(folder / "frequency.db")
    store.create(collection())
    store.open_round("homepages", a_round(), b"state")
    store.refuse("homepages", None, "malformed", 3)
    store.close()


def _use_frequency(folder: Path) -> None:
    store = FrequencyStore.open(folder / "frequency.db")
    try:
        for each in store.collections():
            store.rounds(each.name)
            store.counters(each.name)
            store.round(each.name, 0)
            store.stop(store.recover(each.name, 0, 0, GRR))
    finally:
        store.close()
    with contextlib.closing(FrequencyRecords.look(folder / "frequency.db")) as records:
        for each in records.collections():
            records.released(each.name)


def _make_shuffler(folder: Path) -> None:
    store = ShufflerStore.open(folder / "shuffler.db")
    (folder / "route.toml").write_text(ROUTE)
    route = RouteSpec.load(folder / "route.toml").made(8, "coordinator/hub", bytes(range(32)), ID)
    (folder / "route.toml").unlink()
    row = store.add(StoredRoute("weekly", route.document(), bytes(32), bytes(32), "hub", 1.0)).row
    store.commit(row, [Segment("client/a", 1, bytes(100))], np.array([7], np.uint64), {"replayed": 2})
    store.close()


def _use_shuffler(folder: Path) -> None:
    store = ShufflerStore.open(folder / "shuffler.db")
    try:
        for each in store.routes():
            store.waiting(each.row)
            store.tags(each.row)
            store.reports(each.row)
            store.unsent(each.row)
            store.knows(each.name, 1, 3, "north")
    finally:
        store.close()


def _make_jobs(folder: Path) -> None:
    store = Store.open(folder / "node.db")
    record = draft(weekly(), HUB, 600)
    store.put(
        Record(
            record.id, record.proposal.SerializeToString(), "hub", "baskets", ("north", "south"), "0.2", 5, 1.0, RUNNING
        )
    )
    journal = Journals.beside(store, "north").begin(record.id, "v", bytes(32), attempt=1, started=False)
    journal.keep(0, Step("/task/level", b"", Known(1)))
    ledger = Ledger.open(folder / "node.db")
    cost = Charge("distributed", None, Decimal("0.5"), Decimal("1e-6"))
    ledger.record(Entry(record.id, 1, 1.0, "baskets", "weekly", "hub", cost, True))
    ledger.close()
    store.close()


def _use_jobs(folder: Path) -> None:
    store = Store.open(folder / "node.db")
    try:
        store.check_whole()
        for each in store.all():
            Journals.beside(store, "north").resume(each.job_id, "v").steps()
        store.latest("baskets", b"", 5)
        ledger = Ledger.open(folder / "node.db")
        try:
            ledger.entries("baskets")
            ledger.spent("baskets")
        finally:
            ledger.close()
        plans = PlanCount.open(folder / "node.db")
        try:
            plans.take("hub", 9, "north", 5.0)
        finally:
            plans.close()
    finally:
        store.close()


def _make_releases(folder: Path) -> None:
    releases = Releases.open(folder / "releases.db", "north")
    releases.admit("people", bytes(32), bytes(32), "hub", 5)
    releases.fail("people", ID, "hub")
    releases.begin("people", ID, "hub", 5)
    releases.close()
    models = Requirements((KAnonymity(2),))
    release = mondrian(PEOPLE, models)
    certificate = publish_folder(folder / "draft", release, PEOPLE, models)
    shutil.rmtree(folder / "draft")
    sample = sample_of(PEOPLE, 4, release, Randomness.from_seed(1))
    asked = {"quasi_identifiers": ["age"], "algorithm": "mondrian", "model": {"k": 2}}
    one = KeptRelease(dataset="people", coordinator="hub", at=1.0, asked=asked, certificate=certificate, sample=sample)
    KeptReleases(folder).keep(one, b"<p>Report</p>")


def _use_releases(folder: Path) -> None:
    releases = Releases.open(folder / "releases.db", "north")
    try:
        _ = releases.head
        releases.counted("people")
        releases.check("people", bytes(32), 5, 5)
    finally:
        releases.close()
    kept = KeptReleases(folder)
    for each in kept.all():
        found = kept.find(each.certificate.digest)
        kept.report(each.certificate.digest)
        lattice_of(each.certificate)
        list(points_of([each.certificate], each.certificate))
        if found is not None and found.sample is not None:
            found.sample.before(PEOPLE.data)


def _make_queries(folder: Path) -> None:
    log = QueryLog.open(folder / "queries.db")
    log.bind("people", Bound(3, {"age": "00"}))
    row = log.auditor("people", "age")
    log.remember(row, [b"a", b"b"], 0)
    KeptAuditors(folder / "auditors").write(row, 0, SumAuditor(3))
    log.close()


def _use_queries(folder: Path) -> None:
    log = QueryLog.open(folder / "queries.db")
    try:
        log.bound("people")
        row = log.auditor("people", "age")
        log.variables(row)
        list(log.answered(row))
        KeptAuditors(folder / "auditors").read(row)
    finally:
        log.close()


# -- devices and gateways --------------------------------------------------------------------------------------------
def _service() -> Service:
    return Service(homepages(grr()))


def _line(service: Service) -> Any:
    return Direct(service)


def _make_device(folder: Path) -> None:
    service = _service()
    with FrequencyClient.open(folder, clock=lambda: service.now, budget=BUDGET) as device:
        device.follow(_line(service), "homepages")
        device.report(KEY, LABELS[0])


def _use_device(folder: Path) -> None:
    service = _service()
    with FrequencyClient.open(folder, clock=lambda: service.now) as device:
        _ = (device.budget, device.spent, device.waiting)
        device.report(KEY, LABELS[0])
        device.ledger_state(KEY)
        device.deliver(_line(service))


def _make_gateway(folder: Path) -> None:
    secret = GatewaySecret.open(folder / "fleet.secret")
    with FleetRecord.held(folder / "fleet.secret.db") as record:
        rows = np.zeros((2, 16), np.uint8)
        rows[1] = 1
        record.put(Leaving(ID, 0, 0, 1.0), (Fraction(1, 2), rows, rows))
    assert secret.record is not None


def _use_gateway(folder: Path) -> None:
    secret = GatewaySecret.open(folder / "fleet.secret")
    service = _service()
    fleet = Fleet.of(["a", "b"], secret, budget=BUDGET, clock=lambda: service.now)
    fleet.report(_line(service), "homepages", [LABELS[0], LABELS[1]])
    with FleetRecord.held(folder / "fleet.secret.db") as record:
        list(record.charged())
        record.sent(ID, 0)
        record.latest(ID)


STATE: dict[str, State] = {
    "coordinator": State(_make_job, _use_job),
    "collector": State(_make_collector, _use_collector),
    "audit key": State(
        lambda folder: AuditKey.open(folder / "audit.key"), lambda folder: AuditKey.open(folder / "audit.key")
    ),
    "frequency": State(_make_frequency, _use_frequency),
    "shuffler": State(_make_shuffler, _use_shuffler),
    "jobs": State(_make_jobs, _use_jobs),
    "releases": State(_make_releases, _use_releases),
    "queries": State(_make_queries, _use_queries),
    "device": State(_make_device, _use_device),
    "gateway": State(_make_gateway, _use_gateway),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By kind, what was made honestly and must not be touched."""
    made = {}
    for kind, state in STATE.items():
        made[kind] = tmp_path_factory.mktemp("kept") / "honest"
        made[kind].mkdir()
        state.make(made[kind])
    return made


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size > 0)


@pytest.mark.parametrize("kind", STATE)
def test_what_was_kept_honestly_is_read(kind: str, folders: dict[str, Path], tmp_path: Path) -> None:
    """Else what is made wrong shows nothing."""
    STATE[kind].use(Path(shutil.copytree(folders[kind], tmp_path / "copy")))


def _wrong(path: Path, data: st.DataObject) -> bytes:
    if path.suffix == ".json" and data.draw(st.booleans()):
        return json.dumps(data.draw(otherwise(json.loads(path.read_text())))).encode()
    return data.draw(mutated([path.read_bytes()]))


@pytest.mark.parametrize("kind", STATE)
@FUZZED
@given(data=st.data())
def test_what_was_kept_is_read_or_refused(
    kind: str, folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    copy = tmp_path_factory.getbasetemp() / f"wrong-{kind}"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folders[kind], copy)
    path = data.draw(st.sampled_from(_files(copy)))
    mode = path.stat().st_mode
    path.write_bytes(_wrong(path, data))
    path.chmod(mode)
    with contextlib.suppress(ComineError):
        STATE[kind].use(copy)


DATABASES = [kind for kind in STATE if kind not in ("coordinator", "collector", "audit key")]
CELLS = st.sampled_from(
    [
        -1,
        0,
        2**62,
        1.5,
        float("inf"),
        "",
        "x",
        "\0",
        "[",
        "[[1]]",
        "9" * 400,
        "1e999",
        b"",
        b"\xff",
        b"\0" * 7,
        b"[",
        b"{}",
    ]
)


def _database(folder: Path) -> Path:
    return next(path for path in _files(folder) if path.suffix == ".db")


@pytest.mark.parametrize("kind", DATABASES)
@FUZZED
@given(data=st.data())
def test_a_cell_of_a_database_is_another(
    kind: str, folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    copy = tmp_path_factory.getbasetemp() / f"cell-{kind}"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folders[kind], copy)
    with contextlib.closing(sqlite3.connect(_database(copy))) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        full = [name for name in sorted(names) if connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]]
        table = data.draw(st.sampled_from(full))
        columns = sorted(column for _, column, *_ in connection.execute(f"PRAGMA table_info({table})"))
        with contextlib.suppress(sqlite3.IntegrityError, sqlite3.OperationalError):
            connection.execute(f"UPDATE {table} SET {data.draw(st.sampled_from(columns))} = ?", (data.draw(CELLS),))
        connection.commit()
    with contextlib.suppress(ComineError):
        STATE[kind].use(copy)
