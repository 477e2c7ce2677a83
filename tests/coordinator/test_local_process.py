"""The process that listens at an address of this machine."""

from __future__ import annotations

import os
import socket
import sys

import pytest

from coordinator.demo.local_process import peak_bytes, process_at

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it is read from /proc")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_who_listens_is_found(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip(f"this machine has no {host}")
    with listening:
        port = listening.getsockname()[1]
        assert process_at(f"[{host}]:{port}" if ":" in host else f"{host}:{port}") == os.getpid()
    assert process_at(f"127.0.0.1:{port}") is None


def test_another_machine_has_none_here() -> None:
    assert process_at("192.0.2.1:7101") is None
    assert process_at("north.example:7101") is None


def test_the_peak_of_memory() -> None:
    peak = peak_bytes(os.getpid())
    assert peak is not None
    assert peak > 1 << 20
    assert peak_bytes(1 << 30) is None
