"""Releases of the same rows count together, whoever asks, by whatever way and whatever name; restarts forgive none.

Each of five joint releases of the Adult table hid every occupation, and what was possible in all of them was one value.
"""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.loading import job_of
from jobs.spec.job import JobSpec
from link.errors import PolicyDenied, ResourceError
from party.config import PartyConfig
from party.data.shared_sources import alike
from party.init_files import render_party
from party.jobs.charging import charge_start
from party.jobs.context import JobContext
from party.jobs.job import Job
from party.policy.judge import Judge
from party.services.anonymization.releases import Counted, Earlier, Releases
from party.state.journals import Journals
from party.state.ledger import Ledger
from party.state.store import Store
from tests.errors import fails
from tests.mining.joint.anonymisation.anonymisation_jobs_world import job
from tests.mining.joint.anonymisation.anonymisation_world import PARTIES
from tests.mining.joint.anonymisation.vertical_anonymisation_world import job as vertical_job
from tests.party.files import party_toml

TABLE = '[[dataset]]\nname = "{}"\nkind = "table"\nsource = "{}"\nformat = "csv"\nid = []\n'
RULES = '{}[policy]\napprove = "auto"\ntasks = ["anonymize"]\n{}'
NONE: dict[str, tuple[str, ...]] = {}


def config(folder: Path, policy: str = "", tables: str = "") -> PartyConfig:
    """A node's file with the dataset `people`, and whatever else."""
    file = folder / "north.toml"
    before = party_toml("north").partition("[[dataset]]")[0]
    file.write_text(before + RULES.format(TABLE.format("people", "people.csv") + tables, policy))
    return PartyConfig.load(file)


class Party:
    """What a node keeps of its jobs, and its policy."""

    def __init__(self, folder: Path, given: PartyConfig) -> None:
        self.config, self.store = given, Store.open(folder / "node.db")
        self.ledger = Ledger.open(folder / "node.db")
        self.releases = Releases.open(folder / "releases.db", "north", alike(given.dataset))
        self.judge = Judge(given, PARTIES, self.store, self.ledger, self.releases)

    def start(self, spec: JobSpec, name: bytes, coordinator: str = "analyst") -> None:
        """What a node does before a job begins."""
        self.judge.decide(spec, coordinator, job_id=name)
        most = self.judge.policy_of(spec).max_releases
        self.releases.begin(spec.job.dataset, name, coordinator, most)

    def close(self) -> None:
        self.store.close(), self.ledger.close(), self.releases.close()


OTHERS: list[JobSpec] = [
    job(model={"k": 4}),
    job(model={"k": 3, "l": [{"value": 2}]}),
    job(model={"k": 3, "t": [{"value": "0.4"}]}),
    job(model={"k": 3}, max_suppression="0.1"),
    job(algorithm="mondrian"),
    job(disclose="node"),
    job(recipients=("south",)),
    job(PARTIES[:2]),
    vertical_job(PARTIES[:2]),
    job(),
]


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("coordinator", ["analyst", "hub"])
def test_a_second_joint_release_is_refused_whatever_it_is_and_whoever_asks(
    tmp_path: Path, other: JobSpec, coordinator: str
) -> None:
    for number in range(2):  # a restart between both
        with closing(Party(tmp_path, config(tmp_path))) as party:
            if number == 0:
                party.start(job(), b"first")
                continue
            for ask in (party.judge.decide, lambda spec, by: party.start(spec, b"second", by)):
                with fails("E300", party="north"):
                    ask(other, coordinator)
            assert party.judge.decide(job(), "analyst", job_id=b"first") == "auto"  # another start of the same job


def test_a_start_that_is_not_charged_uses_up_no_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(Party(tmp_path, config(tmp_path))) as party:
        consent = SimpleNamespace(judge=party.judge)
        journals = Journals.beside(party.store, "north")
        lent = SimpleNamespace(consent=consent, journals=journals, ledger=party.ledger, releases=party.releases)
        context = cast(JobContext, lent)
        start = cast(Job, SimpleNamespace(spec=job(), id=b"first", coordinator="analyst"))

        def full(_: object) -> None:
            raise ResourceError("the disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(party.ledger, "record", full)
            with pytest.raises(ResourceError):
                charge_start(context, start, 1, 1.0)
        assert party.releases.counted("people") == Counted()
        charge_start(context, start, 1, 1.0)
        assert party.releases.counted("people") == Counted(releases=1)
        assert len(party.ledger.of_job(b"first")) == 1
        assert start.earlier_release is Earlier.NOTHING
        charge_start(context, start, 2, 2.0)
        assert start.earlier_release is Earlier.RELEASE


def test_the_limit_is_what_the_owner_writes_and_init_writes_one(tmp_path: Path) -> None:
    with closing(Party(tmp_path, config(tmp_path, "max_releases = 3\n"))) as party:
        for number in range(3):
            told = {each.rule: each.allows for each in party.judge.verdicts(OTHERS[number], "analyst")}
            assert f"this would be release {number + 1} of them: releases combine" in told["max_releases"]
            party.start(OTHERS[number], bytes([number]))
        with fails("E300", party="north"):
            party.start(job(), b"fourth")
    written = render_party("north", listen="127.0.0.1:1", dataset="people", source={"source": "x", "format": "basket"})
    assert "\nmax_releases = 1 " in written


def test_releases_of_this_node_alone_count_for_joint_ones_and_joint_ones_for_them(tmp_path: Path) -> None:
    with closing(Party(tmp_path, config(tmp_path))) as party:
        party.releases.admit("people", b"rows", b"request", "analyst", 1)
        with fails("E300", party="north"):
            party.start(job(), b"joint")
        party.releases.admit("people", b"rows", b"other words", "hub", 1)  # the same rows again
    (tmp_path / "other").mkdir()
    with closing(Party(tmp_path / "other", config(tmp_path))) as party:
        party.start(job(), b"joint")
        with fails("E300", party="north"):
            party.releases.check("people", b"request", 1, 20)
        with fails("E300", party="north"):
            party.releases.admit("people", b"rows", b"request", "analyst", 1)


@pytest.mark.parametrize(
    "source",
    ["people.csv", "./people.csv", "link.csv", "hard.csv", "folder/../people.csv"],
    ids=["same", "dot", "link", "hard", "up"],
)
def test_datasets_of_one_file_count_together(tmp_path: Path, source: str) -> None:
    (tmp_path / "people.csv").write_text("id\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.csv").symlink_to("people.csv")
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "people.csv")
    tables = TABLE.format("humans", source) + TABLE.format("others", "others.csv")
    with closing(Party(tmp_path, config(tmp_path, tables=tables))) as party:
        party.start(job(), b"first")
        humans, others = (of(job(), dataset) for dataset in ("humans", "others"))
        with fails("E300", party="north"):
            party.start(humans, b"second")
        party.start(others, b"third")


def test_queries_of_one_database_count_together(tmp_path: Path) -> None:
    database = '[[dataset]]\nname = "{}"\nkind = "table"\nsource = "{}"\nformat = "sql"\nquery = "{}"\nid = []\n'
    given = [("a", "sqlite:///x.db", "SELECT * FROM p"), ("b", "sqlite:///x.db", "SELECT * FROM p WHERE 1")]
    given += [
        ("c", "postgresql://db/x", "SELECT 1"),
        ("d", "postgresql://db/x", "SELECT 2"),
        ("e", "sqlite:///y.db", "x"),
    ]
    found = alike(config(tmp_path, tables="".join(database.format(*each) for each in given)).dataset)
    assert {name: others for name, others in found.items() if name != "people"} == {
        **dict.fromkeys("ab", ("a", "b")),
        **dict.fromkeys("cd", ("c", "d")),
        "e": ("e",),
    }


def of(spec: JobSpec, dataset: str) -> JobSpec:
    contents = spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
    contents["job"]["dataset"] = dataset
    return job_of(contents, "the test", Path())


def test_a_release_that_came_to_nothing_counts_for_failures(tmp_path: Path) -> None:
    with closing(Party(tmp_path, config(tmp_path, "max_failed_releases = 2\n"))) as party:
        for number in range(2):
            party.start(job(), bytes([number]))
            party.releases.came_to_nothing(bytes([number]))
        assert party.releases.counted("people") == Counted(0, 2)
        with fails("E300", party="north"):
            party.start(job(), b"third")


def test_of_two_that_begin_at_once_one_does(tmp_path: Path) -> None:
    with closing(Party(tmp_path, config(tmp_path))) as party, closing(Party(tmp_path, config(tmp_path))) as twin:
        begun, together = list[bytes](), threading.Barrier(8)

        def begin(which: Party, name: bytes) -> None:
            together.wait()
            try:
                which.releases.begin("people", name, "analyst", 1)
            except PolicyDenied:
                return
            begun.append(name)

        threads = [threading.Thread(target=begin, args=((party, twin)[n % 2], bytes([n]))) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(begun) == 1
        assert party.releases.counted("people").releases == 1


EVENTS = st.tuples(
    st.sampled_from(["joint", "alone", "restart", "nothing"]),
    st.sampled_from(["people", "humans"]),
    st.sampled_from(["analyst", "hub"]),
    st.integers(0, 5),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(EVENTS, max_size=25), st.integers(1, 3))
def test_no_course_of_events_lets_more_leave(events: list[tuple[str, str, str, int]], most: int) -> None:
    """Against a count by hand; a job that came to nothing has let no rows leave."""
    together = {"people": ("people", "humans"), "humans": ("people", "humans")}
    left: set[Any] = set()
    with TemporaryDirectory() as folder:
        releases = Releases.open(Path(folder) / "releases.db", "north", together)
        try:
            for what, dataset, coordinator, number in events:
                name = bytes([number])
                try:
                    if what == "joint":
                        releases.begin(dataset, name, coordinator, most)
                        left.add(("joint", name))
                    elif what == "alone":
                        releases.admit(dataset, name, name, coordinator, most)
                        left.add((dataset, name))
                    elif what == "nothing":
                        releases.came_to_nothing(name)
                        left.discard(("joint", name))
                    else:
                        releases.close()
                        releases = Releases.open(Path(folder) / "releases.db", "north", together)
                except PolicyDenied:
                    assert len(left) == most
                assert releases.counted(dataset).releases == len(left) <= most
        finally:
            releases.close()
