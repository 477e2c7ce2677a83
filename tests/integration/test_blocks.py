"""A node whose rows are counted by processes: the same results; lost workers; cancelled jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.loading import job_of
from link.pki.authority import Authority
from link.transports import grpc_transport
from link.transports.grpc_transport import GrpcTransport
from mining.partitioned import counter
from mining.partitioned.kernels import PairCounts
from party.jobs.job import Job
from protos.v1 import control_pb2 as control
from protos.v1.link_pb2 import Frame
from protos.v1.plan_pb2 import EstimateRequest
from tests.examples import slowly
from tests.mining.partitioned.deadly_kernels import Deadly, Endless, lives
from tests.party.nodes import DATA, Nodes, running, weekly

pytestmark = pytest.mark.turn(2)

NORTH = "north"
ITEMS = [f"item{number}" for number in range(8)]  # a union of names has lists of random lengths, and takes longer


def by_processes(folder: Path) -> Callable[[Authority], None]:
    """Lets one party's dataset be counted by processes."""

    def prepare(_authority: Authority) -> None:
        path = folder / f"{NORTH}.toml"
        text = path.read_text()
        assert 'format = "basket"\n' in text
        path.write_text(text.replace('format = "basket"\n', 'format = "basket"\nengine = "processes"\n'))

    return prepare


async def result_of(nodes: Nodes) -> bytes:
    itemsets = {"min_support": "0.3", "universe": "items", "catalogue": ITEMS, "max_length": 2}
    job_id, ends = await nodes.run(weekly(itemsets=itemsets))
    assert {end.state for end in ends.values()} == {control.SUCCEEDED}
    return (await nodes.clients[NORTH].result(job_id))[1]


def test_a_job_finds_what_it_finds_in_memory(tmp_path: Path) -> None:
    async def test() -> None:
        found = []
        for name in ("memory", "blocks"):
            folder = tmp_path / name
            folder.mkdir()
            async with running(folder, prepare=by_processes(folder) if name == "blocks" else lambda _: None) as nodes:
                found.append(await result_of(nodes))
                blocks = next(folder.rglob("blocks/baskets"), None)
                assert (blocks is not None) == (name == "blocks")
                if blocks is not None:
                    first = list(blocks.iterdir())
                    found.append(await result_of(nodes))
                    assert list(blocks.iterdir()) == first
        assert found[0] == found[1] == found[2]

    asyncio.run(test())


@pytest.mark.slow
def test_nobody_sees_by_plan_steps_or_messages_where_auto_counts_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The choice follows from the size of a source, which is nobody's business."""
    seen: list[object] = []
    advance = Job.progress

    def progress(job: Job, step: str, done: int, total: int) -> None:
        seen.append((step, done, total))
        advance(job, step, done, total)

    class Tapped(GrpcTransport):
        async def send(self, to: str, frame: Frame) -> None:
            if frame.lane not in ("hello", "/receipts"):  # whose certificates and signatures differ in length
                seen.append((frame.sender, to, frame.lane, frame.type, len(frame.body), frame.last))
            await super().send(to, frame)

    monkeypatch.setattr(Job, "progress", progress)
    monkeypatch.setattr(grpc_transport, "GrpcTransport", Tapped)

    async def test(folder: Path, share: str) -> list[str]:
        async with running(folder, party=f"memory_share = {share}") as nodes:
            spec = weekly(itemsets={"min_support": "0.3", "universe": "items", "catalogue": ITEMS})
            answer = await nodes.clients[NORTH].stub.Estimate(EstimateRequest(spec=spec.canonical()))
            answer.ClearField("speed")
            answer.ClearField("certificate_bytes")
            seen.append(answer.SerializeToString())
            _, ends = await nodes.run(spec)
            seen.append([(name, end.state) for name, end in ends.items()])  # rounds vary where parts run at once
        found = sorted(map(repr, seen))
        seen.clear()
        return found

    found = []
    for name, share in (("memory", "1.0"), ("blocks", "0.0000000001")):
        folder = tmp_path / name
        folder.mkdir()
        found.append(asyncio.run(test(folder, share)))
        assert len(list(folder.rglob("blocks/baskets"))) == (3 if name == "blocks" else 0)
    assert found[0] == found[1]
    assert len(found[0]) > 30


@pytest.mark.parametrize("model", slowly(["distributed", "local", "shuffle", "blended"], now=[0]))
def test_jobs_with_noise_run_over_blocks(tmp_path: Path, model: str) -> None:
    """The party with blocks perturbs its records, or counts them with noise, in its processes."""
    privacy: dict[str, object] = {"model": model, "epsilon": "4", "delta": "1e-6"}
    partition = "horizontal" if model == "distributed" else "hybrid"
    match model:
        case "local":
            del privacy["delta"]
        case "shuffle":
            privacy |= {"analyst": "north", "shufflers": ["south"]}
        case "blended":
            privacy |= {"analyst": "east", "opted_in": ["south"]}
    contents = {
        "job": {"name": model, "task": "itemsets", "parties": list(DATA), "dataset": "baskets", "partition": partition},
        "itemsets": {
            "top_k": 2,
            "max_length": 1,
            "universe": "items",
            "catalogue": ITEMS[:6],
        },
        "privacy": privacy,
    }

    async def test() -> None:
        async with running(tmp_path, prepare=by_processes(tmp_path)) as nodes:
            _, ends = await nodes.run(job_of(contents, "job.toml", Path()))
            assert {(end.state, end.error_message) for end in ends.values()} == {(control.SUCCEEDED, "")}

    asyncio.run(test())
    assert next(tmp_path.rglob("blocks/baskets"), None) is not None


def test_a_killed_worker_costs_a_retry_and_two_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with running(tmp_path, prepare=by_processes(tmp_path)) as nodes:
            deaths = tmp_path / "deaths"
            deaths.mkdir()
            monkeypatch.setattr(counter, "PairCounts", lambda *those: Deadly(deaths, 1, PairCounts(*those)))
            await result_of(nodes)
            assert len(list(deaths.iterdir())) == 1
            monkeypatch.setattr(counter, "PairCounts", lambda *those: Deadly(deaths, 1000, PairCounts(*those)))
            _, ends = await nodes.run(weekly(name="again"))
            for end in ends.values():
                assert (end.state, end.error_code, end.error_party) == (control.FAILED, "E103", NORTH)
                assert (
                    end.error_message
                    == f"{NORTH} lacks disk space or memory for this job; the log of {NORTH} has the reason"
                )
            assert "two worker processes have died over the same rows" in nodes.logs[NORTH].getvalue()

    asyncio.run(test())


def test_cancelling_a_job_ends_its_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = tmp_path / "begun"

    async def test() -> None:
        async with running(tmp_path, prepare=by_processes(tmp_path)) as nodes:
            with monkeypatch.context() as patch:
                patch.setattr(counter, "PairCounts", lambda *_: Endless(begun))
                job_id = await nodes.begin(weekly())
                while not (begun.exists() and begun.read_text()):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                await nodes.clients[NORTH].cancel(job_id, "enough")
                ends = await nodes.ends(job_id)
                assert {end.state for end in ends.values()} <= {control.CANCELLED, control.FAILED}
                while lives(int(begun.read_text())):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            await result_of(nodes)

    asyncio.run(test())
