"""`comine job run` and `comine doctor` against scripted nodes that live in a thread of their own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from link.authority import write_identity
from link.errors import PolicyDenied
from protos.v1 import control_pb2 as control
from tests.cli.conftest import Comine
from tests.unit.coordinator.nodes import World, world

JOB = '[job]\nname = "w"\ntask = "itemsets"\nparties = ["north", "south"]\ndataset = "d"\n[itemsets]\nmin_support = 2\n'
RUN = ("job", "run", "job.toml", "--federation", "federation.toml", "--out", "out")


@contextmanager
def nodes(folder: Path, **changes: dict[str, Any]) -> Iterator[World]:
    """Scripted nodes, and the files by which a coordinator in `folder` knows them."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    with ExitStack() as stack:
        stack.callback(loop.close)
        stack.callback(thread.join)
        stack.callback(loop.call_soon_threadsafe, loop.stop)
        entered = world(**changes)
        made = asyncio.run_coroutine_threadsafe(entered.__aenter__(), loop).result()
        stack.callback(lambda: asyncio.run_coroutine_threadsafe(entered.__aexit__(None, None, None), loop).result())
        made.authority.write(folder)
        write_identity(made.coordinator, folder)
        members = "".join(f'[[party]]\nname = "{n}"\naddress = "{a}"\n' for n, a in made.addresses.items())
        (folder / "federation.toml").write_text(
            '[federation]\nname = "f"\n[coordinator]\nca = "ca.crt"\ncertificate = "hub.crt"\nkey = "hub.key"\n'
            + members
        )
        (folder / "job.toml").write_text(JOB)
        yield made


def test_a_job_and_a_doctor_that_finds_all_well(comine: Comine, tmp_path: Path) -> None:
    with nodes(tmp_path):
        assert comine("doctor", "--federation", "federation.toml").code == 0
        ran = comine(*RUN)
        assert (ran.code, ran.out) == (0, "")
        assert (tmp_path / "out/itemsets.csv").read_text().splitlines()[1] == '"[""bread""]",1,5,0.5555555555555556'
        assert json.loads(comine(*RUN, "--json").out)["n_rows"] == 9


def test_a_refusal_exits_30_and_leaves_nothing(comine: Comine, tmp_path: Path) -> None:
    with nodes(tmp_path, south={"refuse": {"Propose": PolicyDenied("south forbids it", party="south")}}):
        ran = comine(*RUN)
    assert (ran.code, ran.err) == (30, "comine: south forbids it (E300; comine explain E300)\n")
    assert not (tmp_path / "out").exists()


def test_failed_jobs_exit_by_their_cause(comine: Comine, tmp_path: Path) -> None:
    event = control.JobEvent(
        state=control.FAILED, error_code="E600", error_message="too late\x1b[31m\nreally", error_party="north"
    )
    with nodes(tmp_path, north={"events": [event]}, south={"events": [event]}):
        ran = comine(*RUN)
    assert ran.code == 60
    assert "\x1b" not in ran.err
    assert ran.err.count("\n") == 1


def test_nobody_there_exits_20(comine: Comine, tmp_path: Path) -> None:
    with nodes(tmp_path):
        pass
    ran = comine(*RUN)
    assert ran.code == 20
    assert "nothing listens there" in ran.err
    ran = comine("doctor", "--federation", "federation.toml", "--json")
    assert ran.code == 20
    assert [party["reachable"] for party in json.loads(ran.out)["parties"]] == [False, False]


def test_ctrl_c_exits_50_and_tells_the_parties(comine: Comine, tmp_path: Path) -> None:
    with nodes(tmp_path, north={"hold": True}, south={"hold": True}) as made:

        def interrupt() -> None:
            while not all(node.watched.is_set() for node in made.nodes.values()):
                threading.Event().wait(0.01)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        ran = comine(*RUN)
        thread.join()
        assert ran.code == 50
        assert all("Cancel" in node.calls for node in made.nodes.values())


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda f: (f / "job.toml").write_text(JOB.replace("south", "west")), "'west'"),
        (lambda f: (f / "federation.toml").unlink(), "federation.toml does not exist"),
        (lambda f: (f / "hub.key").chmod(0o644), "chmod 600"),
        (lambda f: (f / "out").write_text("a file"), "is a file"),
    ],
)
def test_wrong_files_exit_10(comine: Comine, tmp_path: Path, spoil: Any, words: str) -> None:
    with nodes(tmp_path):
        spoil(tmp_path)
        ran = comine(*RUN)
    assert ran.code == 10
    assert words in ran.err


def test_a_partys_certificate_is_none_for_a_coordinator(comine: Comine, tmp_path: Path) -> None:
    with nodes(tmp_path) as made:
        write_identity(made.nodes["north"].identity, tmp_path)
        file = tmp_path / "federation.toml"
        file.write_text(file.read_text().replace("hub.", "north."))
        ran = comine(*RUN)
    assert ran.code == 10
    assert "--role coordinator" in ran.err
