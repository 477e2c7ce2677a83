"""Jobs on disk: whole or not at all, found again by id, beginning or name, driven by one process at a time."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.jobs.lifecycle import Job, Problem, Stand, State
from coordinator.jobs.records.store import JobFolder, Record, Store
from coordinator.jobs.runner import draft
from jobs.consent import approve
from link.errors import ConfigurationError
from link.pki.authority import Authority
from protos.v1.control_pb2 import Release, ResultHeader
from tests.coordinator.nodes import SPEC
from tests.errors import fails

pytestmark = pytest.mark.turn(3)

AUTHORITY = Authority.create()
HUB, NORTH = AUTHORITY.issue("hub", "coordinator"), AUTHORITY.issue("north")


def new(name: str = "weekly") -> Record:
    spec = SPEC.model_copy(update={"job": SPEC.job.model_copy(update={"name": name})})
    return draft(spec, HUB, 600)


def kept(store: Store, record: Record | None = None) -> JobFolder:
    folder = store.create(record or new())
    folder.unlock()
    return folder


@given(
    state=st.sampled_from(State),
    stands=st.tuples(*[st.sampled_from(Stand)] * 2),
    until=st.floats(0, 253_402_300_799),  # until the end of the year 9999
    problem=st.none() | st.builds(Problem, st.just("E300"), st.text(), st.none() | st.just("south")),
    out=st.none() | st.just(Path("/somewhere/out")),
    consented=st.booleans(),
)
@settings(max_examples=40)
def test_what_is_saved_is_what_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    state: State,
    stands: tuple[Stand, Stand],
    until: float,
    problem: Problem | None,
    out: Path | None,
    consented: bool,
) -> None:
    record = new()
    folder = kept(Store(tmp_path_factory.mktemp("state")), record)
    record.job = record.job._replace(
        state=state, stands=dict(zip(SPEC.job.parties, stands, strict=True)), until=until, problem=problem
    )
    record.out = out
    if consented:
        record.approvals["north"] = approve(record.id, "hub", NORTH, decided=5, by="ann")
        record.released["north"] = ResultHeader(release=Release(party="north").SerializeToString(), signature=b"\0\xff")
    folder.save(record)
    assert JobFolder(folder.path).record() == record


def test_files_are_for_the_coordinator_alone(tmp_path: Path) -> None:
    folder = kept(Store(tmp_path / "jobs"))
    folder.keep_table(b"counts")
    assert stat.S_IMODE((tmp_path / "jobs").stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.path.iterdir()} == {0o600}


DIES = """
import os, sys
from pathlib import Path
from coordinator.jobs.records import store
from coordinator.jobs.records.store import JobFolder
calls = last = 0
def at_each(name):
    before = getattr(os, name)
    def dies(*arguments, **named):
        global calls
        calls += 1
        if calls == last:
            os.kill(os.getpid(), 9)
        return before(*arguments, **named)
    setattr(os, name, dies)
def write():
    folder = JobFolder(Path(sys.argv[1]))
    record = folder.record()
    for name in ("open", "fsync", "replace", "rename"):
        at_each(name)
    record.out_problem = "new"
    folder.save(record)
    folder.keep_table(b"new")
for line in sys.stdin:  # a process for each, which has loaded already
    last = int(line)
    if (writer := os.fork()) == 0:
        try:
            write()
            os._exit(0)
        finally:
            os._exit(1)
    print(os.waitstatus_to_exitcode(os.waitpid(writer, 0)[1]), flush=True)
"""


def test_a_writer_killed_at_any_moment_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    folder = kept(Store(tmp_path))
    folder.keep_table(b"old")

    call, seen = 1, set[tuple[str, bytes]]()
    command = [sys.executable, "-c", DIES, str(folder.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writers:
        assert writers.stdin is not None
        assert writers.stdout is not None
        while True:
            writers.stdin.write(f"{call}\n")
            writers.stdin.flush()
            code = int(writers.stdout.readline())
            assert code in (0, -9)
            if code == 0:
                break
            seen.add((folder.record().out_problem, folder.table()))
            call += 1
    assert seen <= {("", b"old"), ("new", b"old"), ("new", b"new")}
    assert ("", b"old") in seen
    assert (folder.record().out_problem, folder.table()) == ("new", b"new")
    assert [job.id for job in Store(tmp_path).jobs()] == [folder.id]


def test_half_a_job_is_no_job(tmp_path: Path) -> None:
    store = Store(tmp_path)
    (tmp_path / f".{'ab' * 32}.new").mkdir()
    (tmp_path / f".{'ab' * 32}.new" / "proposal").write_bytes(b"cut")
    (tmp_path / "notes.txt").write_text("mine")
    assert store.jobs() == []


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("state.json", b""),
        ("state.json", b"{}"),
        ("state.json", b"[1]"),
        ("proposal", b"\xff\xff"),
        ("state.json", None),
    ],
)
def test_a_spoilt_folder_is_told_in_one_sentence(tmp_path: Path, file: str, content: bytes | None) -> None:
    folder = kept(Store(tmp_path))
    if content is None:
        (folder.path / file).unlink()
    else:
        (folder.path / file).write_bytes(content)
    with fails("E100"):
        folder.record()


def test_jobs_are_found_by_id_beginning_and_name(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first, second, other = kept(store), kept(store), kept(store, new("other"))
    for number, folder in enumerate((first, second, other)):
        os.utime(folder.path / "proposal", (number, number))
    assert [job.id for job in store.jobs()] == [other.id, second.id, first.id]
    for folder in (first, second, other):
        assert store.find(folder.id).id == store.find(folder.id[:20].upper()).id == folder.id
    assert store.find("weekly").id == second.id  # the latest of that name
    assert store.find("other").id == other.id
    for unknown in ("ffff" * 16, first.id[:3], "none"):
        with fails("E001"):
            store.find(unknown)


def test_a_beginning_of_several_ids_is_refused(tmp_path: Path) -> None:
    for end in ("1", "2"):
        (tmp_path / ("abcd" * 15 + "abc" + end)).mkdir()
    with fails("E001"):
        Store(tmp_path).find("abcd")


def test_a_name_that_looks_like_an_id_is_found_too(tmp_path: Path) -> None:
    store = Store(tmp_path)
    folder = kept(store, new("beefbeef"))
    assert store.find("beefbeef").id == folder.id


def test_one_process_drives(tmp_path: Path) -> None:
    store = Store(tmp_path)
    mine = store.create(new())
    other = JobFolder(mine.path)
    assert mine.driven
    assert other.driven
    assert not other.lock()
    mine.unlock()
    assert not other.driven
    assert other.lock()
    assert not mine.lock()
    other.unlock()


def test_a_child_adopts_the_lock_without_a_gap(tmp_path: Path) -> None:
    mine = Store(tmp_path).create(new())
    script = (
        "import sys; from pathlib import Path; from coordinator.jobs.records.store import JobFolder\n"
        "folder = JobFolder(Path(sys.argv[1])); folder.adopt(int(sys.argv[2])); print('mine', flush=True); input()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(mine.path), str(mine.lock_number)],
        pass_fds=[mine.lock_number],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    mine.unlock()
    assert not mine.lock()
    assert child.stdout is not None
    assert child.stdout.readline() == "mine\n"
    assert not mine.lock()
    child.communicate("end\n")
    assert mine.lock()
    mine.unlock()


def test_a_wish_to_cancel_reaches_whoever_drives(tmp_path: Path) -> None:
    folder = kept(Store(tmp_path))
    assert folder.cancel_asked() is None
    JobFolder(folder.path).ask_cancel("no need")
    assert folder.cancel_asked() == "no need"


def test_plans_are_kept_by_job_file(tmp_path: Path) -> None:
    store = Store(tmp_path / "jobs")
    assert store.load_plan(SPEC.digest) is None
    store.save_plan(SPEC.digest, {"schema": "comine.plan/1", "rounds": 3})
    assert store.load_plan(SPEC.digest) == {"schema": "comine.plan/1", "rounds": 3}
    assert store.load_plan(bytes(32)) is None
    record = new()
    record.plan = store.load_plan(SPEC.digest)
    assert JobFolder(kept(store, record).path).record().plan == record.plan


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file")
    with fails("E103"):
        Store(tmp_path / "file").create(new())
    with fails("E103"):
        Store(tmp_path / "file").save_plan(bytes(32), {})


def test_a_job_of_another_version_is_told(tmp_path: Path) -> None:
    folder = kept(Store(tmp_path))
    state = json.loads((folder.path / "state.json").read_text())
    (folder.path / "state.json").write_text(json.dumps({**state, "schema": "comine.job-state/9"}))
    with pytest.raises(ConfigurationError):
        folder.record()


def test_a_draft_is_as_its_proposal() -> None:
    record = new()
    assert isinstance(record.job, Job)
    assert (record.job.state, record.job.parties) == (State.DRAFT, SPEC.job.parties)
    assert record.job.expires - record.created == pytest.approx(600, abs=2)


def test_a_job_expires_no_earlier_than_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for now in (1000.0, 1000.001, 1000.6):
        monkeypatch.setattr("time.time", lambda now=now: now)
        assert now + 3 <= draft(SPEC, HUB, 3).job.expires < now + 4
