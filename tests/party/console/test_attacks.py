"""What others send, and people who mean harm, against the pages of a node's console."""

from __future__ import annotations

import asyncio
import io
import json
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from console.site import Site
from jobs.audit.log import AuditLog
from jobs.audit.service_events import QueryDecided
from jobs.consent import propose
from jobs.federation import Federation
from party.config import AUDIT_LOG, PartyConfig
from party.console.site import site_of
from party.node.logs import open_log
from party.state.node_database import FILE
from party.state.store import Record, Store
from protos.v1.control_pb2 import AWAITING_APPROVAL, DENIED, FAILED, RUNNING, SUCCEEDED
from tests.console.markup import HOSTILE, check_markup
from tests.console.sites import PASSWORD, browser_of, log_in
from tests.looped import looped
from tests.party.files import write_federation
from tests.party.nodes import weekly

SHOW_IT: Final = {"/inbox", "/inbox/{job}", "/jobs/{job}", "/jobs/history", "/results", "/queries", "/audit"}
STATES: Final = (AWAITING_APPROVAL, RUNNING, SUCCEEDED, FAILED, DENIED)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A node that does not run, whose coordinator, peers and people write what they like."""
    authority = write_federation(tmp_path, {"north": [["milk"]], "south": [["milk"]]}, policy="min_support = 0.1")
    file = tmp_path / "north.toml"
    file.write_text(file.read_text().replace('approve = "auto"', 'approve = "manual"'))
    config = PartyConfig.load(file)
    state, analyst = config.party.state_dir, authority.issue("analyst", "coordinator")
    state.mkdir(parents=True)
    spec = weekly(name=HOSTILE, parties=["north", "south"])
    with closing(Store.open(state / FILE)) as store:
        for number, job_state in enumerate(STATES):
            nonce, expiry = bytes([number]) * 16, int(time.time()) + 600
            signed = propose(spec, analyst, nonce=nonce, expiry=expiry)
            early = {"error_code": "E201", "error_message": HOSTILE, "error_party": "south"} if number > 2 else {}
            record = Record(
                spec.job_id(nonce, expiry),
                signed.SerializeToString(),
                "analyst",
                "baskets",
                ("north", "south"),
                "0.2",
                expiry,
                time.time(),
                job_state,
                decided_by=HOSTILE,
                reason=HOSTILE,
                **early,
            )
            store.add(record)
        held = state / "held" / "itemsets.csv"
        held.parent.mkdir()
        held.write_text(f'"{HOSTILE.replace(chr(34), chr(34) * 2)}",x\n"<b>",y\n')
        running = store.within([RUNNING])[0].job_id
        opened = [{"label": HOSTILE, "recipients": [HOSTILE], "number": 1, "size_bytes": 1}]
        shown = {"since": "2026-01-01T00:00:00Z", "until": "2026-01-01T00:00:00Z", "attempt": 1, "n_rows": 1}
        store.hold(running, bytes(32), {**shown, "found": HOSTILE, "files": [str(held)], "opened": opened})
    log = AuditLog.open(state / AUDIT_LOG, config.tls.identity(Federation.load(config.party.federation).pins))
    log.append(QueryDecided(dataset="baskets", coordinator="analyst", number=1, query=HOSTILE, denied="size"))
    log.close()
    found = site_of(config, file, open_log("north", io.StringIO()))
    for name, role in (("anna", "approver"), ("bert", "approver"), ("adam", "administrator")):
        found.accounts.add(name, role, PASSWORD)  # type: ignore[arg-type]
    return found


def jobs(site: Site, folder: Path) -> list[str]:
    assert site.name == "north"
    with closing(Store.open_beside(folder / "state" / "north" / FILE, folder / "state" / "north" / FILE)) as store:
        return [record.job_id.hex() for record in store.all()]


@looped
async def test_what_others_write_is_text_on_every_page(site: Site, tmp_path: Path) -> None:
    shows = set[str]()
    async with browser_of(site) as client:
        await log_in(client, "adam")
        for page in site.pages:
            if page.acts:
                continue
            for job in jobs(site, tmp_path):
                path = page.path.format(job=job, dataset="baskets", certificate="0" * 64, name="x", collection="x")
                answer = await client.get(path)
                assert answer.status_code != 500, path
                if check_markup(answer.text):
                    shows.add(page.path)
                if path == page.path:
                    break
        assert check_markup((await client.get(f"/login?to={HOSTILE}")).text) is False
    assert shows >= SHOW_IT


@looped
async def test_of_people_who_decide_at_once_one_does(site: Site, tmp_path: Path) -> None:
    with closing(Store.open_beside(tmp_path / "state" / "north" / FILE, tmp_path / "state" / "north" / FILE)) as store:
        (job,) = [record.job_id.hex() for record in store.within([AWAITING_APPROVAL])]
    async with browser_of(site) as anna, browser_of(site) as bert:
        await log_in(anna, "anna")
        await log_in(bert, "bert")
        answers = await asyncio.gather(
            *(client.post(f"/inbox/{job}/approve") for client in (anna, bert) for _ in range(2)),
            bert.post(f"/inbox/{job}/deny", data={"reason": "no"}),
        )
    assert sorted(answer.status_code for answer in answers) == [303, 400, 400, 400, 400]
    assert sum(event in ("approved", "refused") for event in events(tmp_path)) == 1


def events(folder: Path) -> list[str]:
    lines = (folder / "state" / "north" / AUDIT_LOG).read_text().splitlines()
    return [json.loads(line)["event"] for line in lines]


async def form(client: httpx2.AsyncClient, **filled: str) -> dict[str, str]:
    """The form of the policy, filled in."""
    page = (await client.get("/policy")).text
    digest = page.partition('name="digest" value="')[2].partition('"')[0]
    assert len(digest) == 64
    return {"digest": digest, **{f"policy.{name}": value for name, value in filled.items()}}


@looped
async def test_of_two_who_change_the_policy_at_once_one_does(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "north.toml"
    async with browser_of(site) as client:
        await log_in(client, "adam")
        forms = [await form(client, max_jobs=str(number)) for number in (5, 7, 9)]
        answers = await asyncio.gather(*(client.post("/policy/save", data=each) for each in forms))
    assert sorted(answer.status_code for answer in answers) == [200, 400, 400]
    assert PartyConfig.load(file).policy.max_jobs in (5, 7, 9)
    assert sum(event == "policy-changed" for event in events(tmp_path)) == 1
    assert drafts(tmp_path) == []


def drafts(folder: Path) -> list[Path]:
    return list(folder.glob(".*.new"))


FILLED_IN: Final = (
    {"min_support": "1e999999999"},
    {"max_jobs": "1e999999999"},
    {"max_jobs": "9" * 40},
    {"approve": 'auto"\n[tls]\nca = "x'},
    {"withhold": 'a"]\n[[dataset]]\nname = "b'},
    {"columns": "a = " + "[" * 5_000},
    {"columns": "[[dataset]]\nname = 'b'"},
    {"columns": "a = 1e999999999"},
    {"approval": "[[approval]]\ndecide = 'auto'\n[[dataset]]\nname='b'"},
    {"tasks": "\0"},
    {"tasks": "itemsets\u202e"},
)


@pytest.mark.parametrize("filled", FILLED_IN)
@looped
async def test_what_is_filled_in_becomes_a_rule_or_a_fault(site: Site, tmp_path: Path, filled: dict[str, str]) -> None:
    file = tmp_path / "north.toml"
    before = PartyConfig.load(file)
    async with browser_of(site) as client:
        await log_in(client, "adam")
        given = await form(client, **filled)
        shown = await client.post("/policy/changes", data=given)
        saved = await client.post("/policy/save", data=given)
    assert {shown.status_code, saved.status_code} <= {200, 400}
    check_markup(shown.text)
    after: Any = PartyConfig.load(file)
    assert (after.dataset, after.tls) == (before.dataset, before.tls)
