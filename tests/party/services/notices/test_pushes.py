"""Notifications as they leave a node: to a push service that cannot read them, at no job's cost, and nowhere else."""

from __future__ import annotations

import asyncio
import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.accounts import Accounts
from console.push import sending
from console.push.sending import SIZE
from console.push.subscriptions import Subscriptions
from party.config import PartyConfig
from party.console.site import accounts_of, subscriptions_of
from party.node.logs import open_log
from party.services.notices import pushes
from party.services.notices.pushes import LOST, WAITING, Pushes, told
from protos.v1.control_pb2 import SUCCEEDED
from tests.console.conftest import cheap_hashes  # noqa: F401 - a fixture of this folder, too
from tests.console.push.receiver import Receiver
from tests.console.sites import PASSWORD
from tests.looped import looped
from tests.party.nodes import running, weekly
from tests.party.services.notices.push_service import PushService, push_service
from tests.web_proxy import web_proxy

CONTACT = "mailto:it@north.example"
JOB = {"event": "inbox", "job": {"job_id": "5f0c12ab" + "0" * 56, "name": "secret", "coordinator": "analyst"}}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PushService]:
    with push_service(tmp_path_factory.mktemp("service")) as found, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(found.ca))
        yield found


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch, service: PushService) -> None:
    monkeypatch.setattr(pushes, "PAUSES_S", (0.0, 0.0))
    service.got.clear()


@pytest.fixture
def ours(tmp_path: Path, service: PushService) -> Subscriptions:
    accounts = Accounts(tmp_path / "console.json")
    accounts.add("anna", "viewer", PASSWORD)
    return Subscriptions(tmp_path / "push.json", accounts, (service.host,))


class Counted:
    """A queue of pushes with what it counts and logs."""

    def __init__(self, ours: Subscriptions) -> None:
        self.lines, self.counts = io.StringIO(), Counter[str]()
        self.pushes = Pushes(ours, CONTACT, open_log("north", self.lines), self._count)

    def _count(self, code: str, number: int) -> None:
        self.counts[code] += number

    async def tell(self, *notices: dict[str, Any]) -> None:
        for notice in notices:
            self.pushes.put(notice)
        await self.pushes.waiting.join()


@looped
async def test_a_browser_reads_what_the_push_service_cannot(ours: Subscriptions, service: PushService) -> None:
    browser, other = Receiver.new(), Receiver.new()
    ours.add("anna", **browser.form(service.endpoint("a")))
    ours.add("anna", **other.form(service.endpoint("b")))
    counted = Counted(ours)
    await counted.tell(JOB, {"event": "budget", "dataset": "patients", "limit": "max_jobs", "share": "0.8"})
    await counted.pushes.close()
    read = {"/a": browser, "/b": other}
    messages = [json.loads(read[path].opened(body)) for path, _, body in service.got]
    job = {"title": "comine", "text": "A job awaits a decision: 5f0c12ab", "path": "/inbox/5f0c12ab"}
    budget = {"title": "comine", "text": "A limit on jobs is nearly used up", "path": "/budgets"}
    assert messages == [job, job, budget, budget]
    assert {len(body) for _, _, body in service.got} == {SIZE + 103}
    for _, headers, _ in service.got:
        assert headers["Authorization"].startswith("vapid t=")
        assert (headers["Content-Encoding"], headers["User-Agent"]) == ("aes128gcm", "comine")
        assert "Cookie" not in headers
    assert counted.counts == Counter(OK=4)
    assert counted.lines.getvalue() == ""


@looped
async def test_what_is_gone_is_forgotten_and_what_fails_is_logged_once(
    ours: Subscriptions, service: PushService
) -> None:
    for name, answer in (("gone", 410), ("unknown", 404), ("moved", 302), ("unwell", 500)):
        ours.add("anna", **Receiver.new().form(service.endpoint(name, answer)))
    counted = Counted(ours)
    await counted.tell(JOB, JOB)
    assert Counter(path for path, _, _ in service.got) == {"/gone": 1, "/unknown": 1, "/moved": 6, "/unwell": 6}
    assert sorted(each.endpoint.rpartition("/")[2] for each in ours.all()) == ["moved", "unwell"]
    assert counted.counts == Counter(gone=2, failed=4)
    (line,) = counted.lines.getvalue().splitlines()
    assert (json.loads(line)["event"], json.loads(line)["address"]) == ("push failed", service.host)
    for name in ("moved", "unwell"):
        service.endpoint(name)
    await counted.tell(JOB)
    service.endpoint("moved", 500)
    await counted.tell(JOB)
    await counted.pushes.close()
    assert len(counted.lines.getvalue().splitlines()) == 2  # it was well meanwhile
    assert "/moved" not in counted.lines.getvalue()


@looped
async def test_a_service_that_nobody_can_vouch_for_gets_nothing(
    ours: Subscriptions, service: PushService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    ours.add("anna", **Receiver.new().form(service.endpoint("a")))
    counted = Counted(ours)
    await counted.tell(JOB)
    await counted.pushes.close()
    assert service.got == []
    assert counted.counts["failed"] == 1


@looped
async def test_a_service_that_does_not_answer_is_not_waited_for(
    ours: Subscriptions, service: PushService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "WITHIN_S", 0.1)
    ours.add("anna", **Receiver.new().form(service.endpoint("hangs")))
    service.hangs.add("/hangs")
    counted = Counted(ours)
    await counted.tell(JOB)
    await counted.pushes.close()
    assert counted.counts == Counter(failed=1)


@looped
async def test_a_proxy_is_used_that_passes_on_what_it_cannot_read(
    ours: Subscriptions, service: PushService, monkeypatch: pytest.MonkeyPatch
) -> None:
    with web_proxy() as (url, asked):
        monkeypatch.setenv("https_proxy", url)
        monkeypatch.setenv("no_proxy", "")
        ours.add("anna", **Receiver.new().form(service.endpoint("a")))
        counted = Counted(ours)
        await counted.tell(JOB)
        await counted.pushes.close()
    assert asked == [f"CONNECT {service.host}"]
    assert [path for path, _, _ in service.got] == ["/a"]


@looped
async def test_what_does_not_fit_is_counted(ours: Subscriptions) -> None:
    counted = Counted(ours)
    for _ in range(WAITING + 3):
        counted.pushes.put(JOB)
    await counted.pushes.close()
    assert counted.counts[LOST] == 3


@pytest.mark.parametrize(
    ("notice", "text", "path"),
    [
        (JOB, "A job awaits a decision: 5f0c12ab", "/inbox/5f0c12ab"),
        ({**JOB, "event": "held"}, "A result awaits its release: 5f0c12ab", "/jobs/5f0c12ab"),
        ({**JOB, "event": "end"}, "A job has ended: 5f0c12ab", "/jobs/5f0c12ab"),
        ({**JOB, "event": "expiry"}, "A proposal has expired: 5f0c12ab", "/inbox/5f0c12ab"),
        ({"event": "expiry", "certificate": {}}, "The certificate of the party ends soon", "/peers"),
    ],
)
def test_a_notification_says_what_kind_of_thing_it_is(notice: dict[str, Any], text: str, path: str) -> None:
    assert json.loads(told(notice)) == {"title": "comine", "text": text, "path": path}
    assert len(told(notice)) <= SIZE


@looped
async def test_a_node_tells_browsers_without_any_hook(tmp_path: Path, service: PushService) -> None:
    browser = Receiver.new()

    def prepare(_: object) -> None:
        file = tmp_path / "north.toml"
        file.write_text(
            f'{file.read_text()}[console]\npush = true\npush_contact = "{CONTACT}"\n'
            f'push_services = ["{service.host}"]\n'
        )
        config = PartyConfig.load(file)
        config.party.state_dir.mkdir(parents=True)
        accounts_of(config).add("anna", "viewer", PASSWORD)

    async with running(tmp_path, prepare=prepare) as nodes:
        ours = subscriptions_of(PartyConfig.load(tmp_path / "north.toml"))
        await asyncio.to_thread(lambda: ours.add("anna", **browser.form(service.endpoint("a"))))
        _, ends = await nodes.run(weekly())
        assert ends["north"].state == SUCCEEDED
        while not service.got:  # noqa: ASYNC110  # another thread brings it about
            await asyncio.sleep(0.02)
        metrics = nodes.nodes["north"].metrics.registry
        while not metrics.get_sample_value("comine_push_total", {"code": "OK"}):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    (body,) = (body for _, _, body in service.got)
    message = json.loads(browser.opened(body))
    assert message["text"].startswith("A job has ended: ")
    assert len(message["text"]) == len("A job has ended: ") + 8
    log = (tmp_path / "state" / "north" / "audit.log").read_text()
    assert '"event":"notifications-begun","fields":{"by":"anna"' in log
