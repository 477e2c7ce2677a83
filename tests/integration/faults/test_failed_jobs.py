"""Jobs that a coordinator chooses so that they fail on some rows: a node lets few of them fail in a day, and names none
that it refuses by rows then. Numbers beyond a job's bounds fail no job at all."""

from __future__ import annotations

import asyncio
import csv
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator.jobs.runner import run_job
from jobs.loading import job_of
from jobs.results.result import Result
from jobs.spec.job import JobSpec
from link.errors import ComineError
from link.pki.authority import Authority
from tests.party.nodes import Nodes, running

pytestmark = pytest.mark.slow

MOST = 3
TOWNS = [*"ABCDEFGH", "Z"]  # Z is in one row of south alone
ROWS = {
    name: [
        {
            "id": "P3" if (name, number) == ("south", 7) else f"p{number}",  # equal to another one but for its case
            "town": "Z" if (name, number) == ("south", 7) else TOWNS[number % 8],
            "age": str(20 + 7 * number % 60),
        }
        for number in range(40)
    ]
    for name in ("north", "south", "east")
}


def prepared(folder: Path) -> Callable[[Authority], None]:
    def prepare(_: Authority) -> None:
        for name, rows in ROWS.items():
            with (folder / f"{name}.csv").open("w", newline="") as file:
                writer = csv.DictWriter(file, ["id", "town", "age"])
                writer.writeheader()
                writer.writerows(rows)
            dataset = (
                f'[[dataset]]\nname = "people"\nkind = "table"\nsource = "{name}.csv"\nformat = "csv"\nid = "id"\n'
            )
            path = folder / f"{name}.toml"
            text = path.read_text().replace(
                'tasks = ["itemsets", "rules"]', 'tasks = ["naive-bayes", "k-means", "align"]'
            )
            path.write_text(text.replace("[policy]", f"{dataset}[policy]"))

    return prepare


def asks(number: int, case: str = "fold") -> JobSpec:
    """A job that fails at whom has two ids that differ by case alone."""
    named = {"name": f"job-{number}", "task": "align", "partition": "vertical"}
    contents = {
        "job": {**named, "parties": list(ROWS), "dataset": "people"},
        "align": {"mode": "cardinality", "case": case},
    }
    return job_of(contents, "the test", Path())


def learns(towns: list[str], number: int) -> JobSpec:
    """A job that would find out whether anybody has a row of any other town."""
    contents = {
        "job": {"name": f"job-{number}", "task": "naive-bayes", "parties": list(ROWS), "dataset": "people"},
        "naive_bayes": {"target": "town", "attributes": ["age"]},
        "columns": {"town": {"values": towns}, "age": {"cuts": ["40"]}},
    }
    return job_of(contents, "the test", Path())


def reaches(high: int) -> JobSpec:
    """A job that would find out whether any number is above `high`."""
    contents = {
        "job": {"name": f"reach-{high}", "task": "k-means", "parties": list(ROWS), "dataset": "people"},
        "k_means": {"k": 2, "max_iterations": 2, "attributes": ["age"]},
        "columns": {"age": {"low": "0", "high": str(high), "steps": 100}},
    }
    return job_of(contents, "the test", Path())


async def outcome(nodes: Nodes, spec: JobSpec, name: str = "analyst") -> Result | ComineError:
    try:
        return await run_job(spec, nodes.authority.issue(name, "coordinator"), nodes.addresses)
    except ComineError as error:
        return error


def with_nodes(folder: Path, test: Callable[[Nodes], Awaitable[None]]) -> None:
    async def main() -> None:
        policy = f"max_failed_jobs = {MOST}\n"
        async with running(folder, policy=policy, prepare=prepared(folder)) as nodes:
            await test(nodes)

    asyncio.run(main())


def test_few_jobs_may_fail_by_rows_in_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(nodes: Nodes) -> None:
        answers = [await outcome(nodes, asks(number)) for number in range(MOST)]
        told = [(answer.code, answer.party) for answer in answers if isinstance(answer, ComineError)]
        assert told == [("E101", "south")] * MOST
        for name in ROWS:  # over a restart
            await nodes.nodes[name].stop()
            await nodes.restart(name)

        async def load(name: str) -> Any:
            raise AssertionError("rows were looked at")

        for node in nodes.nodes.values():
            monkeypatch.setattr(node.sources, "load", load)
        for spec in (asks(98), asks(99, "keep"), reaches(10)):
            refused = await outcome(nodes, spec)
            assert isinstance(refused, ComineError)
            assert (refused.code, refused.exit_code) == ("E300", 30), refused
            assert "rule max_failed_jobs" in refused.message
        monkeypatch.undo()

        found = await outcome(nodes, asks(100, "keep"), "another")  # whom nobody has reason to doubt
        assert isinstance(found, Result), found
        for node in nodes.nodes.values():
            judge, real = node.host.context.consent.judge, node.host.context.consent.judge.now
            monkeypatch.setattr(judge, "now", lambda real=real: real() + 24 * 3600 + 60)
        assert isinstance(await outcome(nodes, asks(101, "keep")), Result)

    with_nodes(tmp_path, test)


def test_what_others_do_counts_against_nobody(tmp_path: Path) -> None:
    """A party whose peer fails has not failed itself."""

    async def test(nodes: Nodes) -> None:
        for number in range(MOST):
            failed = await outcome(nodes, asks(number))
            assert isinstance(failed, ComineError)
            assert (failed.code, failed.party) == ("E101", "south")
        refused = await outcome(nodes, asks(98, "keep"))
        assert isinstance(refused, ComineError)
        assert (refused.code, refused.party) == ("E300", "south")
        for name in ("north", "east"):
            judge = nodes.nodes[name].host.context.consent.judge
            assert judge.decide(asks(99, "keep"), "analyst") == "auto"

    with_nodes(tmp_path, test)


def test_values_that_a_model_lacks_are_one_bit_each_and_count(tmp_path: Path) -> None:
    """Rows that have others are not left out: the number of rows would tell how many those are."""

    async def test(nodes: Nodes) -> None:
        found = await outcome(nodes, learns(TOWNS, 0))
        assert isinstance(found, Result), found
        assert found.n_rows == sum(map(len, ROWS.values()))
        for number in range(1, MOST + 1):
            failed = await outcome(nodes, learns(TOWNS[:-1], number))
            assert isinstance(failed, ComineError)
            assert (failed.code, failed.party) == ("E101", "south")
        refused = await outcome(nodes, learns(TOWNS, MOST + 1))
        assert isinstance(refused, ComineError)
        assert (refused.code, refused.party) == ("E300", "south")

    with_nodes(tmp_path, test)


def test_no_bounds_find_how_far_numbers_reach(tmp_path: Path) -> None:
    async def test(nodes: Nodes) -> None:
        for high in (1, 20, 50, 78, 79, 1000):
            assert isinstance(await outcome(nodes, reaches(high)), Result), high

    with_nodes(tmp_path, test)
