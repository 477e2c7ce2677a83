from __future__ import annotations

import asyncio
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from ldp.aggregator import Aggregator
from party.services.frequency.intake import Intake
from party.services.frequency.storage import writer
from party.services.frequency.storage.records import Counters
from party.services.frequency.storage.store import FrequencyStore
from tests.errors import fails
from tests.party.services.frequency.storage.storing import (
    GRR,
    a_round,
    collection,
    on_disk,
    opened,
    pseudonyms,
    reports,
    store_in,
    tally,
)


def test_the_database_is_for_its_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    path = tmp_path / "state" / "frequency.db"
    store = FrequencyStore.open(path)
    store.create(collection())
    files = sorted(file.name for file in path.parent.iterdir())
    assert files == ["frequency.db", "frequency.db-shm", "frequency.db-wal", "frequency.lock"]
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    store.close()
    path.chmod(0o644)
    FrequencyStore.open(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_collections_are_read_after_a_restart(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    first, second = collection("first"), collection("second", labels=b"", state=b"begun")
    store.create(first)
    store.create(second)
    with fails("E100"):
        store.create(collection("first", id=b"j" * 16))
    store.close()
    store = store_in(tmp_path)
    assert store.collections() == [first, second]
    store.close_collection("first", 9.0)
    assert [each.closed for each in store.collections()] == [9.0, None]
    store.close()


def test_rounds_and_the_schedule_go_together(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.create(collection())
    first = a_round(0, closes=5.5, share="1/20", purpose="dissimilarity", step=3)
    store.open_round("homepages", first, b"state 1")
    with fails("E100"):
        store.open_round("homepages", a_round(0), b"state 2")
    with fails("E100"):
        store.open_round("other", a_round(0), b"state 2")
    assert store.rounds("homepages") == [first]
    assert store.collections()[0].state == b"state 1"
    store.end_round("homepages", 0, 6.0, b"tally", b"result", b"state 2")
    (ended,) = store.rounds("homepages")
    assert (ended.ended, ended.tally, ended.result) == (6.0, b"tally", b"result")
    assert store.rounds("homepages", states=False)[0].tally == b""
    assert store.round("homepages", 0) == ended
    assert store.round("homepages", 1) is None
    assert store.collections()[0].state == b"state 2"
    with fails("E100"):
        store.end_round("homepages", 0, 6.0, b"", b"", b"")
    store.close()


def swept(tmp_path: Path) -> bool:
    """Returns once the tags of periods that are over have gone."""
    while on_disk(tmp_path, "SELECT * FROM taken WHERE period NOT IN (SELECT row FROM periods)"):
        time.sleep(0.01)
    return True


def take(intake: Intake, clients: range, submitter: str = "fleet") -> list[int]:
    async def run() -> list[int]:
        return (await intake.submit(submitter, pseudonyms(clients), reports(clients), 1 << 20)).tolist()

    return asyncio.run(run())


def test_who_took_part_is_forgotten_with_the_period(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    intake = opened(store)
    take(intake, range(100))
    (key,) = secrets = [row[0] for row in on_disk(tmp_path, "SELECT key FROM periods")]
    assert secrets
    assert key in b"".join(file.read_bytes() for file in tmp_path.iterdir())
    intake.stop()
    store.end_round("homepages", 0, 2.0, intake.aggregator().to_bytes(), b"", b"")
    assert swept(tmp_path)
    for table in ("periods", "segments", "taken"):
        assert on_disk(tmp_path, f"SELECT * FROM {table}") == []
    assert key not in b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert len(Aggregator.from_bytes(store.rounds("homepages")[0].tally, GRR)) == 100
    with pytest.raises(RuntimeError, match="is forgotten"):
        store.open_round("homepages", a_round(1, period=0), b"")
    store.close()


def test_a_key_leaves_the_log_once_nobody_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "FLUSH_S", 0.01)
    store = store_in(tmp_path)
    intake = opened(store)
    ((key,),) = on_disk(tmp_path, "SELECT key FROM periods")
    backup = sqlite3.connect(tmp_path / "frequency.db", isolation_level=None)
    backup.execute("BEGIN")
    backup.execute("SELECT * FROM rounds").fetchall()
    intake.stop()
    store.end_round("homepages", 0, 2.0, b"", b"", b"")
    assert key in b"".join(file.read_bytes() for file in tmp_path.iterdir())
    store.create(collection("meanwhile"))
    backup.execute("COMMIT")
    while key in b"".join(file.read_bytes() for file in tmp_path.iterdir()):
        time.sleep(0.01)
    backup.close()
    store.close()


@pytest.mark.parametrize("restart", [False, True])
def test_a_client_takes_part_once_in_all_rounds_of_a_period(tmp_path: Path, restart: bool) -> None:
    store = store_in(tmp_path)
    intake = opened(store)
    assert take(intake, range(50)) == [0] * 50
    intake.stop()
    store.end_round("homepages", 0, 2.0, intake.aggregator().to_bytes(), b"", b"", keep_tags_for_period=True)
    store.open_round("homepages", a_round(1, period=0), b"")
    if restart:
        store.close()
        store = store_in(tmp_path)
    intake = Intake(store, "homepages", 1, 0, GRR)
    assert take(intake, range(25, 75)) == [1] * 25 + [0] * 25
    assert len(intake.aggregator()) == 25
    intake.stop()
    store.end_round("homepages", 1, 3.0, intake.aggregator().to_bytes(), b"", b"")
    assert swept(tmp_path)
    assert on_disk(tmp_path, "SELECT * FROM taken") == []
    assert [each.counters.counted for each in store.rounds("homepages")] == [50, 25]
    assert store.counters("homepages").counted == 75
    store.close()


def test_tags_that_a_crash_left_behind_go_at_the_next_start(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    intake = opened(store)
    take(intake, range(5))
    store.close()
    with closing(sqlite3.connect(tmp_path / "frequency.db")) as database, database:
        database.execute("INSERT INTO taken (period, tags, submitters) VALUES (77, x'', x'')")
    store = store_in(tmp_path)
    assert swept(tmp_path)
    assert take(opened(store), range(10)) == [1] * 5 + [0] * 5
    store.close()


def test_closing_a_collection_ends_periods_that_would_have_gone_on(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    intake = opened(store)
    take(intake, range(5))
    intake.stop()
    store.end_round("homepages", 0, 2.0, intake.aggregator().to_bytes(), b"", b"", keep_tags_for_period=True)
    assert len(on_disk(tmp_path, "SELECT * FROM taken")) == 1
    store.close_collection("homepages", 3.0)
    assert swept(tmp_path)
    assert on_disk(tmp_path, "SELECT * FROM taken") == on_disk(tmp_path, "SELECT * FROM periods") == []
    store.close()


def test_a_round_is_taken_up_by_one_intake_while_it_is_open(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    intake = opened(store)
    with fails("E100"):
        opened(store)
    with pytest.raises(RuntimeError, match="stop the intake"):
        store.end_round("homepages", 0, 2.0, b"", b"", b"")
    intake.stop()
    with fails("E101"):
        take(intake, range(3))
    store.end_round("homepages", 0, 2.0, b"", b"", b"")
    with fails("E100"):
        opened(store)
    store.close()


def test_forgotten_rounds_leave_their_numbers(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    intake = opened(store)
    take(intake, range(10))
    take(intake, range(12))
    intake.refuse("malformed", 3)
    intake.stop()
    store.end_round("homepages", 0, 2.0, b"", b"", b"")
    store.refuse("homepages", 0, "late", 4)
    store.refuse("homepages", None, "foreign", 5)
    store.refuse("homepages", 77, "early", 6)
    store.open_round("homepages", a_round(1), b"")
    expected = Counters(counted=12, duplicate=10, malformed=3, late=4, foreign=5, early=6)
    assert store.counters("homepages") == expected
    assert store.rounds("homepages")[0].counters == Counters(counted=12, duplicate=10, malformed=3, late=4)
    store.forget_rounds("homepages", 2.0)
    assert len(store.rounds("homepages")) == 2
    store.forget_rounds("homepages", 2.5)
    assert [each.number for each in store.rounds("homepages")] == [1]
    assert store.counters("homepages") == expected
    store.close()
    store = store_in(tmp_path)
    assert store.counters("homepages") == expected
    store.close()


def test_refusals_are_on_disk_soon_without_any_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "FLUSH_S", 0.01)
    store = store_in(tmp_path)
    intake = opened(store)
    intake.refuse("late", 2)
    intake.refuse("late", 3)
    while on_disk(tmp_path, "SELECT reason, number FROM refusals") != [("late", 5)]:
        time.sleep(0.01)
    assert intake.counters == Counters(late=5)
    with pytest.raises(RuntimeError, match="no counter"):
        intake.refuse("ugly", 1)
    store.close()


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE cats (name TEXT)")
    database.close()


def of_version(path: Path, version: int) -> None:
    FrequencyStore.open(path).close()
    with sqlite3.connect(path) as database:
        database.execute(f"PRAGMA user_version = {version}")
    database.close()


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda path: path.write_bytes(b"this is no database" * 99), "E100"),
        (foreign, "E100"),
        (lambda path: of_version(path, 99), "E100"),
        (lambda path: of_version(path, 0), "E100"),
        (lambda path: path.mkdir(), "E103"),
    ],
)
def test_a_database_that_is_not_ours_is_one_sentence(tmp_path: Path, spoil: object, code: str) -> None:
    path = tmp_path / "frequency.db"
    assert callable(spoil)
    spoil(path)
    with fails(code):
        FrequencyStore.open(path)


def test_another_process_is_kept_away(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    program = (
        "import sys; from pathlib import Path; from party.services.frequency.storage.store import FrequencyStore\n"
        "try: FrequencyStore.open(Path(sys.argv[1]))\n"
        "except Exception as error: print(error.message)"
    )
    path = str(tmp_path / "frequency.db")
    found = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert found.stdout.startswith(f"this node is running already: its process holds {path}; ")
    store.close()
    found = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert found.stdout == ""


def test_many_collections_are_kept_apart(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    intakes = [opened(store, f"collection-{number}") for number in range(100)]

    async def run() -> None:
        async def one(number: int, intake: Intake) -> None:
            for start in range(0, 30, 10):
                clients = range(number, number + start + 10)
                await intake.submit("fleet", pseudonyms(clients), reports(clients), 1000)

        await asyncio.gather(*(one(number, intake) for number, intake in enumerate(intakes)))

    asyncio.run(run())
    store.close()
    store = store_in(tmp_path)
    for number in range(100):
        intake = opened(store, f"collection-{number}")
        assert [value for value, n in enumerate(tally(intake)) if n] == sorted((number + i) % 64 for i in range(30))
        assert intake.counters == Counters(counted=30, duplicate=30)
    store.close()
