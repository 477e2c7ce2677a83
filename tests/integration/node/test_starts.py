"""Nodes that start, or say why they cannot, and stop: in the test's loop and as processes of their own."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import re
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from jobs.audit.events import Event
from jobs.audit.log import AuditLog
from jobs.federation import Federation
from link.errors import ResourceError
from link.transports.serving import Serving
from party.config import PartyConfig
from party.examination import examine
from party.node.logs import open_log
from party.server import Node
from party.state.database import is_locked
from party.state.store import Store
from protos.v1 import control_pb2 as control
from tests.errors import fails
from tests.integration.processes import Process
from tests.party.files import free_ports, party_toml, write_federation
from tests.party.nodes import DATA, Client, hold, running, weekly


def test_a_loop_that_is_torn_down_leaves_nothing_to_write_into_what_is_freed(tmp_path: Path) -> None:
    """As `asyncio.run` does after an exception out of the loop itself, such as the time limit of a test."""
    write_federation(tmp_path, DATA)

    async def test() -> None:
        node = Node(PartyConfig.load(tmp_path / "north.toml"), open_log("north", io.StringIO()))
        await node.start()
        await asyncio.sleep(0.1)  # until gRPC waits for calls
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0.1)
        took_their_place = [b"\xff" * (size - 33) for size in range(176, 281, 8) for _ in range(2000)]
        with contextlib.suppress(asyncio.CancelledError):
            await node.stop()
        assert not [each for each in took_their_place if each.strip(b"\xff")]

    asyncio.run(test())


def test_a_stop_that_was_cancelled_is_finished_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cancelled while a call that lasts is given time to end."""
    monkeypatch.setattr("party.server.GRACE_S", 60.0)
    authority = write_federation(tmp_path, DATA)
    config = PartyConfig.load(tmp_path / "north.toml")

    async def test() -> None:
        node = Node(config, open_log("north", io.StringIO()))
        client = Client(authority.issue("analyst", "coordinator"), "north", await node.start())
        stop_serving, stopping = Serving.stop, asyncio.Event()

        async def told(server: Serving, grace: float | None) -> None:
            stopping.set()
            await stop_serving(server, grace)

        monkeypatch.setattr(Serving, "stop", told)
        asked = reflection_pb2.ServerReflectionRequest(list_services="")
        lasts = reflection_pb2_grpc.ServerReflectionStub(client.channel).ServerReflectionInfo()
        await lasts.write(asked)
        assert await lasts.read() is not grpc.aio.EOF
        first = asyncio.ensure_future(node.stop())
        await stopping.wait()
        await asyncio.sleep(0.05)
        first.cancel()
        await asyncio.wait({first})
        assert not lasts.done()
        monkeypatch.setattr("party.server.GRACE_S", 0.1)
        await node.stop()
        async with asyncio.timeout(10):
            assert await lasts.code() is not grpc.StatusCode.OK
        await client.channel.close()

    asyncio.run(test())


def start_node(path: Path) -> None:
    async def test() -> None:
        node = Node(PartyConfig.load(path), open_log("north", io.StringIO()))
        try:
            await node.start()
        finally:
            await node.stop()

    asyncio.run(test())


@pytest.mark.parametrize("there", [False, True])
def test_a_port_in_use_is_one_sentence_and_leaves_no_new_folder(tmp_path: Path, there: bool) -> None:
    async def test() -> None:
        async with running(tmp_path):
            if there:
                (tmp_path / "state/twin").mkdir()
            twin = tmp_path / "twin.toml"
            twin.write_text((tmp_path / "north.toml").read_text().replace("state/north", "state/twin"))
            node = Node(PartyConfig.load(twin), open_log("north", io.StringIO()))
            with fails("E103"):
                await node.start()
            await node.stop()
            assert (tmp_path / "state/twin").exists() == there  # one that was there may hold what counts
            assert (tmp_path / "state/north/audit.log").exists()

    asyncio.run(test())


def test_a_node_that_cannot_be_made_leaves_no_new_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise ResourceError("there is no room")

    write_federation(tmp_path, DATA)
    monkeypatch.setattr("party.server.Releases.open", full)
    with pytest.raises(ResourceError, match="no room"):
        start_node(tmp_path / "north.toml")
    assert not (tmp_path / "state/north").exists()


def test_a_state_folder_is_for_one_node(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            log = tmp_path / "state/north/audit.log"
            twin, before = tmp_path / "twin.toml", log.read_bytes()
            (port,) = free_ports(1)
            written = re.sub(r'listen = ".*"', f'listen = "127.0.0.1:{port}"', (tmp_path / "north.toml").read_text())
            twin.write_text(written)
            config = PartyConfig.load(twin)
            in_use = r"this node is running already: its process holds .*state/north/node\.db; look at it with .*"
            with fails("E100"):
                Node(config, open_log("north", io.StringIO()))
            assert log.read_bytes() == before
            for file, status in ((twin, "problem"), (tmp_path / "north.toml", "ok")):
                found = {each.subject: each for each in (await asyncio.to_thread(examine, file)).findings}
                assert (found["port"].status, found["state"].status) == ("ok", status)
                assert bool(re.fullmatch(in_use, found["state"].sentence)) == (status == "problem")
            with contextlib.closing(Store.open(tmp_path / "state/north/node.db")) as store:  # as the inbox does
                assert store.all() == []
            await nodes.nodes["north"].stop()
            node = Node(config, open_log("north", io.StringIO()))
            try:
                await node.start()
            finally:
                await node.stop()

    asyncio.run(test())


def test_a_node_that_cannot_be_made_leaves_the_state_folder_to_others(tmp_path: Path) -> None:
    write_federation(tmp_path, DATA)
    releases = tmp_path / "state/north/releases.db"
    releases.mkdir(parents=True)
    with fails("E103"):
        start_node(tmp_path / "north.toml")
    releases.rmdir()
    start_node(tmp_path / "north.toml")


def test_the_state_folder_of_a_killed_node_is_free(tmp_path: Path) -> None:
    write_federation(tmp_path, DATA)
    with serving(tmp_path, "north.toml") as node:
        node.until(" is ready at ")
        with serving(tmp_path, "north.toml") as second:
            ended = second.end()
            assert ended.code == 10
            assert "this node is running already" in ended.err
            assert (
                "state_dir" not in ended.err
            )  # in another folder it would know of no job, and of no limit that is used up
            assert len(ended.err.splitlines()) == 1
        node.kill()
    start_node(tmp_path / "north.toml")


def test_who_starts_a_node_that_cannot_write_its_audit_log_is_told_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = "the audit log cannot be written (No space left on device)"

    async def full(_: AuditLog, *__: Event) -> None:
        raise ResourceError(why)

    write_federation(tmp_path, DATA)
    monkeypatch.setattr(AuditLog, "record", full)
    log = io.StringIO()

    async def test() -> None:
        node = Node(PartyConfig.load(tmp_path / "north.toml"), open_log("north", log))
        try:
            with pytest.raises(ResourceError) as told:
                await node.start()
            assert told.value.message == why
        finally:
            await node.stop()

    asyncio.run(test())
    assert [json.loads(line)["event"] for line in log.getvalue().splitlines()] == ["audit not written"]
    assert not is_locked(tmp_path / "state/north/node.db")


def test_a_certificate_of_somebody_else_is_refused(tmp_path: Path) -> None:
    authority = write_federation(tmp_path, DATA)
    contents = (tmp_path / "north.toml").read_text()
    (tmp_path / "north.toml").write_text(contents.replace("pki/north.", "pki/south."))
    with fails("E201"):
        start_node(tmp_path / "north.toml")
    coordinator = authority.issue("north", "coordinator")
    (tmp_path / "pki" / "south.crt").write_bytes(coordinator.certificate_pem)
    (tmp_path / "pki" / "south.key").write_bytes(coordinator.key_pem)
    with fails("E201"):
        start_node(tmp_path / "north.toml")


def test_an_expired_certificate_is_refused(tmp_path: Path) -> None:
    authority = write_federation(tmp_path, DATA)
    old = authority.issue("north", valid_days=-1)
    (tmp_path / "pki" / "north.crt").write_bytes(old.certificate_pem)
    (tmp_path / "pki" / "north.key").write_bytes(old.key_pem)
    with fails("E201"):
        start_node(tmp_path / "north.toml")


def test_a_state_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    write_federation(tmp_path, DATA)
    (tmp_path / "state").write_text("a file in the way")
    with fails("E103"):
        start_node(tmp_path / "north.toml")


def test_a_party_outside_its_federation_is_refused(tmp_path: Path) -> None:
    write_federation(tmp_path, DATA)
    (tmp_path / "west.toml").write_text(party_toml("west"))
    with fails("E100"):
        start_node(tmp_path / "west.toml")


@contextlib.contextmanager
def serving(folder: Path, file: str) -> Iterator[Process]:
    """A node's process, which does not outlive the test."""
    process = Process("party", "serve", file, cwd=folder)
    try:
        yield process
    finally:
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_process_says_that_it_is_ready_and_ends_in_order_at_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    write_federation(tmp_path, DATA)
    address = Federation.load(tmp_path / "federation.toml").addresses["north"]
    with serving(tmp_path, "north.toml") as node:
        node.until(f"north is ready at {address}")
        ready = len(node.lines)
        node.send(number)
        ended = node.end()
        assert (ended.code, ended.out) == (0, ""), ended.err
        assert [json.loads(line)["event"] for line in ended.err.splitlines()[ready:]] == ["stopping", "stopped"]


def test_a_node_goes_on_after_its_terminal_and_may_open_as_many_descriptors_as_the_system_allows(
    tmp_path: Path,
) -> None:
    """Begun as users do, so that it inherits what hang-ups do, and how many descriptors it may open."""
    write_federation(tmp_path, DATA)
    before, (soft, hard) = signal.getsignal(signal.SIGHUP), resource.getrlimit(resource.RLIMIT_NOFILE)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        node = Process("party", "serve", "north.toml", cwd=tmp_path, preload=False)
    finally:
        signal.signal(signal.SIGHUP, before)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    try:
        node.until(" is ready at ")
        status = Path(f"/proc/{node.popen.pid}/status").read_text()
        ignored = int(re.search(r"^SigIgn:\s*(\w+)$", status, re.MULTILINE)[1], 16)  # type: ignore[index]
        assert ignored >> (signal.SIGHUP - 1) & 1
        assert resource.prlimit(node.popen.pid, resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        node.kill()


def test_sigterm_cancels_a_running_job_at_all_parties(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            hold(nodes.nodes["south"])
            await nodes.nodes["north"].stop()
            with serving(tmp_path, "north.toml") as process:
                await asyncio.to_thread(process.until, " is ready at ")
                nodes.clients["north"] = nodes.client(nodes.authority.issue("analyst", "coordinator"))
                job_id = await nodes.begin(weekly())
                process.send(signal.SIGTERM)
                ended = await asyncio.to_thread(process.end)
                assert ended.code == 0, ended.err
                for name in ("south", "east"):
                    event = (await nodes.clients[name].watch(job_id))[-1]
                    assert event.state == control.CANCELLED
                assert "cancelled at north" in event.error_message

    asyncio.run(test())


def test_a_node_that_cannot_start_says_why_and_exits_by_the_kind_of_fault(tmp_path: Path) -> None:
    authority = write_federation(tmp_path, DATA)
    old = authority.issue("south", valid_days=-1)
    (tmp_path / "pki" / "south.crt").write_bytes(old.certificate_pem)
    (tmp_path / "pki" / "south.key").write_bytes(old.key_pem)
    for file, exit_code, sentence in (("absent.toml", 10, "does not exist"), ("south.toml", 20, "expired on")):
        with serving(tmp_path, file) as node:
            ended = node.end()
            assert (ended.code, ended.out) == (exit_code, "")
            assert sentence in ended.sentence
            assert len(ended.err.splitlines()) == 1
