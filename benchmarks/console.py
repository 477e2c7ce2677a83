"""Pages of a node's console with a long history: what each costs the server, from the request to the text."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Final

from jinja2 import Environment

from benchmarks.settings import PARTIES, Settings
from benchmarks.table import Table
from console.pages import templates
from console.roles import Person
from console.site import Page, Shown, Visit
from coordinator.demo.loopback import LoopbackFederation
from jobs.audit.log import AuditLog
from jobs.audit.service_events import QueryDecided, TableReleased
from jobs.consent import propose
from jobs.federation import Federation
from jobs.loading import job_of
from jobs.privacy_account import Charge
from jobs.spec.job import JobSpec
from party.config import AUDIT_LOG, PartyConfig
from party.console.site import site_of
from party.node.logs import open_log
from party.state.ledger import Entry, Ledger
from party.state.node_database import FILE
from party.state.store import Record, Store
from protos.v1.control_pb2 import AWAITING_APPROVAL, CANCELLED, DENIED, EXPIRED, FAILED, SUCCEEDED

JOBS: Final = 1_000
ENTRIES: Final = 10_000
STATES: Final = (SUCCEEDED, FAILED, CANCELLED, DENIED, EXPIRED, AWAITING_APPROVAL)
PAGES: Final[Mapping[str, Mapping[str, str]]] = {  # by path what it asks for, of those that are long
    "/inbox": {},
    "/inbox/{job}": {},
    "/jobs": {},
    "/jobs/history": {"page": "9"},
    "/jobs/{job}": {},
    "/results": {},
    "/datasets": {},
    "/datasets/{dataset}": {},
    "/budgets": {},
    "/budgets/{dataset}": {"page": "9"},
    "/releases": {"page": "9"},
    "/queries": {"page": "9"},
    "/collections": {},
    "/peers": {},
    "/audit": {"page": "90"},
    "/health": {},
}
_PERSON: Final = Person("adam", "administrator")


def run(settings: Settings) -> list[Table]:
    """The section."""
    jobs, entries = (JOBS // 20, ENTRIES // 20) if settings.quick else (JOBS, ENTRIES)
    table = Table(
        f"console of a node with {jobs:,} jobs and {entries:,} entries of its audit log",
        ("page", "first visit ms", "later visit ms"),
        notes=["Processor time of the process. The page of a job in the inbox keeps its plan for ten minutes."],
    )
    with tempfile.TemporaryDirectory() as name:
        party_toml, job = _node(Path(name), jobs, entries)
        site = site_of(PartyConfig.load(party_toml), party_toml, open_log("north"))
        found = {page.path: page for page in site.pages}
        assert site.prepare is not None
        site.prepare()  # as beside a console that has just begun
        environment = templates(site.templates)
        for path, query in PAGES.items():
            settings.progress.print(path)
            visit = Visit(_PERSON, {"job": job, "dataset": "baskets"}, query, {})
            visits = [_cost(found[path], environment, visit) for _ in range(settings.repeats + 1)]
            table.add(path, visits[0], min(visits[1:]))
    return [table]


def _cost(page: Page, environment: Environment, visit: Visit) -> float:
    """Milliseconds of processor time."""
    began = time.process_time()
    answer = page.answer(visit)
    assert isinstance(answer, Shown)
    shared = {"site": "north", "pages": [], "person": visit.person, "path": page.path}
    environment.get_template(answer.template).render({**shared, **answer.content})
    return 1000 * (time.process_time() - began)


def _node(folder: Path, jobs: int, entries: int) -> tuple[Path, str]:
    """A node that does not run; its file, and a job that awaits a decision."""
    drawn = random.Random(1)
    sources = {}
    for party in PARTIES:
        sources[party] = folder / f"{party}.dat"
        rows = [" ".join(f"item{drawn.randrange(40)}" for _ in range(5)) for _ in range(2_000)]
        sources[party].write_text("\n".join(rows) + "\n")
    federation = LoopbackFederation.prepare(folder / "federation", "baskets", sources)
    party_toml = folder / "federation" / "north" / "party.toml"
    config = PartyConfig.load(party_toml)
    state = config.party.state_dir
    state.mkdir(parents=True, exist_ok=True)
    now, job = time.time(), ""
    with closing(Store.open(state / FILE)) as store, store.alone():
        for number in range(jobs):
            record = _record(federation, number, now - 60 * (jobs - number))
            store.add(record)
            job = record.job_id.hex() if record.state == AWAITING_APPROVAL else job
    with closing(Ledger.open_beside(state / FILE, state / FILE)) as ledger:
        cost = Charge("central", None, Decimal("0.001"), Decimal("1e-9"))
        for number in range(jobs):
            started = now - 8_640 * (jobs - number)
            ledger.record(Entry(number.to_bytes(32, "big"), 1, started, "baskets", "weekly", "coordinator", cost))
    log = AuditLog.open(state / AUDIT_LOG, config.tls.identity(Federation.load(config.party.federation).pins))
    of = {"dataset": "baskets", "coordinator": "coordinator"}
    query = QueryDecided(**of, number=1, query="sum(salary) where age >= 30", denied="size")
    released = TableReleased(
        **of,
        request=bytes(32),
        algorithm="mondrian",
        k=5,
        columns=("age",),
        rows=2,
        certificate=bytes(32),
        report=False,
        number=1,
    )
    log.append(*(released if number % 10 == 0 else query for number in range(entries)))
    log.close()
    return party_toml, job


def _record(federation: LoopbackFederation, number: int, received: float) -> Record:
    nonce, expiry = number.to_bytes(16, "big"), int(received) + 40 * 86_400
    state = STATES[number % len(STATES)]
    signed = propose(_weekly(), federation.identity(), nonce=nonce, expiry=expiry)
    return Record(
        _weekly().job_id(nonce, expiry),
        signed.SerializeToString(),
        "coordinator",
        "baskets",
        PARTIES,
        "0.2",
        expiry,
        received,
        state,
        decided_by="" if state == AWAITING_APPROVAL else "anna",
    )


def _weekly() -> JobSpec:
    job = {"name": "weekly", "task": "itemsets", "parties": list(PARTIES), "dataset": "baskets"}
    return job_of({"job": job, "itemsets": {"min_support": "0.2"}}, "job.toml", Path())
