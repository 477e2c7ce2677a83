"""A node that has lost the history in `node.db`: it comes back out of the audit log, or the node does not start."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import sqlite3
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from coordinator.jobs.runner import run_job
from jobs.audit.checks.verify import check_log
from jobs.audit.events import PlanAsked
from jobs.audit.log import head_path
from jobs.audit.service_events import QueryDecided
from jobs.loading import job_of
from jobs.privacy_account import LARGEST_LOCAL, Charge
from jobs.results.result import Result
from jobs.spec.job import JobSpec
from jobs.spec.privacy import PrivacyModel
from link.errors import ComineError, ConfigurationError, PolicyDenied
from link.pki.trust import Trust
from party.config import PartyConfig
from party.data.sources import Rows
from party.node.logs import open_log
from party.policy.consent import proposal_of
from party.policy.joint_result import joint_result
from party.policy.policy_input import Version
from party.server import Node
from party.state.recovery import history
from party.state.recovery.remembered import Remembered, remembered
from party.state.store import Record
from protos.v1 import control_pb2 as control
from protos.v1.control_pb2 import JobState
from tests.errors import fails
from tests.examples import in_turn
from tests.party.nodes import crash, running, weekly

pytestmark = pytest.mark.turn(3)

POLICY = 'max_jobs = 3\nparty_sets = "fixed"\nmin_new_rows = 5\n'
EPSILON = Decimal("1.5")
NORTH_AND_SOUTH = weekly(parties=["north", "south"])


def noisy() -> JobSpec:
    contents = weekly().model_dump(mode="json", by_alias=True)
    contents["privacy"] = {"model": "distributed", "epsilon": "0.5", "delta": "1e-6"}
    return job_of(contents, "job.toml", Path())


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a federation in which three jobs ran, and a copy of south's state after the first of them."""
    folder = tmp_path_factory.mktemp("played")

    async def play() -> None:
        async with running(folder, policy=POLICY) as nodes:
            await nodes.run(noisy())
            await nodes.nodes["south"].stop()
            shutil.copytree(folder / "state/south", folder / "early")
            await nodes.restart("south")
            await nodes.run(weekly())
            _, ends = await nodes.run(noisy())
            assert {event.state for event in ends.values()} == {control.SUCCEEDED}, ends
            database = folder / "state/south/node.db"
            of_a_kill = shutil.ignore_patterns("*.new")  # which come and go while the node runs
            shutil.copytree(folder / "state/south", folder / "killed", ignore=of_a_kill)
            assert database.with_name("node.db-wal").stat().st_size > 0

    asyncio.run(play())
    return folder


@pytest.fixture
def state(played: Path, tmp_path: Path) -> Path:
    """South's state folder as a kill of its node has left it, to be spoilt."""
    for path in played.iterdir():
        if path.name not in ("state", "early", "killed"):
            (shutil.copytree if path.is_dir() else shutil.copy)(path, tmp_path / path.name)
    shutil.copytree(played / "killed", tmp_path / "state/south")
    shutil.copytree(played / "early", tmp_path / "early")
    return tmp_path / "state/south"


def started(state: Path) -> Node:
    return Node(PartyConfig.load(state.parent.parent / "south.toml"), open_log("south"))


def left_behind(node: Node) -> tuple[int, Decimal]:
    """How many starts the node knows, and what they have cost."""
    spent = node.ledger.spent("baskets")
    return len(node.store.latest("baskets", b"", 100)), sum(
        (n * (cost.epsilon or 0) for cost, n in spent.items()), Decimal(0)
    )


def empty(state: Path) -> None:
    remove(state)
    (state / "node.db").write_bytes(b"")


def remove(state: Path) -> None:
    for path in state.glob("node.db*"):
        path.unlink()


def lose_wal(state: Path) -> None:
    for name in ("node.db-wal", "node.db-shm"):
        (state / name).unlink(missing_ok=True)


def older(state: Path) -> None:
    remove(state)
    shutil.copy(state.parent.parent / "early/node.db", state / "node.db")


def no_rows(state: Path) -> None:
    """As somebody with an editor would lose it."""
    with sqlite3.connect(state / "node.db") as database:
        tables = "jobs charges spent reached seen companions joint_results row_versions"
        for table in tables.split():
            database.execute(f"DELETE FROM {table}")
    database.close()


@pytest.mark.costly
@pytest.mark.parametrize("lose", in_turn([empty, remove, lose_wal, older, no_rows, lambda state: None], 2))
def test_plans_that_the_database_lost_count_as_before(state: Path, lose: Callable[[Path], None]) -> None:
    """As often as they were asked for, no less and no more, however often the node starts."""
    node = started(state)
    for coordinator in ("analyst", "analyst", "other", "analyst"):
        node.plans.take(coordinator, 9, "south", time.time())
        node.audit.append(PlanAsked(coordinator=coordinator, spec_digest=bytes(32)))
    node.store.close()  # as a kill would leave it
    shutil.copytree(state, state.with_name("copy"))
    asyncio.run(node.stop())
    shutil.rmtree(state)
    state.with_name("copy").rename(state)
    lose(state)
    for asked in (3, 4):
        node = started(state)
        with fails("E300"):
            node.plans.take("analyst", asked, "south", time.time())
        node.plans.take("analyst", asked + 1, "south", time.time())
        node.audit.append(PlanAsked(coordinator="analyst", spec_digest=bytes(32)))
        asyncio.run(node.stop())


def uncounted(state: Path) -> None:
    """As a version has left it that did not count what was asked, and counted unions."""
    with contextlib.closing(sqlite3.connect(state / "node.db")) as connection:
        connection.executescript(
            "DROP TABLE standing; DROP TABLE standing_uses; DROP TABLE clock; DROP TABLE notices;"
            "DROP TABLE owner_ends; DROP TABLE holds; DROP TABLE voices;"
            "DROP TABLE joint_results; DROP TABLE row_versions; DROP TABLE seen;"
            "DROP TABLE reloads; DROP TABLE recounted; DROP TABLE asked; DROP TABLE journal;"
            "CREATE TABLE levels (job_id BLOB, length INTEGER, version TEXT, level BLOB);"
            "ALTER TABLE charges ADD COLUMN unites INTEGER NOT NULL DEFAULT 0;"
            "CREATE TABLE unions (dataset TEXT PRIMARY KEY, starts INTEGER NOT NULL) WITHOUT ROWID;"
        )
        connection.execute("PRAGMA user_version = 8")


@pytest.mark.costly
@pytest.mark.parametrize("lose", in_turn([empty, remove, lose_wal, older, no_rows, uncounted, lambda state: None], 2))
def test_history_that_the_database_lost_comes_out_of_the_audit_log(state: Path, lose: Callable[[Path], None]) -> None:
    lose(state)
    for _ in range(2):  # and is there ever after
        node = started(state)
        assert left_behind(node) == (3, Decimal("1.0"))
        assert node.ledger.results(["baskets"]) == {joint_result(weekly())}
        for spec in (weekly(), NORTH_AND_SOUTH):
            with fails("E300"):
                node.host.context.consent.judge.decide(spec, "analyst")
        assert {JobState.Name(record.state) for record in node.store.all()} <= {"SUCCEEDED", "RUNNING"}
        asyncio.run(node.stop())


async def compared(node: Node, rows: Rows) -> None:
    room = node.host.context
    await room.consent.judge.check_data(weekly(), rows, room.sources.rows, b"")


def test_rows_that_nobody_knows_any_more_count_as_changed_by_too_few(state: Path) -> None:
    remove(state)
    node = started(state)
    with fails("E300"):
        asyncio.run(compared(node, Rows(10**6, b"new")))
    assert Version(None, history.UNKNOWN) in node.ledger.versions("baskets")  # for min_group
    asyncio.run(node.stop())


TOTALS = "[dataset.privacy]\nepsilon = 5\ndelta = 1e-5\n"


@pytest.mark.parametrize(
    ("spec", "totals", "noted"), [(weekly(), "", True), (noisy(), "", True), (noisy(), TOTALS, False)]
)
def test_what_is_noted_of_rows_survives_the_database(tmp_path: Path, spec: JobSpec, totals: str, noted: bool) -> None:
    """Noise stands in for `min_new_rows` only within totals; without them its jobs are compared like any others."""

    def prepare(_: object) -> None:
        file = tmp_path / "south.toml"
        file.write_text(file.read_text().replace("[policy]", f"{totals}[policy]"))

    async def refuses(node: Node) -> bool:
        try:
            await compared(node, Rows(1, b"one row more"))
        except PolicyDenied:
            return True
        return False

    async def play() -> None:
        async with running(tmp_path, policy="min_new_rows = 1000\n", prepare=prepare) as nodes:
            _, ends = await nodes.run(spec)
            assert {event.state for event in ends.values()} == {control.SUCCEEDED}, ends
            assert await refuses(nodes.nodes["south"]) == noted
            await nodes.nodes["south"].stop()
            remove(tmp_path / "state/south")
            assert await refuses(await nodes.restart("south")) == noted

    asyncio.run(play())


def test_what_was_restored_stands_in_the_log_and_the_log_is_whole(state: Path) -> None:
    remove(state)
    asyncio.run(started(state).stop())
    trust = Trust((state.parent.parent / "pki/ca.crt").read_bytes())
    log = check_log(state / "audit.log", trust)
    assert log.findings == ()
    assert [(r.event.jobs, r.event.starts) for r in log.records if r.event.event == "history-restored"] == [(3, 3)]  # type: ignore[attr-defined]


def test_a_database_whose_job_ended_where_the_log_does_not_know_of_it_shows_that_the_log_was_cut(state: Path) -> None:
    """However old: within a minute of what the database last compared, it may be a crash."""
    with sqlite3.connect(state / "node.db") as database:
        database.execute("UPDATE jobs SET ended = ended + 1000")
        database.execute("DELETE FROM seen")  # as where the session's own last entry is still there
    database.close()
    lines = (state / "audit.log").read_bytes().splitlines(keepends=True)
    (state / "audit.log").write_bytes(b"".join(lines[:-3]))
    head_path(state / "audit.log").unlink()
    with fails("E100"):
        started(state)


@pytest.mark.parametrize("last", ["started", "session-began"])
def test_a_log_of_before_a_session_whose_job_still_ran_shows_that_it_is_older(state: Path, last: str) -> None:
    """The log goes back to the last entry of a kind; the database has that job's start, as a crash would leave both."""
    lines = (state / "audit.log").read_bytes().splitlines(keepends=True)
    place = max(number for number, line in enumerate(lines) if f'"event":"{last}"'.encode() in line)
    (state / "audit.log").write_bytes(b"".join(lines[: place + 1]))
    head_path(state / "audit.log").unlink()
    with contextlib.closing(sqlite3.connect(state / "node.db")) as database, database:
        running_ = "SELECT job_id FROM jobs WHERE started IS NOT NULL ORDER BY started DESC LIMIT 1"
        database.execute(f"UPDATE jobs SET state = 'RUNNING', ended = NULL WHERE job_id = ({running_})")
    with fails("E100"):
        started(state)
    with contextlib.closing(sqlite3.connect(state / "node.db")) as database, database:
        database.execute("DELETE FROM seen")  # then it may be a crash
    asyncio.run(started(state).stop())


def test_a_node_that_dies_once_its_log_knows_of_a_success_still_has_what_it_signed(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            south, logged = nodes.nodes["south"], asyncio.Event()

            async def never(*_: object) -> None:
                logged.set()
                await asyncio.Event().wait()

            south.host.transitions.succeed = never  # type: ignore[method-assign]
            coordinator = nodes.authority.issue("hub", "coordinator")
            job = asyncio.create_task(run_job(weekly(), coordinator, nodes.addresses))
            await logged.wait()
            await crash(south)
            await nodes.restart("south")
            assert isinstance(await job, Result)

    asyncio.run(test())


# -- what cannot be made whole again ----------------------------------------------------------------------------------
def lose_log(state: Path) -> None:
    for path in (state / "audit.log", head_path(state / "audit.log")):
        path.unlink()


def lose_all(state: Path) -> None:
    remove(state), lose_log(state)


def cut_log(state: Path) -> None:
    lines = (state / "audit.log").read_bytes().splitlines(keepends=True)
    (state / "audit.log").write_bytes(b"".join(lines[: len(lines) // 2]))


def cut_log_and_head(state: Path) -> None:
    asyncio.run(stopped(started(state)))
    cut_log(state)
    head_path(state / "audit.log").unlink()


def earlier_log(state: Path) -> None:
    """An older log with its head beside the database, which has been held against it last where the older one ends."""
    for path in (state / "audit.log", head_path(state / "audit.log")):
        shutil.copy(state.parent.parent / "early" / path.name, path)


async def stopped(node: Node) -> None:
    await node.start()
    await node.stop()


def cut_log_and_lose_all(state: Path) -> None:
    cut_log_and_head(state), remove(state)


def truncate(state: Path) -> None:
    asyncio.run(started(state).stop())
    whole = (state / "node.db").read_bytes()
    (state / "node.db").write_bytes(whole[: len(whole) // 2])


def scramble(state: Path) -> None:
    asyncio.run(started(state).stop())
    whole = bytearray((state / "node.db").read_bytes())
    whole[4096 : 4096 * 3] = b"\xa5" * 4096 * 2
    (state / "node.db").write_bytes(whole)


def another_log(state: Path) -> None:
    """An older database beside a log that was begun after it."""
    older(state)
    lose_log(state)
    shutil.copy(state / "node.db", state / "kept")
    asyncio.run(started(state).stop())
    remove(state), lose_log(state)
    asyncio.run(_anew(state))


async def _anew(state: Path) -> None:
    (state / "audit.key").unlink()
    await stopped(started(state))
    remove(state)
    shutil.copy(state / "kept", state / "node.db")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lose_all, "has lost both its job database and its audit log"),
        (cut_log, "was tampered with or damaged"),
        (cut_log_and_head, "was cut or written anew"),
        (earlier_log, "was cut or written anew"),
        (cut_log_and_lose_all, "is lost, and its audit log is not whole"),
        (truncate, "is damaged"),
        (scramble, "is damaged"),
        (another_log, "is not of the audit log beside it"),
    ],
)
def test_a_history_that_nothing_tells_keeps_the_node_from_starting(
    state: Path, spoil: Callable[[Path], None], words: str
) -> None:
    spoil(state)
    for _ in range(2):  # nor at the second try
        with pytest.raises(ComineError) as caught:
            started(state)
        assert words in caught.value.message
        assert "\n" not in caught.value.message


@pytest.mark.parametrize("spoil", [truncate, scramble])
def test_a_damaged_database_is_moved_away_and_made_again(state: Path, spoil: Callable[[Path], None]) -> None:
    spoil(state)
    remove(state)
    node = started(state)
    assert left_behind(node) == (3, Decimal("1.0"))
    asyncio.run(node.stop())


def test_the_database_of_another_party_is_refused(played: Path, state: Path) -> None:
    remove(state)
    shutil.copy(played / "state/north/node.db", state / "node.db")
    with fails("E100"):
        started(state)


def test_a_log_that_was_moved_away_in_good_order_takes_nothing_with_it(state: Path) -> None:
    asyncio.run(started(state).stop())
    lose_log(state)
    for _ in range(2):
        node = started(state)
        assert left_behind(node) == (3, Decimal("1.0"))
        asyncio.run(node.stop())
    assert b'"log-follows"' in (state / "audit.log").read_bytes()
    remove(state)  # and the new log does not pretend to know what was in the former
    with fails("E100"):
        started(state)


@pytest.mark.parametrize("name", ["releases.db", "queries.db"])
@pytest.mark.parametrize("how", ["gone", "empty"])
def test_a_node_does_not_start_without_what_counts_releases_and_answers(state: Path, name: str, how: str) -> None:
    path = state / name
    asyncio.run(stopped(started(state)))  # which makes the one, but not the other
    if not path.exists():
        path.write_bytes(b"any")
        asyncio.run(stopped(started(state)))
    content = path.read_bytes()
    path.unlink() if how == "gone" else path.write_bytes(b"")
    for _ in range(2):
        with fails("E100"):
            started(state)
    path.write_bytes(content)
    asyncio.run(started(state).stop())


def test_what_the_log_tells_of_answers_and_releases_must_be_there_though_the_job_database_is_lost(state: Path) -> None:
    asyncio.run(started(state).stop())
    node = started(state)
    node.audit.append(
        QueryDecided(dataset="baskets", coordinator="analyst", number=1, query="count", denied=None),
    )
    asyncio.run(node.stop())
    remove(state)
    for _ in range(2):
        with fails("E100"):
            started(state)
    (state / "queries.db").write_bytes(b"any")
    node = started(state)
    assert left_behind(node) == (3, Decimal("1.0"))
    asyncio.run(node.stop())


def _unreadable(*_: object) -> Remembered:
    raise ConfigurationError("this version knows no such job")


def test_jobs_that_this_version_cannot_read_keep_no_node_from_starting_where_nothing_is_lost(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "remembered", _unreadable)
    node = started(state)
    assert left_behind(node) == (3, Decimal("1.0"))
    asyncio.run(stopped(node))


def test_rows_of_a_job_that_this_version_cannot_read_count_as_noted(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = started(state)
    record = node.store.all()[0]
    assert not history.is_noted(record, lambda spec: False)
    monkeypatch.setattr(history, "remembered", _unreadable)
    assert history.is_noted(record, lambda spec: False)
    asyncio.run(node.stop())


OTHERWISE: dict[str, Callable[[dict[str, Any]], object]] = {
    "without a table that is new": lambda job: job.pop("union"),
    "without a key that is new": lambda job: job["itemsets"].pop("top_k"),
    "with a key that is gone": lambda job: job["itemsets"].update(speed=3),
    "with a table that is gone": lambda job: job.update(engine={"name": "fast"}),
    "with a value that is refused today": lambda job: job["job"].update(deadline="31d"),
    "of a task that is gone": lambda job: job["job"].update(task="sequences"),
}


@pytest.mark.parametrize("way", OTHERWISE)
def test_jobs_that_another_version_wrote_come_out_of_the_audit_log(
    state: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """An upgrade has come between, and the database is lost."""
    real = proposal_of

    def earlier(record: Record) -> control.Proposal:
        proposal = real(record)
        contents = json.loads(proposal.spec)
        OTHERWISE[way](contents)
        proposal.spec = json.dumps(contents, sort_keys=True, separators=(",", ":")).encode()
        return proposal

    monkeypatch.setattr(history, "proposal_of", earlier)
    remove(state)
    node = started(state)
    assert left_behind(node) == (3, Decimal("1.0"))
    asyncio.run(stopped(node))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda job: job.pop("job"),
        lambda job: job["job"].update(dataset=3),
        lambda job: job["job"].update(parties="north", task="gone"),
        lambda job: job.update(privacy={"model": "new", "epsilon": "1"}),
        lambda job: job.update(privacy={"model": "distributed", "epsilon": "-1", "delta": "0"}),
        lambda job: job.update(privacy={"model": "distributed", "epsilon": "Infinity", "delta": "0"}),
        lambda job: job.update(privacy={"model": "shuffle"}),
        lambda job: job.update(privacy=[]) or job["job"].pop("name"),
    ],
)
def test_what_does_not_tell_what_a_job_cost_is_refused(spoil: Callable[[dict[str, Any]], object]) -> None:
    contents = json.loads(noisy().canonical())
    spoil(contents)
    with pytest.raises(ConfigurationError):
        remembered(json.dumps(contents).encode())


@pytest.mark.parametrize("model", ["exact", "local", "shuffle", "distributed", "blended"])
def test_what_another_version_wrote_costs_what_it_cost_there(model: PrivacyModel) -> None:
    privacy = {} if model == "exact" else {"epsilon": "0.5"} | ({} if model == "local" else {"delta": "1e-6"})
    contents = {"job": {"dataset": "d", "name": "n", "parties": ["a", "b"]}, "privacy": {"model": model, **privacy}}
    found = remembered(json.dumps(contents).encode())
    epsilon, delta = Decimal("0.5"), Decimal("1e-6")
    expected: dict[PrivacyModel, Charge] = {
        "exact": Charge("exact", None, None, None),
        "local": Charge("local", epsilon, epsilon, Decimal(0)),
        "shuffle": Charge("shuffle", LARGEST_LOCAL, epsilon, delta),
        "distributed": Charge("distributed", None, epsilon, delta),
        "blended": Charge("blended", epsilon, epsilon, delta),
    }
    assert found.charge == expected[model]
    assert (found.dataset, found.parties) == ("d", ("a", "b"))
