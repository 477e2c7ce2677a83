"""A federation whose nodes and coordinator are processes of their own, as users run them."""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

from comine.command import run
from jobs.federation import Federation
from link.pki.authority import Authority, write_identity
from tests.guarded import ITEM
from tests.integration.preloaded import begin
from tests.party.files import write_federation

START_S = 120.0  # generous: machines are shared
END_S = 240.0

JOB = """[job]
name = "weekly"
task = "itemsets"
parties = {parties}
dataset = "baskets"
deadline = "{deadline}"
recipients = {recipients}
[itemsets]
min_support = {min_support}
{more}
"""


class Ran(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The one line in which the command says what went wrong, after notes of who could not be reached meanwhile."""
        *notes, line = self.err.splitlines()
        assert all(
            re.search(r" cannot be reached since .+; trying again until [-: \d]+$| can be reached again$", n)
            for n in notes
        )
        assert re.fullmatch(r"comine: .+ \(E\d{3}; comine .+\)", line), line
        return line


class Process:
    """A running command whose standard error is read as it comes.

    Args:
        arguments: The command line, without the name of the program.
        cwd: Its folder.
        preload: Whether it may be forked from a process that has loaded already.
        release: As of `tests.integration.preloaded.begin`.
    """

    def __init__(self, *arguments: object, cwd: Path, preload: bool = True, release: str = "") -> None:
        environment = {k: v for k, v in os.environ.items() if k not in ("COMINE_DEBUG", "GRPC_VERBOSITY")}
        self.popen = begin(
            [str(argument) for argument in arguments], cwd, environment, preload=preload, release=release
        )
        self.lines: list[str] = []
        self._more = threading.Condition()
        self._over = False
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.popen.stderr is not None
        for line in self.popen.stderr:
            with self._more:
                self.lines.append(line.rstrip("\n"))
                self._more.notify_all()
        with self._more:
            self._over = True
            self._more.notify_all()

    def until(self, *words: str, after: int = 0, timeout_s: float = START_S) -> str:
        """The first line from number `after` on that holds any of `words`."""

        def found() -> str | None:
            return next((line for line in self.lines[after:] if any(word in line for word in words)), None)

        with self._more:
            assert self._more.wait_for(lambda: found() is not None or self._over, timeout_s), (words, self.lines)
            line = found()
        assert line is not None, (words, self.lines)
        return line

    def send(self, number: signal.Signals) -> None:
        """Sends a signal."""
        self.popen.send_signal(number)

    def end(self, timeout_s: float = END_S) -> Ran:
        """Waits for the end."""
        self.popen.wait(timeout_s)
        return self._ended()

    def kill(self) -> None:
        """Ends the process at once, if it still runs; for the end of a test."""
        self.popen.kill()
        self.popen.wait()
        self._ended()

    def _ended(self) -> Ran:
        assert self.popen.stdout is not None
        assert self.popen.stderr is not None
        self._reader.join()
        out = "" if self.popen.stdout.closed else self.popen.stdout.read()
        self.popen.stdout.close()
        self.popen.stderr.close()
        ran = Ran(self.popen.returncode, out, "".join(line + "\n" for line in self.lines))
        assert "Traceback" not in ran.err, ran.err
        assert not any(ITEM.search(line) for line in self.lines if line.startswith("{")), self.lines  # a node's log
        return ran


def comine(*arguments: object, cwd: Path) -> Ran:
    """Runs a command to its end."""
    return Process(*arguments, cwd=cwd).end()


def command(*arguments: object, cwd: Path) -> Ran:
    """Runs a command to its end inside the test's process, which spares the start of an interpreter.

    For commands that stand beside the processes that a test is about: those that ask, show and verify.
    """
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as out,
        tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as err,
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(cwd)
            patch.delenv("COMINE_DEBUG", raising=False)
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            code = run([str(argument) for argument in arguments])
        out.seek(0)
        err.seek(0)
        ran = Ran(code, out.read(), err.read())
    assert "Traceback" not in ran.err, ran.err
    return ran


@dataclass
class Organisations:
    """Files of a federation, its running nodes, and the commands of its coordinator."""

    folder: Path
    data: Mapping[str, Sequence[Sequence[str]]]
    authority: Authority
    nodes: dict[str, Process] = field(default_factory=dict)

    @classmethod
    def create(
        cls, folder: Path, data: Mapping[str, Sequence[Sequence[str]]], *, policy: str = "", party: str = ""
    ) -> Organisations:
        """Writes the files; nothing runs yet."""
        authority = write_federation(folder, dict(data), policy=policy, party=party)
        write_identity(authority.issue("hub", "coordinator"), folder / "pki")
        with (folder / "federation.toml").open("a") as file:
            file.write('[coordinator]\nca = "pki/ca.crt"\ncertificate = "pki/hub.crt"\nkey = "pki/hub.key"\n')
        return cls(folder, data, authority)

    @property
    def addresses(self) -> dict[str, str]:
        return Federation.load(self.folder / "federation.toml").addresses

    def write(self, name: str, contents: str) -> Path:
        """A file in the folder."""
        path = self.folder / name
        path.write_text(contents, encoding="utf-8")
        return path

    def start(self, *names: str, release: str = "") -> None:
        """Starts the named nodes, or all, and waits until they are ready."""
        for name in names or tuple(self.data):
            self.nodes[name] = Process("party", "serve", f"{name}.toml", cwd=self.folder, release=release)
        for name in names or tuple(self.data):
            self.nodes[name].until(" is ready at ")

    def stop(self) -> None:
        """Ends all nodes."""
        for node in self.nodes.values():
            if node.popen.poll() is None:
                node.send(signal.SIGCONT)
                node.send(signal.SIGTERM)
        for node in self.nodes.values():
            try:
                if node.popen.poll() is None:
                    node.end(START_S)
            finally:
                node.kill()

    def job(
        self,
        name: str = "job.toml",
        *,
        parties: Sequence[str] = (),
        min_support: str = "0.2",
        deadline: str = "5m",
        recipients: str = '["coordinator"]',
        more: str = "",
    ) -> Path:
        """Writes a job file."""
        named = "[" + ", ".join(f'"{party}"' for party in parties or self.data) + "]"
        contents = JOB.format(
            parties=named, min_support=min_support, deadline=deadline, recipients=recipients, more=more
        )
        (self.folder / name).write_text(contents)
        return self.folder / name

    def begin(self, job: Path | str, out: str = "out", *more: str, release: str = "") -> Process:
        """Starts `comine job run`, in one attempt unless more are asked for."""
        command = ("job", "run", job, "--federation", "federation.toml", "--out", out, "--retries", "0", *more)
        return Process(*command, cwd=self.folder, release=release)

    def run(self, job: Path | str, out: str = "out", *more: str) -> Ran:
        """Runs a job to its end."""
        return self.begin(job, out, *more).end()

    def complete(self, job: str) -> None:
        """Runs a job that succeeds, with nodes that run for nothing else."""
        try:
            self.start()
            ran = self.run(job)
            assert ran.code == 0, ran.err
        finally:
            self.stop()

    def run_here(self, job: Path | str = "job.toml", out: str = "out", federation: str = "federation.toml") -> Ran:
        """Runs a job to its end inside the test's process, where the nodes are what is tested."""
        return command("job", "run", job, "--federation", federation, "--out", out, cwd=self.folder)
