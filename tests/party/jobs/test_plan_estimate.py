"""What a node tells of a job before it has agreed to it: what its owner has written down, coarsely, and no more."""

from __future__ import annotations

import asyncio
import datetime as dt
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator.jobs.planner import plan_job
from jobs.spec.job import JobSpec
from link.errors import PolicyDenied
from link.pki.authority import Authority
from mining.partitioned.cores import Cores
from mining.public_sizes import FLOOR
from party.config import PartyConfig
from party.data.block_folders import BlockFolders
from party.data.places import source_of
from party.data.sources import BLOCKS
from party.jobs.planning.estimate import local_plan
from party.policy.judge import Judge
from party.state.node_database import FILE
from party.state.plan_count import PERIOD_S, PlanCount
from protos.v1.plan_pb2 import EstimateRequest, PartyEstimate, PublicSizes
from tests.errors import fails
from tests.party.nodes import DATA, Client, Nodes, random_rows, refused, running, weekly

pytestmark = pytest.mark.turn(3)

NOTHING = PublicSizes()
SECTION = '[dataset.publish]\nrows = 1_234\nitems = 250\n[dataset.publish.frequent]\n"0.2" = [400, 99, 7]\n"0.5" = []\n'


def publishing(folder: Path, section: str = SECTION) -> Callable[[Authority], None]:
    """Lets north publish its sizes so."""

    def write(authority: Authority) -> None:
        file = folder / "north.toml"
        file.write_text(file.read_text().replace("[policy]", f"{section}[policy]", 1))

    return write


async def ask(client: Client, spec: JobSpec) -> PartyEstimate:
    answer: PartyEstimate = await client.stub.Estimate(EstimateRequest(spec=spec.canonical()))
    return answer


def with_nodes(folder: Path, section: str, test: Callable[[Nodes], Awaitable[None]], **options: object) -> None:
    async def run() -> None:
        async with running(folder, prepare=publishing(folder, section), **options) as nodes:  # type: ignore[arg-type]
            await test(nodes)

    asyncio.run(run())


def recorded(folder: Path, party: str = "north") -> str:
    return (folder / "state" / party / "audit.log").read_text()


def test_what_is_written_is_told_coarsely(tmp_path: Path) -> None:
    async def test(nodes: Nodes) -> None:
        answer = await ask(nodes.clients["north"], weekly())
        told = answer.sizes
        assert (told.rows, told.items) == (1000, 200)
        assert [(each.support, list(each.itemsets)) for each in told.frequent] == [(5000, []), (2000, [500])]
        assert answer.party == "north"
        assert all(getattr(answer.speed, field.name) >= 0 for field in answer.speed.DESCRIPTOR.fields)
        assert answer.speed.multiply_s > 0

    with_nodes(tmp_path, SECTION, test)


@pytest.mark.parametrize(
    "section", ["", f"[dataset.publish]\nrows = {FLOOR - 1}\nitems = 5000\n", "[dataset.publish]\nrows = 0\n"]
)
def test_nothing_is_told_unasked_nor_of_few_rows(tmp_path: Path, section: str) -> None:
    async def test(nodes: Nodes) -> None:
        assert (await ask(nodes.clients["north"], weekly())).sizes == NOTHING

    with_nodes(tmp_path, section, test)


@pytest.mark.parametrize(
    "line",
    [
        'rows_public = "exact"',
        "[dataset.publish]\nitems = 5",
        "[dataset.publish]\nrows = -1",
        '[dataset.publish]\nrows = "many"',
        '[dataset.publish]\nrows = 1\n[dataset.publish.frequent]\n"0.013" = [1]',
        '[dataset.publish]\nrows = 1\n[dataset.publish.frequent]\n"often" = [1]',
        '[dataset.publish]\nrows = 1\n[dataset.publish.frequent]\n"0.1" = [1]\n"0.10" = [1]',
        f'[dataset.publish]\nrows = 1\n[dataset.publish.frequent]\n"0.1" = {[1] * 11}',
    ],
)
def test_what_cannot_be_published_is_refused(tmp_path: Path, line: str) -> None:
    with fails("E100"):
        with_nodes(tmp_path, f"{line}\n", lambda nodes: asyncio.sleep(0))


def test_a_job_that_the_policy_refuses_is_told_nothing_and_recorded(tmp_path: Path) -> None:
    async def test(nodes: Nodes) -> None:
        refusal = await refused(ask(nodes.clients["north"], weekly(itemsets={"min_support": "0.01"})))
        assert refusal.code == "E300"

    with_nodes(tmp_path, SECTION, test, policy="min_support = 0.05")
    assert '"plan-asked"' in recorded(tmp_path)


def test_who_asks_is_recorded_with_the_job(tmp_path: Path) -> None:
    async def test(nodes: Nodes) -> None:
        await ask(nodes.clients["north"], weekly())
        assert "analyst" in recorded(tmp_path)
        assert weekly().digest.hex() in recorded(tmp_path)

    with_nodes(tmp_path, "", test)


# -- what min_count would say ------------------------------------------------------------------------------------------
def test_a_curious_neighbour_learns_neither_rule_nor_rows_from_what_plans_say_of_min_count(tmp_path: Path) -> None:
    """The same is said whatever north's rule and rows are, as long as it publishes the same."""
    said = list[tuple[str | None, list[str]]]()
    for folder, least, rows in (("low", 2, 1300), ("high", 5000, 900)):

        async def test(nodes: Nodes) -> None:
            plan = await plan_job(weekly(), nodes.clients["north"].identity, nodes.addresses)
            said.append((plan.warning, plan.advice))

        (tmp_path / folder).mkdir()
        data = {name: random_rows(seed, rows) for seed, name in enumerate(DATA)}
        with_nodes(tmp_path / folder, SECTION, test, data=data, policy=f"min_support = 0.01\nmin_count = {least}")
    assert said[0] == said[1]
    (line,) = (line for line in said[0][1] if "rule min_count" in line)
    assert set(DATA).isdisjoint(line.split())


def test_a_party_tells_itself_whether_its_own_rule_will_be_met(tmp_path: Path) -> None:
    async def stopped(nodes: Nodes) -> None:
        pass

    data = {name: random_rows(seed, 30) for seed, name in enumerate(DATA)}
    with_nodes(tmp_path, "", stopped, data=data, policy="min_support = 0.01\nmin_count = 10")
    plan = local_plan(PartyConfig.load(tmp_path / "north.toml"), weekly())
    assert plan.warning == (
        "Rule min_count, at least 10: min_support = 0.2 comes to that if all parties together have 46 rows or more; "
        "with fewer the job ends at the run; from 0.34 on the rows of north alone suffice."
    )


# -- how many plans --------------------------------------------------------------------------------------------------
def test_plans_are_counted_for_each_coordinator_and_over_restarts(tmp_path: Path) -> None:
    async def first(nodes: Nodes) -> None:
        for _ in range(2):
            await ask(nodes.clients["north"], weekly())
        refusal = await refused(ask(nodes.clients["north"], weekly()))
        assert refusal.code == "E300"
        assert "answers 3 plans of a coordinator within 24 hours (rule max_plans)" in refusal.sentence
        other = nodes.client(nodes.authority.issue("other", "coordinator"))
        await ask(other, weekly())
        assert recorded(tmp_path).count('"plan-asked"') == 3  # of what is refused so, no more is written

    async def spoilt(nodes: Nodes) -> None:
        broken = EstimateRequest(spec=b"no job")
        await refused(nodes.clients["north"].stub.Estimate(broken))
        await first(nodes)
        await nodes.nodes["north"].stop()
        count = PlanCount.open(tmp_path / "state" / "north" / FILE)
        now = dt.datetime.now(dt.UTC).timestamp()
        with fails("E300", party="north"):
            count.take("analyst", 3, "north", now)
        count.take("other", 3, "north", now)
        count.close()

    with_nodes(tmp_path, "", spoilt, policy="max_plans = 3")


def test_the_count_forgets_after_a_day_and_not_when_the_clock_goes_back(tmp_path: Path) -> None:
    count = PlanCount.open(tmp_path / FILE)
    begin = 1_800_000_000.0
    for minute in range(3):
        count.take("analyst", 3, "north", begin + 60 * minute)
    for now in (begin + 200, begin - 10 * PERIOD_S, begin + PERIOD_S - 1):
        with fails("E300", party="north"):
            count.take("analyst", 3, "north", now)
    count.take("analyst", 3, "north", begin + PERIOD_S)
    with pytest.raises(PolicyDenied):
        count.take("analyst", 3, "north", begin + PERIOD_S)
    count.close()


# -- at home -----------------------------------------------------------------------------------------------------------
def test_a_party_can_plan_alone(tmp_path: Path) -> None:
    """With what its own rows would let it publish, whether or not it does."""

    async def stopped(nodes: Nodes) -> None:
        pass

    with_nodes(tmp_path, "", stopped, data={name: random_rows(seed, 1234) for seed, name in enumerate(DATA)})
    plan = local_plan(PartyConfig.load(tmp_path / "north.toml"), weekly())
    assert plan.parties["north"].n_rows == 1000
    assert plan.n_rows == 3000
    assert any("taken to be like north" in line for line in plan.assumptions)
    assert all(party.bytes_sent > 0 for party in plan.parties.values())
    assert all(each.seconds is not None for each in plan.alternatives)


def test_a_party_with_rows_in_blocks_plans_by_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what it publishes, or what its blocks tell without being read; nothing is encoded for it."""

    async def stopped(nodes: Nodes) -> None:
        pass

    with_nodes(tmp_path, "", stopped, data={name: random_rows(seed, 1234) for seed, name in enumerate(DATA)})
    place = tmp_path / "north.toml"
    inside = place.read_text().replace('format = "basket"', 'format = "basket"\nengine = "processes"')
    place.write_text(inside)
    monkeypatch.setattr("party.jobs.planning.estimate.read_dataset", None)
    config = PartyConfig.load(place)
    unknown = local_plan(config, weekly())
    assert unknown.n_rows is None
    assert any("in blocks and nothing is known" in line for line in unknown.assumptions)
    dataset = config.datasets["baskets"]
    folders = BlockFolders(config.party.state_dir / BLOCKS / "baskets", source_of(dataset), (), Cores())
    folders.encode(folders.encoding()).close()
    encoded = local_plan(config, weekly())
    assert encoded.parties["north"].n_rows == 1000
    assert any("only their numbers of rows and items" in line for line in encoded.assumptions)
    place.write_text(inside.replace("[policy]", f"{SECTION}[policy]", 1))
    published = local_plan(PartyConfig.load(place), weekly())
    assert published.parties["north"].n_rows
    assert any("those of [dataset.publish]" in line for line in published.assumptions)


def test_a_plan_keeps_the_event_loop_from_no_other_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The policy looks at the history of jobs, which may be long, or on a slow disk."""
    where = list[bool]()
    decide = Judge.decide

    def looked(judge: Judge, *arguments: Any, **more: Any) -> Any:
        where.append(threading.current_thread() is threading.main_thread())
        return decide(judge, *arguments, **more)

    async def test(nodes: Nodes) -> None:
        monkeypatch.setattr(Judge, "decide", looked)
        await ask(nodes.clients["north"], weekly())

    with_nodes(tmp_path, SECTION, test)
    assert where == [False]
