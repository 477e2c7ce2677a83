"""A server that speaks as S3 does: moto's, from an environment of its own, since it needs another `python-dateutil`."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from pyarrow import fs

ROOT = Path(__file__).resolve().parents[1]
SERVER = ROOT / ".venv-s3" / "bin" / "moto_server"


class S3Server:
    """The server.

    Args:
        port: On this machine.

    Attributes:
        options: What the URL of a source needs behind its `?`.
    """

    def __init__(self, port: int) -> None:
        self.options = f"endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
        self._store = fs.S3FileSystem(
            access_key="key",
            secret_key="word",
            endpoint_override=f"127.0.0.1:{port}",
            scheme="http",
            region="us-east-1",
            allow_bucket_creation=True,
        )

    def put(self, place: str, data: bytes) -> None:
        """Stores a file, `BUCKET/KEY`."""
        self._store.create_dir(place.partition("/")[0])
        with self._store.open_output_stream(place) as stream:
            stream.write(data)

    def url(self, place: str) -> str:
        """The source that names a file."""
        return f"s3://{place}?{self.options}"


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    """Runs a server, with nothing in it."""
    if not SERVER.exists():
        pytest.skip("there is no .venv-s3; `make .venv-s3/.installed` makes it")
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    with (folder / "s3.log").open("wb") as log:
        command = [str(SERVER), "-H", "127.0.0.1", "-p", str(port)]
        with subprocess.Popen(command, stdout=log, stderr=log, env=inherited) as server:
            try:
                while not _answers(port):
                    assert server.poll() is None, (folder / "s3.log").read_text()
                    time.sleep(0.1)
                yield S3Server(port)
            finally:
                server.terminate()


def _answers(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/moto-api/", timeout=5):
            return True
    except (URLError, OSError):
        return False
