"""A database that is closed while another thread uses it: the thread gets a sentence, and the process goes on."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from link.errors import ComineError
from party.state.database import translated
from tests.errors import fails

pytestmark = pytest.mark.turn(3)

SCRIPT = """
import sys, threading
from pathlib import Path
from client.store import ClientStore
from link.errors import ResourceError
from party.services.anonymization.releases import Releases
from party.services.queries.log import QueryLog

def use(database):
    match database:
        case Releases():
            database.fail("d", b"r", "hub"), database.counted("d")
        case QueryLog():
            database.auditor("d", "c"), database.head
        case ClientStore():
            with database.transaction():
                database.execute("SELECT count(*) FROM sqlite_master").fetchall()

def opened(name, path):
    match name:
        case "releases":
            return Releases.open(path, "north")
        case "queries":
            return QueryLog.open(path)
        case "client":
            return ClientStore.open_file(path)

def hammer(database, told):
    try:
        while True:
            use(database)
    except ResourceError as error:
        told.append(error.message)

for number in range(40):
    database, told = opened(sys.argv[1], Path(sys.argv[2]) / f"{number}.db"), []
    threads = [threading.Thread(target=hammer, args=(database, told)) for _ in range(4)]
    for thread in threads:
        thread.start()
    threading.Event().wait(0.005)
    database.close()
    for thread in threads:
        thread.join()
    assert len(told) == 4, told
    assert all("closed" in each and "damaged" not in each for each in told), told
"""


@pytest.mark.parametrize("name", ["releases", "queries", "client"])
def test_a_database_that_is_closed_while_threads_use_it_does_not_end_the_process(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, name, str(tmp_path)],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_closed_database_is_not_called_damaged(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "x.db")
    connection.close()
    with fails("E103") as caught, translated(tmp_path / "x.db", "job", "move it away"):
        connection.execute("SELECT 1")
    assert isinstance(caught.value, ComineError)
    assert "damaged" not in caught.value.message


def test_damage_that_sqlite_quotes_in_several_lines_is_told_in_one(tmp_path: Path) -> None:
    path = tmp_path / "node.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE asked (service TEXT,\n\tPRIMARY KEY (service)\n) WITHOUT ROWID")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            """UPDATE sqlite_master SET sql = 'CREATE TABLE asked (service TEXT,\n"(service)\n) WITHOUT'"""
        )
        connection.commit()
    with fails("E100") as failed, translated(path, "job", "move it away"), closing(sqlite3.connect(path)) as connection:
        connection.execute("SELECT * FROM asked")
    assert failed.value.message.isprintable()
