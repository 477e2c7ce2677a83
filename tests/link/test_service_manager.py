"""What a service manager is told, at a socket as systemd has one."""

from __future__ import annotations

import os
import re
import secrets
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from link.runtime.service_manager import PLACE, ServiceManager


@contextmanager
def manager(place: str) -> Iterator[socket.socket]:
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as listening:
        listening.bind(place)
        yield listening


def test_it_is_told_how_a_process_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = str(tmp_path / "notify")
    monkeypatch.setenv(PLACE, place)
    with manager(place) as listening:
        told = ServiceManager.of_environment()
        assert PLACE not in os.environ
        told.ready()
        assert listening.recv(1024) == b"READY=1"
        with pytest.raises(ZeroDivisionError), told.reloading():
            raise ZeroDivisionError
        assert re.fullmatch(rb"RELOADING=1\nMONOTONIC_USEC=\d+", listening.recv(1024))
        assert listening.recv(1024) == b"READY=1"
        told.stopping()
        assert listening.recv(1024) == b"STOPPING=1"


def test_an_abstract_name_is_one() -> None:
    name = f"comine-{secrets.token_hex(8)}"
    with manager(f"\0{name}") as listening:
        ServiceManager(f"@{name}").ready()
        assert listening.recv(1024) == b"READY=1"


def test_who_does_not_read_or_is_gone_holds_nobody_up(tmp_path: Path) -> None:
    place = str(tmp_path / "notify")
    told = ServiceManager(place)
    told.ready()
    with manager(place):
        for _ in range(10_000):
            told.ready()
    told.ready()
    ServiceManager().ready()
