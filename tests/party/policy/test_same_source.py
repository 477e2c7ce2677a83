"""Rules that count jobs count those on all datasets of one file together: another name would be another limit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kinds.charge import charge
from jobs.loading import job_of
from jobs.spec.job import JobSpec
from link.errors import PolicyDenied
from link.executor import ThreadExecutor
from party.config import DatasetSection, PartyConfig
from party.data.shared_sources import alike
from party.data.sources import Sources
from party.policy.budget import budget
from party.policy.judge import Judge
from party.services.anonymization.releases import Releases
from party.state.ledger import Entry, Ledger
from party.state.store import Store
from protos.v1.control_pb2 import JobState
from tests.errors import fails
from tests.party.files import PARTIES, party_toml
from tests.party.state.test_store import record

TWIN = """[[dataset]]
name = "twin"
kind = "transactions"
source = "north.dat"
format = "basket"
[dataset.privacy]
epsilon = 1.5
delta = 1e-5
"""


def job(*, dataset: str = "baskets", **tables: object) -> JobSpec:
    """Over rows."""
    named = {"name": "weekly", "task": "itemsets", "parties": list(PARTIES), "dataset": dataset}
    return job_of({"job": named, "itemsets": {"min_support": 20}, **tables}, "job.toml", Path())


def noisy() -> JobSpec:
    return job(privacy={"model": "distributed", "epsilon": "1", "delta": "1e-6"})


@contextmanager
def node(folder: Path, policy: str = "", more: str = TWIN) -> Iterator[tuple[Judge, Store, Ledger, PartyConfig]]:
    path = folder / "north.toml"
    path.write_text(party_toml("north", policy=policy).replace("[policy]", f"{more}[policy]"))
    config = PartyConfig.load(path)
    with (
        closing(Store.open(folder / "node.db")) as store,
        closing(Ledger.open(folder / "node.db")) as ledger,
        closing(Releases.open(folder / "releases.db", "north")) as releases,
    ):
        yield Judge(config, PARTIES, store, ledger, releases), store, ledger, config


def test_jobs_under_two_names_are_counted_together(tmp_path: Path) -> None:
    with node(tmp_path, "max_jobs = 2\n") as (judge, store, *_):
        for number, dataset in enumerate(("baskets", "twin"), 1):
            judge.decide(job(dataset=dataset), "analyst")
            started = record(number, dataset=dataset, started=time.time(), state=JobState.SUCCEEDED)
            assert store.add(started)
        for dataset in ("baskets", "twin"):
            with fails("E300", party="north"):
                judge.decide(job(dataset=dataset), "analyst")


def test_parties_are_those_of_the_first_job_under_any_name(tmp_path: Path) -> None:
    with node(tmp_path, 'party_sets = "fixed"\n') as (judge, store, *_):
        assert store.add(
            record(1, dataset="twin", started=time.time(), parties="north south", state=JobState.SUCCEEDED)
        )
        with fails("E300", party="north"):
            judge.decide(job(), "analyst")


def test_noise_under_two_names_is_charged_to_both(tmp_path: Path) -> None:
    """A job of ε = 1 on the one name leaves 0.5 of 1.5 to the other."""
    with node(tmp_path) as (judge, _, ledger, config):
        spec = noisy()
        ledger.record(Entry(bytes(32), 1, time.time(), "baskets", "weekly", "analyst", charge(spec)))
        contents = spec.model_dump(mode="json", by_alias=True)
        contents["job"]["dataset"] = "twin"
        again = job_of(contents, "job.toml", tmp_path)
        with fails("E300", party="north"):
            judge.decide(again, "analyst", job_id=bytes([1]) * 32)
        told = {each.name: each for each in budget(config, ledger, None, time.time()).datasets}
        assert told["twin"].left.epsilon == "0.5"


LONG = """[[dataset]]
name = "long"
kind = "transactions"
source = "north.dat"
format = "long"
separator = " "
id = "id"
item = "item"
"""


def write(folder: Path, number: int) -> None:
    """Rows for all three readings; by `long` two of them are one transaction."""
    lines = "".join(f"t{each // 2} i{each}\n" for each in range(number))
    (folder / "north.dat").write_text("id item\n" + lines)


def mine(folder: Path, numbers: Iterator[int], *names: str) -> list[bool]:
    """Which of some jobs on the rows as they are may run; each in a process of its own."""
    return [_mined(folder, next(numbers), name) for name in names]


def _mined(folder: Path, number: int, name: str) -> bool:
    with node(folder, "min_new_rows = 5\n", TWIN + LONG) as (judge, store, _, config):
        job_id = bytes([number]) * 32
        assert store.add(record(number, dataset=name, started=float(number), state=JobState.RUNNING))
        sources = Sources(config.dataset, ThreadExecutor(), config.withheld, folder / "blocks")

        async def look() -> bool:
            rows = await sources.rows(name)
            try:
                await judge.check_data(job(dataset=name), rows, sources.rows, job_id)
            except PolicyDenied:
                return False
            store.note_data(job_id, *rows)
            return True

        return asyncio.run(look())


@pytest.mark.parametrize("first", ["baskets", "twin", "long"])
def test_rows_are_compared_with_those_of_jobs_under_any_name(tmp_path: Path, first: str) -> None:
    others = [name for name in ("baskets", "twin", "long") if name != first]
    numbers = iter(range(1, 100))
    write(tmp_path, 20)
    assert mine(tmp_path, numbers, first) == [True]
    write(tmp_path, 21)
    assert mine(tmp_path, numbers, first, *others) == [False] * 3  # else the difference were that of one row
    write(tmp_path, 20)
    assert mine(tmp_path, numbers, first, *others) == [True] * 3  # the very rows of before
    write(tmp_path, 19)
    assert mine(tmp_path, numbers, *others, first) == [False] * 3
    write(tmp_path, 40)
    assert mine(tmp_path, numbers, *others, first) == [True] * 3
    write(tmp_path, 41)
    assert mine(tmp_path, numbers, *others, first) == [False] * 3


@given(steps=st.lists(st.tuples(st.sampled_from(["baskets", "twin"]), st.integers(0, 12)), min_size=2, max_size=6))
def test_no_two_jobs_in_a_row_differ_by_few_rows_whatever_they_are_called(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    folder, numbers, mined = tmp_path_factory.mktemp("named"), iter(range(1, 100)), None
    for name, number in steps:
        write(folder, number)
        (ran,) = mine(folder, numbers, name)
        if mined is not None:
            assert ran <= (number == mined or abs(number - mined) >= 5)
        mined = number if ran else mined


def section(name: str, source: str) -> DatasetSection:
    read = {"format": "sql", "query": "SELECT 1"} if "://" in source else {"format": "basket"}
    return DatasetSection.model_validate({"name": name, "kind": "transactions", "source": source, **read})


@pytest.mark.parametrize(
    ("first", "second", "one"),
    [
        ("postgres://ann@Server/shop", "postgresql://bob@server:5432/shop?sslmode=require", True),
        ("postgres:///shop?host=/run/a&connect_timeout=5", "postgresql:///shop?host=/run/a", True),
        ("postgres:///shop?host=/run/a", "postgres:///shop?host=/run/b", False),
        ("postgres://server/shop", "postgres://server:5433/shop", False),
        ("postgres://server/shop", "postgres://server/other", False),
        ("sqlite:////data/shop.db", "sqlite:////data/./shop.db", True),
        ("/data/rows.dat", "/data/../data/rows.dat", True),
        ("/data/rows.dat", "/data/other.dat", False),
    ],
)
def test_a_source_is_known_however_it_is_written(first: str, second: str, one: bool) -> None:
    assert (alike([section("a", first), section("b", second)])["a"] == ("a", "b")) == one
