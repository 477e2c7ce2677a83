"""Commands as processes of their own that have loaded already, since a node loads for longer than most tests need it.

One process for each that runs tests loads the commands once, and forks; what forks runs as one that has just started.
Tests of the quickstart, of the demo and of a start begin processes as users do, and so do tests that set variables,
since the interpreter and libraries read them as they load. Base transfers have groups in what forks where they have
in the test, `tests/base_transfers.py`.
"""

from __future__ import annotations

import atexit
import gc
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from jobs.kinds.packages import BUILT_IN
from tests.base_transfers import has_groups, without_groups

ROOT = Path(__file__).resolve().parents[2]
MODULES = (
    "comine.command",
    "party.cli",
    "party.server",
    "coordinator.cli.jobs.job",
    "coordinator.cli.terminal.live",
    "coordinator.cli.terminal.present",
    "coordinator.jobs.runner",
    "jinja2",
    "pandas",  # which pyarrow loads where it is installed, and which takes longest
    "scipy.optimize",
    "scipy.special",
)
ENVIRONMENT = {  # as comine.command sets it before it loads more
    "GRPC_VERBOSITY": "NONE",
    "OPENBLAS_NUM_THREADS": "1",
    "PYDANTIC_DISABLE_PLUGINS": "__all__",
}
NO_MATTER = ("PYTEST_", "KMP_")  # variables that pytest sets, and scikit-learn where a test imports it
OWN = {name: value for name, value in os.environ.items() if not name.startswith(NO_MATTER)}  # before any test
MOST_BYTES = 1 << 20  # of a request, which holds the environment

_asking = threading.Lock()


def begin(
    arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], *, preload: bool, release: str = ""
) -> Preloaded | subprocess.Popen[str]:
    """Starts a command, preloaded on Linux where its variables are those of before any test.

    Args:
        arguments: The command line, without the name of the program.
        cwd: Its folder.
        environment: Its variables, which may lack some.
        preload: Whether it may be preloaded at all.
        release: MODULE:FUNCTION that makes another release of comine out of the forked process; this one, if empty.
    """
    variables = {name: value for name, value in environment.items() if not name.startswith(NO_MATTER)}
    if preload and sys.platform == "linux" and variables.items() <= OWN.items():
        return Preloaded(arguments, cwd, environment, release)
    assert not release, "another release is made of what is preloaded"
    command, pipe = [sys.executable, "-m", "comine", *arguments], subprocess.PIPE
    return subprocess.Popen(command, cwd=cwd, env=environment, text=True, stdout=pipe, stderr=pipe)


class Preloaded:
    """A running command, which is waited for and killed as a `subprocess.Popen` is.

    Args:
        arguments: The command line, without the name of the program.
        cwd: Its folder.
        environment: Its variables.
        release: As of `begin`.
    """

    def __init__(self, arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], release: str = "") -> None:
        request = {
            "arguments": list(arguments),
            "cwd": os.fspath(cwd),
            "environment": dict(environment),
            "release": release,
            "groups": has_groups(),
        }
        pipes = [os.pipe() for _ in range(3)]  # standard output, standard error, the exit code
        with _asking:
            server = forking()
            socket.send_fds(server, [json.dumps(request).encode()], [written for _, written in pipes])
            answer = server.recv(32)
        for _, written in pipes:
            os.close(written)
        out, err, self._ended = (read for read, _ in pipes)
        assert answer, "nothing forks; see what python -c 'from tests.integration.preloaded import load; load()' says"
        self.pid = int(answer)
        self.stdout = open(out, encoding="utf-8")  # noqa: SIM115 - whoever reads closes it
        self.stderr = open(err, encoding="utf-8")  # noqa: SIM115
        self.returncode: int | None = None

    def __del__(self) -> None:
        os.close(self._ended)

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        return self._code(0)

    def wait(self, timeout: float | None = None) -> int:
        """The exit code once it has one."""
        code = self._code(None if timeout is None else timeout * 1000)
        if code is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(str(self.pid), timeout)
        return code

    def send_signal(self, number: int) -> None:
        """Sends a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Ends it at once."""
        self.send_signal(signal.SIGKILL)

    def _code(self, timeout_ms: float | None) -> int | None:
        if self.returncode is None:
            poll = select.poll()
            poll.register(self._ended, select.POLLIN)
            if poll.poll(timeout_ms):
                self.returncode = int(os.read(self._ended, 32))
        return self.returncode


@cache
def forking() -> socket.socket:
    """Starts what loads and forks; it ends with this process.

    A request is a JSON object with `arguments`, `cwd` and `environment`, and the descriptors of standard output,
    standard error, perhaps standard input, and of what is told the exit code; with `groups` false its base transfers
    have none. The answer is the process id.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        script = f"from tests.integration.preloaded import serve; serve({theirs.fileno()})"
        process = subprocess.Popen(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env=os.environ | ENVIRONMENT,
            pass_fds=[theirs.fileno()],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def load() -> None:
    """Loads the commands, and what nodes and coordinators load for jobs."""
    for module in MODULES:
        import_module(module)
    for package in dict.fromkeys(BUILT_IN.values()):
        import_module(f"{package}.kind")


def serve(number: int) -> None:
    """Forks a process for each request that comes over a socket, until nobody is at its other end.

    Args:
        number: The socket's descriptor.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # its children are waited for by nobody
    load()
    gc.collect()
    gc.freeze()  # what is not looked through is not copied
    connection = socket.socket(fileno=number)
    while True:
        request, descriptors, _, _ = socket.recv_fds(connection, MOST_BYTES, 4)
        if not request:
            return
        if os.fork() == 0:
            _keep(json.loads(request), descriptors, connection)
        for descriptor in descriptors:
            os.close(descriptor)


def _keep(request: Mapping[str, Any], descriptors: Sequence[int], connection: socket.socket) -> None:
    """Forks the command, and stays beside it to tell how it ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, ended = descriptors
    pid = os.fork()
    if pid == 0:
        connection.close()
        os.close(ended)
        _become(request, streams)
    connection.send(str(pid).encode())
    connection.close()
    for stream in streams:
        os.close(stream)
    _, status = os.waitpid(pid, 0)
    os.write(ended, str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _become(request: Mapping[str, Any], streams: Sequence[int]) -> None:
    """Runs the command as `python -m comine` does."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for stream, number in zip(streams, (1, 2, 0), strict=False):
        os.dup2(stream, number)
        os.close(stream)
    through = "PYTHONUNBUFFERED" in request["environment"]
    out = open(1, "wb", 0 if through else -1, closefd=False)  # noqa: SIM115
    sys.stdout = io.TextIOWrapper(out, encoding="utf-8", write_through=through)
    sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[0] = request["cwd"]
    sys.argv = ["comine", *request["arguments"]]
    if not request.get("groups", True):
        without_groups(pytest.MonkeyPatch())
    if request.get("release"):
        module, _, function = request["release"].partition(":")
        getattr(import_module(module), function)()
    try:
        import_module("comine.__main__").main()  # which ends the process itself
    except SystemExit as end:
        os._exit(int(end.code or 0))
    finally:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        os._exit(1)
