"""The coordinator deals randomness to two nodes: over real streams, to the joined table's itemsets."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from coordinator.jobs.driver import Driver
from coordinator.jobs.lifecycle import Job, State
from coordinator.jobs.runner import draft, run_job
from jobs.loading import job_of
from link.errors import from_code
from link.pki.authority import Authority
from mining.reference.pooled import brute_force
from protos.v1 import control_pb2 as control
from tests.party.nodes import Nodes, hold, running

COLUMNS = {"north": ("n1", "n2"), "south": ("s1", "s2", "s3")}
random.seed(1)
CELLS = {
    person: {column: random.choice("xy") for columns in COLUMNS.values() for column in columns}
    for person in (f"p{number}" for number in range(40))
}
SPEC = job_of(
    {
        "job": {
            "name": "columns",
            "task": "itemsets",
            "parties": list(COLUMNS),
            "dataset": "people",
            "partition": "vertical",
        },
        "itemsets": {"min_support": 8, "engine": "replicated"},
    },
    "the test",
    Path(),
)


@asynccontextmanager
async def nodes(folder: Path) -> AsyncIterator[Nodes]:
    """Nodes with tables, whose policies allow any job."""

    def tables(authority: Authority) -> None:
        for name, columns in COLUMNS.items():
            people = random.sample(sorted(CELLS), len(CELLS))
            lines = [",".join((person, *(CELLS[person][column] for column in columns))) for person in people]
            (folder / f"{name}.csv").write_text("\n".join([",".join(("id", *columns)), *lines]) + "\n")
            dataset = (
                f'[[dataset]]\nname = "people"\nkind = "table"\nsource = "{name}.csv"\nformat = "csv"\nid = "id"\n'
            )
            with (folder / f"{name}.toml").open("a") as config:
                config.write(dataset)

    async with running(folder, data={name: [["a"]] for name in COLUMNS}, prepare=tables) as made:
        yield made


def test_two_parties_get_the_itemsets_of_the_joined_table(tmp_path: Path) -> None:
    expected = brute_force(([f"{column}={cell}" for column, cell in row.items()] for row in CELLS.values()), 8)
    assert max(map(len, expected)) > 2

    async def test() -> None:
        async with nodes(tmp_path) as made:
            result = await run_job(SPEC, made.authority.issue("analyst", "coordinator"), made.addresses)
            assert result.n_rows == len(CELLS)
            assert result.finding is not None
            assert {frozenset(itemset): count for itemset, count in result.finding.itemsets.rows()} == expected

    asyncio.run(test())


def test_a_coordinator_that_was_restarted_keeps_no_randomness(tmp_path: Path) -> None:
    async def test() -> None:
        async with nodes(tmp_path) as made:
            identity = made.authority.issue("analyst", "coordinator")
            go, started = [hold(node) for node in made.nodes.values()], asyncio.Event()

            def tell(job: Job) -> None:
                if job.state is State.RUNNING:
                    started.set()

            record = draft(SPEC, identity, 600)
            first = asyncio.ensure_future(Driver(record, identity, made.addresses, on_move=tell).drive())
            await started.wait()
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            for event in go:
                event.set()
            second = Driver(record, identity, made.addresses)
            job = await second.drive()
            assert job.state is State.FAILED
            assert "keeps none of it" in str(second.error)

    asyncio.run(test())


def test_parties_wait_for_a_coordinator_that_has_gone_until_the_deadline(tmp_path: Path) -> None:
    spec = SPEC.model_copy(update={"job": SPEC.job.model_copy(update={"deadline": "5s"})})

    async def test() -> None:
        async with nodes(tmp_path) as made:
            job_id, approvals = await made.agree(spec)
            starts = [
                client.stub.Start(
                    control.StartRequest(job_id=job_id, attempt=1, approvals=approvals, seed=bytes([number]) * 32)
                )
                for number, client in enumerate(made.clients.values())
            ]
            await asyncio.gather(*starts)
            while any(node.host.running for node in made.nodes.values()):  # noqa: ASYNC110 - nobody watches
                await asyncio.sleep(0.05)
            last = (await made.ends(job_id))["south"]
            assert last.state == control.FAILED
            error = from_code(last.error_code, last.error_message, party=last.error_party)
            assert error.code == "E600"
            assert "did not answer before the job's deadline of 5 s" in error.message

    asyncio.run(test())


def test_a_start_without_a_seed_is_refused(tmp_path: Path) -> None:
    async def test() -> None:
        async with nodes(tmp_path) as made:
            job_id, approvals = await made.agree(SPEC)
            with pytest.raises(Exception, match="has sent no seed"):
                await made.clients["north"].start(job_id, approvals)

    asyncio.run(test())
