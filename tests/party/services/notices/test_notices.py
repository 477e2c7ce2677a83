"""What a node tells its people: as much as their inbox shows, in order, and at no job's cost."""

from __future__ import annotations

import asyncio
import io
import json
import ssl
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from jobs.spec.toml import validate
from link.errors import ConfigurationError
from link.pki.authority import Authority, write_identity
from party.node.logs import open_log
from party.services.notices import delivery
from party.services.notices.delivery import WAITING, Delivery, nothing, run
from party.services.notices.settings import NotifySection
from party.state.kept_notices import MOST, KeptNotices
from protos.v1.control_pb2 import SUCCEEDED
from tests.looped import looped
from tests.party.nodes import running, weekly

pytestmark = pytest.mark.turn(5)

KEEP = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + '\\n')"
LINE = {
    "job_id", "name", "state", "coordinator", "task", "dataset", "parties", "min_support", "received", "expiry",
    "decided", "decided_by", "reason",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "PAUSES_S", (0.0, 0.0))


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[KeptNotices]:
    found = KeptNotices.open(tmp_path / "node.db")
    yield found
    found.close()


def section(**contents: Any) -> NotifySection:
    return validate(NotifySection, contents, "party.toml")


def telling(place: Path, *more: str) -> tuple[str, ...]:
    return (sys.executable, "-c", KEEP, str(place), *more)


def told(place: Path) -> list[dict[str, Any]]:
    return [json.loads(each) for each in place.read_text().splitlines()] if place.exists() else []


async def until(true: Callable[[], bool]) -> None:
    while not true():  # noqa: ASYNC110  # another process brings it about
        await asyncio.sleep(0.02)


async def until_told(place: Path, number: int) -> list[dict[str, Any]]:
    await until(lambda: len(told(place)) >= number)
    return told(place)


def is_alive(pid: Path) -> bool:
    command = Path(f"/proc/{pid.read_text()}/cmdline")
    try:
        return command.read_bytes() != b""
    except OSError:
        return False


def given(*notices: Mapping[str, Any]) -> Callable[[], Coroutine[Any, Any, Sequence[Mapping[str, Any]]]]:
    async def write() -> Sequence[Mapping[str, Any]]:
        return notices

    return write


@pytest.mark.parametrize(
    "contents",
    [
        {},
        {"command": ["a"], "webhook": "https://a"},
        {"command": []},
        {"command": [""]},
        {"command": ["a\0b"]},
        {"webhook": "http://a.example/hook"},
        {"webhook": "https://"},
        {"webhook": "https://a.example/a b"},
        {"webhook": "https://a.example:99999/"},
        {"command": ["a"], "webhook_ca": "ca.crt"},
        {"command": ["a"], "events": ["rows"]},
        {"command": ["a"], "timeout": "2h"},
        {"command": ["a"], "budget_share": "1.5"},
    ],
)
def test_a_wrong_table_is_told(contents: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        section(**contents)


def test_paths_are_taken_from_the_folder_of_the_file() -> None:
    assert section(command=["./tell", "x/y"]).beside(Path("/etc")).command == ("/etc/tell", "x/y")
    assert section(command=["tell"]).beside(Path("/etc")).command == ("tell",)


@looped
async def test_people_learn_what_awaits_them_and_how_jobs_end(tmp_path: Path) -> None:
    place = tmp_path / "told"
    command = json.dumps(telling(place))
    policy = f"max_jobs = 1\n[notify]\ncommand = {command}\ncertificate_days = 365\n"
    async with running(tmp_path, policy=policy) as nodes:
        name = "'; touch /tmp/x; $(reboot) \" weekly"
        _, ends = await nodes.run(weekly(name=name))
        assert ends["north"].state == SUCCEEDED
        found = await until_told(place, 6)  # of three nodes
    north = [each for each in found if each["party"] == "north"]
    assert {each["schema"] for each in found} == {"comine.notice/1"}
    budget, end = (next(each for each in north if each["event"] == event) for event in ("budget", "end"))
    assert budget["limit"], budget["dataset"] == ("max_jobs", "baskets")
    assert budget.keys() == {"schema", "event", "party", "time", "dataset", "limit", "share"}
    assert end.keys() == {"schema", "event", "party", "time", "job"}
    assert end["job"].keys() == LINE
    assert (end["job"]["name"], end["job"]["state"]) == (name, "succeeded")


@looped
async def test_a_proposal_that_waits_and_one_that_expires(tmp_path: Path) -> None:
    place = tmp_path / "told"

    def manual(_: Authority) -> None:
        path = tmp_path / "north.toml"
        text = path.read_text().replace('approve = "auto"', 'approve = "manual"')
        path.write_text(f"{text}\n[notify]\ncommand = {json.dumps(telling(place))}\n")

    async with running(tmp_path, prepare=manual) as nodes:
        await nodes.clients["north"].propose(weekly(), expiry=int(time.time()) + 2)
        inbox, expired = await until_told(place, 2)
    assert (inbox["event"], inbox["job"]["state"]) == ("inbox", "awaiting approval")
    assert (expired["event"], expired["job"]["state"]) == ("expiry", "expired")


@looped
async def test_a_command_that_hangs_or_fails_delays_no_job(tmp_path: Path) -> None:
    command = json.dumps([sys.executable, "-c", "import time; time.sleep(600)"])
    policy = f'[notify]\ncommand = {command}\ntimeout = "1s"\n'
    async with running(tmp_path, policy=policy) as nodes:
        for number in range(2):
            assert (await nodes.run(weekly(name=f"job-{number}")))[1]["north"].state == SUCCEEDED


@looped
async def test_notices_come_in_order_and_failures_are_logged_and_few(kept: KeptNotices) -> None:
    lines = io.StringIO()
    failing = Delivery(
        section(command=[sys.executable, "-c", "import sys; sys.exit(3)"]), kept, open_log("north", lines)
    )
    failing.put(given({"event": "end"}))
    await failing.waiting.join()
    await failing.close()
    (line,) = lines.getvalue().splitlines()
    assert (json.loads(line)["event"], json.loads(line)["why"]) == ("notice failed", "exit code 3")


@looped
async def test_order_is_kept_and_what_does_not_fit_is_counted(tmp_path: Path, kept: KeptNotices) -> None:
    lines, place = io.StringIO(), tmp_path / "told"
    ours = Delivery(section(command=list(telling(place))), kept, open_log("north", lines))
    gate = asyncio.Event()

    async def first() -> Sequence[Mapping[str, Any]]:
        await gate.wait()
        return [{"number": 0}]

    ours.put(first)
    await asyncio.sleep(0)
    for number in range(1, WAITING + 6):
        ours.put(given({"number": number}) if number < 4 else given())
    gate.set()
    await ours.waiting.join()
    await ours.close()
    assert [each["number"] for each in told(place)] == [0, 1, 2, 3]
    assert json.loads(lines.getvalue().splitlines()[0])["lines"] == 5


@looped
async def test_what_was_not_delivered_comes_after_a_restart(tmp_path: Path, kept: KeptNotices) -> None:
    place, log = tmp_path / "told", open_log("north", io.StringIO())
    failing = Delivery(section(command=[sys.executable, "-c", "import sys; sys.exit(3)"]), kept, log)
    failing.put(given({"number": 0}, {"number": 1}))
    await failing.waiting.join()
    await failing.close()
    hanging = Delivery(
        section(command=[sys.executable, "-c", "import time; time.sleep(600)"], timeout="60s"), kept, log
    )
    for number in (2, 3):
        hanging.put(given({"number": number}))
    await until(lambda: len(kept.all()) == 4)  # before any of them is handed over
    await hanging.close()
    ours = Delivery(section(command=list(telling(place))), kept, log)
    ours.put(nothing)
    ours.put(given({"number": 4}))
    await ours.waiting.join()
    await ours.close()
    assert [each["number"] for each in told(place)] == [0, 1, 2, 3, 4]
    assert kept.all() == []


@looped
async def test_what_failed_is_tried_again_after_what_goes_well(tmp_path: Path, kept: KeptNotices) -> None:
    place, bad = tmp_path / "told", tmp_path / "bad"
    script = f"import os, sys; sys.exit(3) if os.path.exists({str(bad)!r}) else None; " + KEEP
    ours = Delivery(section(command=[sys.executable, "-c", script, str(place)]), kept, open_log("north", io.StringIO()))
    bad.touch()
    ours.put(given({"number": 0}))
    await ours.waiting.join()
    bad.unlink()
    ours.put(given({"number": 1}))
    await ours.waiting.join()
    ours.settings = None  # from now on nobody is to be told anything
    ours.put(given({"number": 2}))
    await ours.waiting.join()
    await ours.close()
    assert [each["number"] for each in told(place)] == [1, 0]
    assert kept.all() == []


def test_the_last_ones_are_kept(kept: KeptNotices) -> None:
    for number in range(MOST + 3):
        kept.add(str(number))
    assert [each.text for each in kept.all()] == [str(number) for number in range(3, MOST + 3)]
    kept.remove(kept.all()[0])
    assert len(kept.all()) == MOST - 1


@looped
async def test_no_shell_looks_at_a_command_and_what_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    place = tmp_path / "told"
    assert await run(telling(place, f"$(touch {tmp_path}/x)", "; exit 1"), "{}", 60) == ""
    assert not (tmp_path / "x").exists()
    pid = tmp_path / "pid"
    child = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    running_ = asyncio.create_task(run((sys.executable, "-c", script), "{}", 600))
    await until(lambda: pid.exists() and pid.read_text() != "")
    running_.cancel()
    await asyncio.gather(running_, return_exceptions=True)
    await until(lambda: not is_alive(pid))
    assert await run(("/nowhere/at/all",), "{}", 60) == "it cannot be run"
    assert await run((sys.executable, "-c", "import time; time.sleep(600)"), "{}", 1) == "it took too long"


@contextmanager
def webhook(folder: Path, answer: int) -> Iterator[tuple[str, Path, list[Any]]]:
    """A server for notices, the authority of its certificate, and what it got."""
    authority, got = Authority.create(), list[Any]()
    authority.write(folder / "hook")
    write_identity(authority.issue("hook", "party", ["localhost"]), folder / "hook")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self.send_response(answer)
            self.send_header("Location", f"{place}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Silent."""

    server = HTTPServer(("localhost", 0), Handler)
    place = f"https://localhost:{server.server_port}"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "hook/hook.crt", folder / "hook/hook.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"{place}/hooks/1?token=secret", folder / "hook/ca.crt", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(("answer", "tries"), [(204, 1), (302, 3), (500, 3)])
def test_a_webhook_gets_the_notice_and_redirects_lead_nowhere(
    tmp_path: Path, kept: KeptNotices, answer: int, tries: int
) -> None:
    with webhook(tmp_path, answer) as (url, ca, got):
        lines = io.StringIO()

        async def post(**more: Any) -> None:
            ours = Delivery(section(webhook=url, timeout="60s", **more), kept, open_log("north", lines))
            ours.put(given({"event": "end"}))
            await ours.waiting.join()
            await ours.close()

        asyncio.run(post(webhook_ca=str(ca)))
        assert got == [("/hooks/1?token=secret", {"event": "end"})] * tries
        assert ("notice failed" in lines.getvalue()) == (tries > 1)
        assert "secret" not in lines.getvalue()
        if tries == 1:
            asyncio.run(post())  # of an authority that nobody knows
            assert len(got) == 1
