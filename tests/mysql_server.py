"""A real MariaDB server, on a socket and a port, with TLS, as Debian's package `mariadb-server` brings it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from link.pki.authority import Authority, write_identity

PASSWORD = "one & only:/?#"  # with signs that mean something in URLs
USER = "ann"


@dataclass(frozen=True)
class MySqlServer:
    """The server.

    Attributes:
        folder: With its socket, and its certificate's authority, `ca.crt`.
        port: On 127.0.0.1.
    """

    folder: Path
    port: int

    @property
    def url(self) -> str:
        """Of its database, by the socket, without a password."""
        return f"mysql://{USER}@/shop?unix_socket={self.folder / 'socket'}"

    @property
    def tls_url(self) -> str:
        """Of its database, by the port, with its certificate checked."""
        return f"mysql://{USER}@127.0.0.1:{self.port}/shop?ssl-ca={self.folder / 'ca.crt'}"

    def run(self, *statements: str) -> None:
        """Runs statements as one who may do all."""
        import pymysql

        with (
            pymysql.connect(unix_socket=str(self.folder / "socket"), user="root", database="shop") as connection,
            connection.cursor() as cursor,
        ):
            for statement in statements:
                cursor.execute(statement)
            connection.commit()


@contextmanager
def mysql_server() -> Iterator[MySqlServer]:
    """Runs a server, as another user where this one is root."""
    pytest.importorskip("pymysql", reason="there is no PyMySQL; `make setup` installs it")
    install, program = _program("mariadb-install-db"), _program("mariadbd")
    folder = Path(tempfile.mkdtemp(prefix="my-"))  # a socket's path has at most some 100 characters
    user = "nobody" if os.geteuid() == 0 else None
    authority = Authority.create()
    authority.write(folder)
    write_identity(authority.issue("site", hosts=["127.0.0.1"]), folder)
    if user is not None:
        for each in (folder, *folder.iterdir()):
            shutil.chown(each, user)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    begin = {"user": user, "cwd": folder, "env": {"PATH": os.environ["PATH"], "LC_ALL": "C"}}
    usual = ["--no-defaults", f"--datadir={folder / 'data'}"]
    small = ["--innodb-buffer-pool-size=8M", "--innodb-log-file-size=4M", "--innodb-flush-log-at-trx-commit=0"]
    try:
        made = [install, *usual, "--auth-root-authentication-method=normal", "--skip-test-db", *small]
        subprocess.run(made, check=True, capture_output=True, **begin)
        tls = [f"--ssl-ca={folder / 'ca.crt'}", f"--ssl-cert={folder / 'site.crt'}", f"--ssl-key={folder / 'site.key'}"]
        at = [f"--socket={folder / 'socket'}", f"--port={port}", "--bind-address=127.0.0.1", f"--pid-file={folder}/pid"]
        log = folder / "log.err"  # a name without a dot gets one
        command = [program, *usual, *at, *tls, *small, f"--log-error={log}", "--character-set-server=latin1"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **begin) as server:
            try:
                while not log.exists() or "ready for connections" not in log.read_text():
                    assert server.poll() is None, log.read_text() if log.exists() else "it did not start"
                    time.sleep(0.02)
                yield _prepared(MySqlServer(folder, port))
            finally:
                server.terminate()
                server.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _prepared(server: MySqlServer) -> MySqlServer:
    import pymysql

    with (
        pymysql.connect(unix_socket=str(server.folder / "socket"), user="root") as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("CREATE DATABASE shop CHARACTER SET latin1")
        cursor.execute("CREATE DATABASE cellar")
        cursor.execute(f"CREATE USER '{USER}'@'%%' IDENTIFIED BY %s", (PASSWORD,))
        cursor.execute(f"GRANT ALL ON shop.* TO '{USER}'@'%'")
    return server


def _program(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        pytest.skip("there is no MariaDB server; Debian's package mariadb-server brings one")
    return found
