"""`comine frequency loadtest` when something is wrong: one sentence with its code, whatever it is and whenever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from link.pki.authority import Authority, write_identity
from tests.integration.processes import END_S
from tests.party.files import free_ports
from tests.party.services.frequency.deployed import GATEWAYS, NODE, Deployed, deployed

pytestmark = pytest.mark.turn(5)

FLEET = ("--certificate", "pki/fleet.crt")
ENDLESS = ("loadtest", "loaded", *FLEET, "--reports", "3000000", "--batch", "16", "--connections", "3")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed(tmp_path_factory.mktemp("loadtest")) as made:
        for name, more in (("loaded", ""), ("unknown", '[window]\nlength = "1h"\n'), ("barred", "")):
            access = '[access]\nsubmit = ["other"]\n' if name == "barred" else GATEWAYS
            heads = f'[collection]\nname = "{name}"\nmechanism = "grr"\nepsilon = 4.0\nsize = 4\n'
            made.write(f"{name}.toml", heads + more + access)
            assert made.comine("create", f"{name}.toml").code == 0
        made.write("torn.toml", "[collection\n")
        made.write("absurd.toml", '[collection]\nname = "absurd"\nmechanism = "grr"\nepsilon = 16\nsize = 4\n')
        other = Authority.create()
        write_identity(other.issue("stranger", "client"), made.folder / "pki")
        (made.folder / "pki" / "other.ca").write_bytes(other.certificate_pem)
        (made.folder / "pki" / "torn.crt").write_text("-----BEGIN CERTIFICATE-----\nAAAA\n")
        (made.folder / "pki" / "torn.key").write_text("no key")
        os.chmod(made.folder / "pki" / "torn.key", 0o600)
        away = made.folder / "away.toml"
        away.write_text(
            (made.folder / "federation.toml").read_text().replace(made.address, f"127.0.0.1:{free_ports(1)[0]}")
        )
        yield made


@pytest.mark.parametrize(
    ("words", "code"),
    [
        *(
            (("loaded", *FLEET, option, value), 2)
            for option in ("--reports", "--batch", "--connections")
            for value in (0, -1)
        ),
        *((("loaded", *FLEET, option, 2**63), 2) for option in ("--reports", "--batch", "--connections")),
        (("loaded", *FLEET, "--reports", "many"), 2),
        (("loaded",), 2),
        (("nowhere", *FLEET), 10),
        (("nowhere.toml", *FLEET), 10),
        (("torn.toml", *FLEET), 10),
        (("absurd.toml", *FLEET), 30),
        (("unknown", *FLEET), 10),  # which goes on in rounds
        (("\udcff", *FLEET), 2),
        (("x" * 5000, *FLEET), 10),
        (("loaded", *FLEET, "--federation", "none.toml"), 10),
        (("loaded", *FLEET, "--federation", "torn.toml"), 10),
        (("loaded", *FLEET, "--federation", "away.toml"), 20),
        (("loaded", *FLEET, "--node", "nobody"), 10),
        (("loaded", "--certificate", "pki/none.crt"), 10),
        (("loaded", "--certificate", "pki/torn.crt"), 20),
        (("loaded", "--certificate", "pki"), 10),
        (("loaded", *FLEET, "--key", "pki/torn.key"), 20),
        (("loaded", *FLEET, "--key", "pki/hub.key"), 20),
        (("loaded", *FLEET, "--ca", "pki/other.ca"), 20),
        (("loaded", "--certificate", "pki/stranger.crt"), 20),
        (("loaded", "--certificate", "pki/hub.crt", "--reports", 9), 10),  # of a coordinator
        (("loaded", "--certificate", "pki/north.crt", "--reports", 9), 10),  # of a party
        (("barred", *FLEET, "--reports", 9, "--connections", 3), 30),
    ],
)
def test_what_is_wrong_is_one_sentence(node: Deployed, words: tuple[object, ...], code: int) -> None:
    ran = node.comine("loadtest", *words)
    assert (ran.code, "Traceback" in ran.err) == (code, False), ran.err
    assert ran.out == ""


class Running:
    """A command in a group of processes of its own, as a terminal has one."""

    def __init__(self, folder: Path, *words: str) -> None:
        command = [sys.executable, "-m", "comine", "frequency", *words]
        self.popen = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def workers(self, least: int) -> list[int]:
        """The processes that send, once there are as many."""
        while True:
            assert self.popen.poll() is None
            own = Path(f"/proc/{self.popen.pid}/task/{self.popen.pid}/children").read_text().split()
            found = [int(pid) for pid in own if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
            if len(found) >= least:
                return found
            time.sleep(0.01)

    def ended(self) -> tuple[int, list[str]]:
        """Exit code and lines of standard error, which ends only once no process is left."""
        try:
            _, told = self.popen.communicate(timeout=END_S)
        finally:
            with_all = self.popen.poll() is None
            if with_all:
                os.killpg(self.popen.pid, signal.SIGKILL)
        return self.popen.returncode, told.splitlines()


SENDING = "sending 3,000,000 reports to 'loaded' at north"
linux = pytest.mark.skipif(sys.platform != "linux", reason="children are looked up in /proc")


@linux
@pytest.mark.parametrize("workers", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_ctrl_c_ends_all_processes_with_one_sentence(node: Deployed, workers: int) -> None:
    """It reaches all processes of a terminal, those that have only just begun as well."""
    running = Running(node.folder, *ENDLESS)
    running.workers(workers)
    os.killpg(running.popen.pid, signal.SIGINT)
    assert running.ended() == (50, [SENDING, "comine: interrupted (E500; comine explain E500)"])


def _node_dies(node: Deployed, running: Running) -> None:
    node.nodes[NODE].kill()


def _worker_dies(node: Deployed, running: Running) -> None:
    os.kill(running.workers(3)[1], signal.SIGKILL)


@linux
@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "code", "sentence"),
    [(_worker_dies, 10, "a worker process has died"), (_node_dies, 20, "north")],
)
def test_what_ends_in_the_midst_is_told(
    node: Deployed, fault: Callable[[Deployed, Running], None], code: int, sentence: str
) -> None:
    running = Running(node.folder, *ENDLESS)
    running.workers(3)
    time.sleep(1.0)  # most often in the midst of sending; before, the end is the same
    fault(node, running)
    found, told = running.ended()
    assert (found, len(told)) == (code, 2), told
    assert told[1].startswith("comine: ")
    assert sentence in told[1]
