"""The units of systemd: what systemd itself says of them, and what a node and a relay say to it."""

from __future__ import annotations

import configparser
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from link.pki.authority import Authority
from tests.party.files import free_ports, write_federation
from tests.party.nodes import DATA
from tests.relay.relays import by_relay

pytestmark = pytest.mark.turn(2)

UNITS = Path(__file__).resolve().parents[2] / "deploy" / "systemd"
FILES = sorted(UNITS.glob("*.service"))
MOST_EXPOSED = 20  # tenths, of what `systemd-analyze security` calls exposure: 0 to 100
SET_MDWE, REFUSE_EXEC_GAIN = 65, 1  # of prctl(2), which is what MemoryDenyWriteExecute does

systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")


def test_both_have_units() -> None:
    assert [file.name for file in FILES] == ["comine-party.service", "comine-relay.service"]


@systemd
@pytest.mark.parametrize("unit", FILES, ids=lambda file: file.stem)
def test_systemd_understands_every_line(unit: Path, tmp_path: Path) -> None:
    program = tmp_path / "comine"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text().replace("/usr/local/bin/comine", str(program)))
    ran = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, timeout=60)
    assert [line for line in ran.stderr.splitlines() if str(copy) in line or unit.name in line] == []


@systemd
@pytest.mark.parametrize("unit", FILES, ids=lambda file: file.stem)
def test_little_is_exposed(unit: Path) -> None:
    command = ["systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSED}", "--no-pager", str(unit)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if "unrecognized option" in ran.stderr:
        pytest.skip("this systemd does not analyse files")
    assert ran.returncode == 0, ran.stdout


@contextmanager
def service_manager(folder: Path) -> Iterator[tuple[socket.socket, dict[str, str]]]:
    """A socket as that of systemd, and the environment that names it."""
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as listening:
        listening.bind(place := str(folder / "notify"))
        listening.settimeout(120)
        yield listening, {**os.environ, "NOTIFY_SOCKET": place}


def as_in_the_unit() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0)  # kernels before 6.3 do not know it


def told(folder: Path, *arguments: str) -> None:
    """Runs a service to its end, which tells its manager when it is ready, reads its files anew, and stops."""
    with (
        service_manager(folder) as (listening, environment),
        subprocess.Popen(
            [sys.executable, "-m", "comine", *arguments],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=as_in_the_unit,
        ) as process,
    ):
        try:
            assert listening.recv(1024) == b"READY=1"
            process.send_signal(signal.SIGHUP)
            assert listening.recv(1024).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
            assert listening.recv(1024) == b"READY=1"
            process.terminate()
            assert listening.recv(1024) == b"STOPPING=1"
            _, log = process.communicate()
            assert process.returncode == 0, log
        finally:
            process.kill()


@pytest.mark.slow
def test_a_node_tells_systemd_how_it_is(tmp_path: Path) -> None:
    write_federation(tmp_path, DATA)
    told(tmp_path, "party", "serve", str(tmp_path / "north.toml"))


@pytest.mark.slow
def test_a_relay_tells_systemd_how_it_is(tmp_path: Path) -> None:
    authority: Authority = write_federation(tmp_path, DATA)
    by_relay(tmp_path, *free_ports(1))(authority)
    told(tmp_path, "relay", "serve", str(tmp_path / "relay.toml"))


def test_units_begin_commands_that_exist() -> None:
    for unit in FILES:
        parser = configparser.RawConfigParser(strict=False, interpolation=None)
        parser.optionxform = str  # type: ignore[assignment,method-assign]
        parser.read_string(unit.read_text())
        service = parser["Service"]
        assert service["Type"] == "notify"
        program, *arguments = service["ExecStart"].split()
        assert program == "/usr/local/bin/comine"
        ran = subprocess.run(
            [sys.executable, "-m", "comine", *arguments[:-1], "--help"], capture_output=True, timeout=60
        )
        assert ran.returncode == 0
