"""A run of tests by several processes: one collects all tests, and what it forks takes file after file.

Loading and collecting take longer than a hundred files of tests, so that no worker does them again. A worker that dies
ends the run, which has then failed; those beside it finish the file that they are at.

    python -m pytest -p tests.workers --workers=3
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from itertools import pairwise
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

import pytest

Location = tuple[str, int | None, str]
FORK = multiprocessing.get_context("fork")


def pytest_addoption(parser: pytest.Parser) -> None:
    """How many."""
    parser.addoption("--workers", type=int, default=1, help="processes that take files of tests")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Runs the tests by workers, unless one is enough."""
    number = session.config.getoption("workers")
    if number < 2 or session.config.option.collectonly or session.testsfailed:
        return None
    Run(session).by_workers(number)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
    return True


class Run:
    """The files of a session, which workers take in their order.

    Args:
        session: After its collection.
    """

    def __init__(self, session: pytest.Session) -> None:
        self.session = session
        by_file: dict[Any, list[pytest.Item]] = {}
        for item in session.items:
            by_file.setdefault(item.path, []).append(item)
        self.files = list(by_file.values())
        self.left = iter(range(len(self.files)))
        self.running: dict[Connection, tuple[str, Location]] = {}

    def by_workers(self, number: int) -> None:
        """Returns when all tests have run, or enough have failed."""
        workers: dict[Connection, BaseProcess] = {}
        try:
            for place in range(number):
                ours, theirs = FORK.Pipe()
                worker = FORK.Process(target=self._work, args=(place, theirs, [*workers, ours]))
                worker.start()
                theirs.close()
                workers[ours] = worker
            busy = dict(workers)
            while busy:
                ready = wait(list(busy), timeout=1)
                # What a test has forked may hold the pipe of a worker that is dead.
                dead = [each for each, worker in busy.items() if worker.exitcode is not None and not each.poll()]
                for connection in {*ready, *dead}:
                    assert isinstance(connection, Connection)
                    if connection in dead or not self._hear(connection):
                        self._end(connection, busy.pop(connection))
        finally:
            for connection, worker in workers.items():
                connection.close()
                worker.join()

    def _hear(self, connection: Connection) -> bool:
        """One message of a worker; False once there are no more."""
        try:
            kind, *those = connection.recv()
        except (EOFError, ConnectionResetError):
            return False
        hook = self.session.ihook
        if kind == "next":
            over = self.session.shouldfail or self.session.shouldstop
            connection.send(None if over else next(self.left, None))
        elif kind == "start":
            nodeid, location = self.running[connection] = those[0], those[1]
            hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
        elif kind == "report":
            config = self.session.config
            report = config.hook.pytest_report_from_serializable(config=config, data=those[0])
            hook.pytest_runtest_logreport(report=report)
        else:
            nodeid, location = self.running.pop(connection)
            hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)
        return True

    def _end(self, connection: Connection, worker: BaseProcess) -> None:
        """A worker has sent its last."""
        worker.join()
        if worker.exitcode == 0:
            return
        said = f"a worker ended with code {worker.exitcode}"
        if connection in self.running:
            nodeid, location = self.running.pop(connection)
            said += f" while it ran {nodeid!r}"
            report = pytest.TestReport(nodeid, location, {}, "failed", said, "call")
            self.session.ihook.pytest_runtest_logreport(report=report)
        self.session.shouldfail = said

    def _work(self, place: int, connection: Connection, others: list[Connection]) -> None:
        """What a worker does: it asks for a file before the last test of another, to see which fixtures stay."""
        for other in others:
            other.close()
        session, config = self.session, self.session.config
        config.workerinput = {"workerid": f"w{place}"}  # type: ignore[attr-defined] - by which plugins know workers
        config.option.basetemp = str(config._tmp_path_factory.getbasetemp() / f"w{place}")  # type: ignore[attr-defined]
        plugins = config.pluginmanager
        plugins.get_plugin("tmpdir").pytest_configure(config)  # type: ignore[union-attr]
        plugins.unregister(name="terminalreporter")
        capture: Any = plugins.get_plugin("capturemanager")
        capture.stop_global_capturing()  # its files are those of the process that collected
        capture.start_global_capturing()
        capture.suspend_global_capture()
        plugins.register(Sender(connection, config))
        try:
            for item, following in self._given(connection):
                config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        finally:
            config.hook.pytest_sessionfinish(session=session, exitstatus=0)

    def _given(self, connection: Connection) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
        """A worker's tests, each with the next."""

        def ask() -> int | None:
            connection.send(("next",))
            answer: int | None = connection.recv()
            return answer

        number = ask()
        while number is not None:
            items = self.files[number]
            yield from pairwise(items)
            number = ask()
            yield items[-1], None if number is None else self.files[number][0]


class Sender:
    """Tells the process that collected how tests go.

    Args:
        connection: To it.
        config: Of the session.
    """

    def __init__(self, connection: Connection, config: pytest.Config) -> None:
        self._connection = connection
        self._config = config

    def pytest_runtest_logstart(self, nodeid: str, location: Location) -> None:
        """A test begins."""
        self._connection.send(("start", nodeid, location))

    @pytest.hookimpl(trylast=True)  # after plugins have written into it
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """How a part of it went."""
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._connection.send(("report", data))

    def pytest_runtest_logfinish(self, nodeid: str, location: Location) -> None:
        """It is over."""
        self._connection.send(("finish",))
