"""A real PostgreSQL server, on a socket in a folder of its own, as Debian's package `postgresql` brings it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

PASSWORD = "one & only:/?#"  # with signs that mean something in URLs
USER = "ann"


@dataclass(frozen=True)
class PostgresServer:
    """The server.

    Attributes:
        folder: With its socket.
    """

    folder: Path

    @property
    def url(self) -> str:
        """Of its database, without a password."""
        return f"postgres://{USER}@/postgres?host={self.folder}"

    def run(self, *statements: str) -> None:
        """Runs statements, in one transaction."""
        from adbc_driver_postgresql import dbapi

        password = "one%20%26%20only%3A%2F%3F%23"
        with dbapi.connect(f"{self.url}&password={password}") as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            connection.commit()


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Runs a server, as another user where this one is root, as whom PostgreSQL does not run."""
    pytest.importorskip("adbc_driver_postgresql", reason="there is no driver of PostgreSQL; `make setup` installs it")
    programs = [_program("initdb"), _program("postgres")]
    user = "nobody" if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="pg-"))  # a socket's path has at most some 100 characters
    (folder / "password").write_text(PASSWORD)
    if user is not None:
        for each in (folder, folder / "password"):
            shutil.chown(each, user)
    data, log = folder / "data", folder / "log"
    begin = {"user": user, "cwd": folder, "env": {"PATH": os.environ["PATH"], "LC_ALL": "C"}}
    try:
        initdb = [programs[0], "-D", data, "-U", USER, "--pwfile", folder / "password", "-A", "scram-sha-256"]
        subprocess.run([*initdb, "--no-sync", "-E", "UTF8"], check=True, capture_output=True, **begin)
        command = [programs[1], "-D", data, "-k", folder, "-h", "", "-F"]
        with log.open("wb") as told, subprocess.Popen(command, stderr=told, **begin) as server:
            try:
                while "ready to accept connections" not in log.read_text():
                    assert server.poll() is None, log.read_text()
                    time.sleep(0.02)
                yield PostgresServer(folder)
            finally:
                server.send_signal(signal.SIGINT)  # ends open connections, too
                server.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _program(name: str) -> str:
    debian = (str(each) for each in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True))
    found = shutil.which(name) or next((each for folder in debian if (each := shutil.which(name, path=folder))), None)
    if found is None:
        pytest.skip("there is no PostgreSQL server; Debian's package postgresql brings one")
    return found
