"""Whoever opens a client's file a second time takes no lock off it that the first one holds."""

from __future__ import annotations

import stat
import subprocess
import sys
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from client import database
from client.store import ClientStore
from tests.errors import fails

WRITE = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')"


def test_a_transaction_keeps_other_processes_away_though_its_file_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "client.db"
    with closing(ClientStore.open_file(path)) as store:
        monkeypatch.setattr(database, "BUSY_S", 0.1)
        with store.transaction():
            with fails("E103"):
                ClientStore.open_file(path)
            other = subprocess.run([sys.executable, "-c", WRITE, str(path)], capture_output=True, text=True, timeout=60)
            assert "database is locked" in other.stderr


@pytest.mark.parametrize("damaged", ["1e999999999", "1e-999999999", "much", "1/0"])
def test_a_charge_is_no_number_that_fills_the_memory(tmp_path: Path, damaged: str) -> None:
    path = tmp_path / "client.db"
    with closing(ClientStore.open_file(path)) as store:
        store.charge(10.0, b"c", Fraction(1), 0.0)
        store.execute("UPDATE charges SET epsilon = ?", damaged)
        with fails("E100"):
            store.spent(0.0)


def test_a_file_that_is_there_is_made_private_and_a_folder_is_told(tmp_path: Path) -> None:
    path = tmp_path / "client.db"
    ClientStore.open_file(path).close()
    path.chmod(0o644)
    ClientStore.open_file(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with fails("E103"):
        ClientStore.open_file(tmp_path)
