"""A plan is no way to ask for rows: its answer is the same whatever they are, whatever job it is asked for.

For random jobs the whole answer of a node, or its refusal, is compared byte by byte over data that differ in one row,
in everything, or that cannot be read at all.
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import grpc
import pytest

from jobs.loading import job_of
from jobs.plan.calibration import Speed
from jobs.spec.job import JobSpec
from link.errors import ConfigurationError
from link.executor import Executor
from link.pki.authority import Authority
from protos.v1.control_pb2 import DescribeRequest, Description
from protos.v1.plan_pb2 import EstimateRequest, PartyEstimate
from tests.examples import slowly
from tests.mining.joint import model_jobs_world
from tests.mining.joint.anonymisation import anonymisation_jobs_world, vertical_anonymisation_world
from tests.party.nodes import Client, Nodes, random_rows, running, weekly

pytestmark = pytest.mark.turn(2)

PARTIES: Final = ("north", "south", "east")
JOBS: Final = 20
ASKED: Final = 1_000  # plans for one dataset on a cluster
PUBLISH: Final = '[dataset.publish]\nrows = 500\nitems = 100\n[dataset.publish.frequent]\n"0.1" = [100]\n'
TASKS: Final = '"itemsets", "rules", "align", "naive-bayes", "decision-tree", "k-means", "anonymize"'
POLICIES: Final = {
    "open": 'keys = "union"',
    "as init writes it": "min_parties = 3\nmin_support = 0.001\nmin_count = 10\nmin_insider_k = 2\n"
    'party_sets = "fixed"\nmin_new_rows = 100\nwithhold = ["hiv*"]',
}
ROWS: Final = [*random_rows(1, 400), *[["item0", "hiv"]] * 40, ["rare"]]
HEAD: Final = "id,age,town,sex,ill,note\n"


def transactions(rows: list[list[str]]) -> str:
    return "\n".join(map(" ".join, rows)) + "\n"


def people(number: int, ill: str) -> str:
    return HEAD + "".join(f"p{place},{20 + place % 50},t{place % 7},f,{ill},n\n" for place in range(number))


STATES: Final[dict[str, tuple[bytes, bytes] | None]] = {
    "as they are": (transactions(ROWS).encode(), people(400, "flu").encode()),
    "one row less": (transactions(ROWS[:-1]).encode(), people(399, "flu").encode()),
    "another item": (transactions([*ROWS[:-1], ["hiv"]]).encode(), people(400, "hiv").encode()),
    "much more": (transactions(random_rows(7, 3000)).encode(), people(4000, "cold").encode()),
    "none": (b"", HEAD.encode()),
    "no table and no text": (b"\xff\xfe\x00", b"what\n1,2,3\n"),
    "absent": None,
}


def only(item: str) -> list[str]:
    """Patterns that exclude everything but the item."""
    found = [f"{item}?*"]
    for length in range(len(item)):
        found += [f"{item[:length]}[!{item[length]}]*", *([item[:length]] if length else [])]
    return found


def some_job(draw: random.Random) -> JobSpec:
    """Any job that a specification allows."""
    while True:
        try:
            return draw.choice([_of_itemsets, _of_itemsets, _over_columns, _under_noise, _of_people])(draw)
        except ConfigurationError:
            continue


def _itemsets(draw: random.Random) -> dict[str, Any]:
    support = draw.choice([draw.randint(1, 60), Decimal(draw.randint(1, 999)).scaleb(-3)])
    given: dict[str, Any] = {"min_support": support}
    if draw.random() < 0.7:
        given["exclude"] = [*only(draw.choice(["hiv", "item3", "rare", "absent"])), *draw.choice([["hiv*"], []])]
    if draw.random() < 0.5:
        given["max_length"] = draw.randint(1, 4)
    return given


def _of_itemsets(draw: random.Random) -> JobSpec:
    given = _itemsets(draw) | {
        "lambda": draw.choice([Decimal("0"), Decimal("0.5"), Decimal("0.999999")]),
        "strategy": draw.choice(["auto", "level-wise", "one-shot"]),
        "disclose": draw.choice(["candidates", "supports", "frequent"]),
        "prefer": draw.choice(["disclosure", "speed"]),
        "thin": draw.random() < 0.5,
    }
    if draw.random() < 0.5:
        given |= {"universe": "c.txt", "catalogue": ["bread", draw.choice(["hiv", "milk"])]}
    else:
        given["universe"] = draw.choice(["auto", "hidden", "hidden-all", "all-items", "frequent-items"])
    return weekly(itemsets=given)


def _over_columns(draw: random.Random) -> JobSpec:
    task = draw.choice(["itemsets", "align"])
    contents: dict[str, Any] = {
        "job": {"name": "j", "task": task, "parties": [*PARTIES], "dataset": "people", "partition": "vertical"},
        "align": {"mode": draw.choice(["intersection", "union", "cardinality"])},
    }
    if draw.random() < 0.5:
        contents["align"]["bound"] = draw.randint(1, 5000)
    if task == "itemsets":
        contents["itemsets"] = _itemsets(draw)
    return job_of(contents, "the test", Path())


def _under_noise(draw: random.Random) -> JobSpec:
    model = draw.choice(["distributed", "shuffle", "local", "blended"])
    privacy: dict[str, Any] = {"model": model, "epsilon": draw.choice(["0.5", "2"]), "delta": "1e-6"}
    if model in ("distributed", "shuffle"):
        privacy["colluding"] = 1
    if model == "local":
        privacy = {"model": model, "epsilon": "2"}
    if model == "blended":
        privacy |= {"opted_in": ["north"]}
    given = _itemsets(draw) | {"universe": "c.txt", "catalogue": ["item0", "item1", "hiv"]}
    contents = {
        "job": {"name": "j", "task": "itemsets", "parties": [*PARTIES], "dataset": "baskets", "partition": "hybrid"},
        "itemsets": given,
        "privacy": privacy,
    }
    return job_of(contents, "the test", Path())


def _of_people(draw: random.Random) -> JobSpec:
    partition = draw.choice(["horizontal", "vertical"])
    task = draw.choice(["naive-bayes", "decision-tree", "k-means", "anonymize"])
    if task != "anonymize":
        return model_jobs_world.job(task, PARTIES, partition=partition)  # type: ignore[arg-type]
    if partition == "vertical":
        return vertical_anonymisation_world.job(PARTIES)
    return anonymisation_jobs_world.job(PARTIES, insider_k=draw.randint(1, 3), model={"k": draw.randint(2, 9)})


def put(folder: Path, state: str) -> None:
    contents = STATES[state]
    for place, file in enumerate((folder / "north.dat", folder / "north.csv")):
        file.unlink(missing_ok=True)
        if contents is not None:
            file.write_bytes(contents[place])


async def answered(client: Client, spec: JobSpec, claimed: int) -> tuple[str, bytes | str | None]:
    """Whatever the node says; the number of rows that was claimed to earlier versions is sent along."""
    request = EstimateRequest.FromString(EstimateRequest(spec=spec.canonical()).SerializeToString() + _varint(claimed))
    try:
        return "answer", (await client.stub.Estimate(request)).SerializeToString(deterministic=True)
    except grpc.aio.AioRpcError as error:
        return str(dict(error.trailing_metadata() or ()).get("comine-code")), error.details()


def _varint(number: int) -> bytes:
    """Field 2 with this number."""
    found = bytearray([2 << 3])
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


async def decided(client: Client, spec: JobSpec, nonce: bytes) -> tuple[str, bytes | str | None]:
    """What the node says to a proposal, which is taken back again."""
    try:
        job_id, approval = await client.decide(spec, nonce)
    except grpc.aio.AioRpcError as error:
        return str(dict(error.trailing_metadata() or ()).get("comine-code")), error.details()
    await client.cancel(job_id)
    return "approved" if approval is not None else "awaits", None


def prepare(folder: Path) -> Callable[[Authority], None]:
    """North publishes sizes of two datasets, and its policy allows every task."""

    def write(authority: Authority) -> None:
        file = folder / "north.toml"
        people = '[[dataset]]\nname = "people"\nkind = "table"\nsource = "north.csv"\nformat = "csv"\n'
        text = file.read_text().replace('"itemsets", "rules"', TASKS)
        file.write_text(text.replace("[policy]", f"{PUBLISH}{people}{PUBLISH}[policy]", 1))
        put(folder, "as they are")

    return write


@pytest.mark.parametrize("policy", slowly(POLICIES, now=[1]))
def test_no_answer_hangs_on_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    async def still(executor: Executor) -> Speed:
        return Speed(*[1e-6] * 8)

    monkeypatch.setattr("party.jobs.planning.estimate.measure", still)

    async def test(nodes: Nodes) -> None:
        draw, client = random.Random(1), nodes.clients["north"]
        before = weekly(itemsets={"min_support": 20, "exclude": ["hiv*"]})
        job_id = await nodes.begin(before)  # which rules between jobs would compare the next one's rows with
        await nodes.all(lambda each: each.watch(job_id))
        jobs = [(some_job(draw), draw.choice([0, 1, 441, 1 << 40])) for _ in range(JOBS)]
        heard: dict[str, list[tuple[str, bytes | str | None]]] = {}
        for state in STATES:
            put(tmp_path, state)
            heard[state] = [await answered(client, spec, claimed) for spec, claimed in jobs]
            assert heard[state] == heard["as they are"], state
        kinds = [kind for kind, _ in heard["absent"]]
        assert kinds.count("answer") >= JOBS / 10
        assert set(kinds) <= {"answer", "E300", "E100"}
        answers = set()
        for kind, answer in heard["absent"]:
            if kind == "answer":
                told = PartyEstimate.FromString(answer)
                answers.add(told.SerializeToString(deterministic=True))
        assert len(answers) == 1  # nor does it hang on the job: both datasets publish the same

    async def run() -> None:
        rules = f"max_plans = 10_000\n{POLICIES[policy]}"
        rows = dict.fromkeys(PARTIES, ROWS)
        async with running(tmp_path, prepare=prepare(tmp_path), policy=rules, data=rows) as nodes:
            await test(nodes)

    asyncio.run(run())


@pytest.mark.parametrize("policy", slowly(POLICIES, now=[1]))
def test_no_answer_to_a_proposal_hangs_on_rows(tmp_path: Path, policy: str) -> None:
    """Nor does what a node says of a job before all parties have agreed to it, or what it says of itself."""

    async def test(nodes: Nodes) -> None:
        draw, client = random.Random(3), nodes.clients["north"]
        job_id = await nodes.begin(weekly(itemsets={"min_support": 20, "exclude": ["hiv*"]}))
        await nodes.all(lambda each: each.watch(job_id))
        jobs = [some_job(draw) for _ in range(JOBS // 3)]
        said: dict[str, list[tuple[str, bytes | str | None]]] = {}
        described = {}
        for place, state in enumerate(STATES):
            put(tmp_path, state)
            said[state] = [
                await decided(client, spec, bytes([place, number, *[0] * 14])) for number, spec in enumerate(jobs)
            ]
            assert said[state] == said["as they are"], state
            description = Description.FromString((await client.stub.Describe(DescribeRequest())).description)
            description.ClearField("now")
            described[state] = description.SerializeToString(deterministic=True)
        assert len(set(described.values())) == 1
        assert "approved" in {kind for kind, _ in said["absent"]}

    async def run() -> None:
        rows = dict.fromkeys(PARTIES, ROWS)
        async with running(tmp_path, prepare=prepare(tmp_path), policy=POLICIES[policy], data=rows) as nodes:
            await test(nodes)

    asyncio.run(run())


def test_nothing_of_a_cluster_hangs_on_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand plans of chosen jobs tell one time of a level, the owner's own; nobody calls the cluster for it."""

    async def still(executor: Executor) -> Speed:
        return Speed(*[1e-6] * 8)

    monkeypatch.setattr("party.jobs.planning.estimate.measure", still)

    def on_a_cluster(url: str) -> Callable[[Authority], None]:
        def write(_authority: Authority) -> None:
            file = tmp_path / "north.toml"
            lake = f'source = "{tmp_path}/north.dat"\nformat = "parquet"\nengine = "spark"\nspark = "{url}"\n'
            text = file.read_text().replace('source = "north.dat"\nformat = "basket"\n', lake)
            file.write_text(text.replace("[policy]", "[dataset.publish]\nrows = 500\nlevel_s = 2.6\n[policy]", 1))

        return write

    async def test(nodes: Nodes) -> None:
        draw, client = random.Random(5), nodes.clients["north"]
        jobs = [_of_itemsets(draw) for _ in range(ASKED // len(STATES) + 1)]
        heard = []
        for state in STATES:
            put(tmp_path, state)
            heard += [await answered(client, spec, 0) for spec in jobs]
        assert len(heard) >= ASKED
        told = [PartyEstimate.FromString(answer) for kind, answer in heard if kind == "answer"]
        assert len(told) >= ASKED / 2
        assert {each.sizes.level_ms for each in told} == {2000}

    async def run(url: str) -> None:
        rows = dict.fromkeys(PARTIES, ROWS)
        async with running(tmp_path, prepare=on_a_cluster(url), policy="max_plans = 10_000", data=rows) as nodes:
            await test(nodes)

    with socket.create_server(("127.0.0.1", 0)) as cluster:
        asyncio.run(run(f"sc://127.0.0.1:{cluster.getsockname()[1]}"))
        cluster.setblocking(False)
        with pytest.raises(BlockingIOError):
            cluster.accept()
