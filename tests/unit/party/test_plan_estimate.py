"""What a node tells of a job before it has agreed to it: no more than its datasets publish, and nothing unrecorded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from jobs.spec import JobSpec
from link.authority import Authority
from mining.joint import local_sizes
from mining.transactions import Transactions
from party.config import PartyConfig
from party.estimate import local_plan, sizes_of
from protos.v1.plan_pb2 import EstimateRequest, PartyEstimate
from tests.unit.party.nodes import DATA, Client, Nodes, random_rows, refused, running, weekly

TOTAL = sum(map(len, DATA.values()))
MANY = {name: random_rows(seed, 1234) for seed, name in enumerate(DATA)}


def publishing(folder: Path, how: str) -> Callable[[Authority], None]:
    """Lets north publish its sizes so."""

    def write(authority: Authority) -> None:
        file = folder / "north.toml"
        file.write_text(file.read_text().replace('name = "baskets"', f'name = "baskets"\nrows_public = "{how}"'))

    return write


async def ask(client: Client, spec: JobSpec, n_rows: int | None = None) -> PartyEstimate:
    answer: PartyEstimate = await client.stub.Estimate(EstimateRequest(spec=spec.canonical(), n_rows=n_rows))
    return answer


def with_nodes(folder: Path, how: str, test: Callable[[Nodes], Awaitable[None]], **options: object) -> None:
    async def run() -> None:
        async with running(folder, prepare=publishing(folder, how), **options) as nodes:  # type: ignore[arg-type]
            await test(nodes)

    asyncio.run(run())


def recorded(folder: Path, party: str = "north") -> str:
    return (folder / "state" / party / "audit.log").read_text()


def test_exact_sizes_are_those_of_the_rows(tmp_path: Path) -> None:
    spec = weekly(itemsets={"strategy": "one-shot"})

    async def test(nodes: Nodes) -> None:
        speed, sizes = await ask(nodes.clients["north"], spec), await ask(nodes.clients["north"], spec, TOTAL)
        assert (speed.party, speed.rows_public, speed.n_rows) == ("north", "exact", len(DATA["north"]))
        assert speed.HasField("speed")
        assert not speed.HasField("sizes")
        assert all(getattr(speed.speed, field.name) >= 0 for field in speed.speed.DESCRIPTOR.fields)
        assert speed.speed.multiply_s > 0
        own = sizes_of(spec, Transactions.from_rows(DATA["north"]), TOTAL)
        assert list(sizes.sizes.candidates) == list(own.candidates)
        assert list(sizes.sizes.frequent) == list(own.frequent)
        assert sizes.sizes.items.elements == own.items.elements
        assert not sizes.HasField("speed")

    with_nodes(tmp_path, "exact", test)


def test_rounded_sizes_have_few_digits(tmp_path: Path) -> None:
    async def test(nodes: Nodes) -> None:
        client = nodes.clients["north"]
        for answer in (await ask(client, weekly()), await ask(client, weekly(), 3 * 1234)):
            assert answer.n_rows == 1230
        sizes = answer.sizes
        numbers = [*sizes.candidates, *sizes.frequent]
        told = [*numbers, sizes.items.elements, sizes.held.elements, *(level.elements for level in sizes.levels)]
        assert all(len(str(number).rstrip("0")) <= 2 for number in told)

    with_nodes(tmp_path, "rounded", test, data=MANY)


def test_hidden_sizes_are_not_told(tmp_path: Path) -> None:
    async def test(nodes: Nodes) -> None:
        speed, sizes = await ask(nodes.clients["north"], weekly()), await ask(nodes.clients["north"], weekly(), 180)
        for answer in (speed, sizes):
            assert answer.rows_public == "hidden"
            assert not answer.HasField("n_rows")
            assert not answer.HasField("sizes")
        assert speed.HasField("speed")

    with_nodes(tmp_path, "hidden", test)


@pytest.mark.parametrize(("approve", "told"), [("auto", "rounded"), ("manual", "hidden")])
def test_what_a_person_has_yet_to_decide_is_not_told_unasked(tmp_path: Path, approve: str, told: str) -> None:
    def write(authority: Authority) -> None:
        file = tmp_path / "north.toml"
        file.write_text(file.read_text().replace('approve = "auto"', f'approve = "{approve}"'))

    async def run() -> None:
        async with running(tmp_path, prepare=write) as nodes:
            answer = await ask(nodes.clients["north"], weekly(), TOTAL)
            assert answer.rows_public == told
            assert answer.HasField("sizes") is (told == "rounded")

    asyncio.run(run())


def test_no_name_of_an_item_is_told(tmp_path: Path) -> None:
    spec = weekly(itemsets={"strategy": "one-shot", "thin": False})

    async def test(nodes: Nodes) -> None:
        for n_rows in (None, TOTAL):
            answer = await ask(nodes.clients["north"], spec, n_rows)
            assert b"item" not in answer.SerializeToString()

    with_nodes(tmp_path, "exact", test)


@pytest.mark.parametrize("n_rows", [None, TOTAL])
def test_a_job_that_the_policy_refuses_is_told_nothing(tmp_path: Path, n_rows: int | None) -> None:
    async def test(nodes: Nodes) -> None:
        refusal = await refused(ask(nodes.clients["north"], weekly(itemsets={"min_support": "0.01"}), n_rows))
        assert refusal.code == "E300"

    with_nodes(tmp_path, "exact", test, policy="min_support = 0.05")
    assert '"plan-asked"' in recorded(tmp_path)


@pytest.mark.parametrize(("policy", "told"), [("", True), ("max_union_bound = 64", False)])
def test_of_variants_that_the_policy_refuses_nothing_is_told(tmp_path: Path, policy: str, told: bool) -> None:
    """A job with a catalogue and no thinning has no union, which this policy would ask to be bounded."""
    catalogue = [f"item{i}" for i in range(8)]
    spec = weekly(itemsets={"strategy": "level-wise", "universe": "the catalogue", "catalogue": catalogue})

    async def test(nodes: Nodes) -> None:
        sizes = (await ask(nodes.clients["north"], spec, TOTAL)).sizes
        assert sizes.candidates
        assert sizes.mined is told
        assert bool(sizes.levels) is told

    with_nodes(tmp_path, "exact", test, policy=policy)


def test_who_asks_is_recorded_with_the_job(tmp_path: Path) -> None:
    async def test(nodes: Nodes) -> None:
        await ask(nodes.clients["north"], weekly())
        assert "analyst" in recorded(tmp_path)
        assert weekly().digest.hex() in recorded(tmp_path)

    with_nodes(tmp_path, "exact", test)


def test_a_person_s_approval_is_not_needed_for_a_plan(tmp_path: Path) -> None:
    async def test(nodes: Nodes) -> None:
        assert (await ask(nodes.clients["north"], weekly(), TOTAL)).sizes.candidates

    with_nodes(tmp_path, "exact", test, policy='[[policy.approval]]\ndecide = "manual"')


def test_a_coordinator_cannot_lower_the_threshold_by_a_false_number_of_rows(tmp_path: Path) -> None:
    """A count among very many rows is a low share: the party reckons with as many rows as its policy allows."""
    spec = weekly(itemsets={"min_support": 30})

    async def test(nodes: Nodes) -> None:
        honest, lie = [await ask(nodes.clients["north"], spec, n_rows) for n_rows in (100, 1 << 40)]
        assert lie.sizes == honest.sizes  # 30 of at most 100 rows are the least share, 0.3

    with_nodes(tmp_path, "exact", test, policy="min_support = 0.3")


def test_a_fraction_below_the_least_count_is_refused_as_in_the_job(tmp_path: Path) -> None:
    async def test(nodes: Nodes) -> None:
        client = nodes.clients["north"]
        denied = await refused(ask(client, weekly(), 100))
        assert denied.code == "E300"
        assert "set min_support to a count of at least 60, or to a larger fraction" in denied.sentence
        assert (await ask(client, weekly(), 300)).sizes.candidates

    with_nodes(tmp_path, "exact", test, policy="min_support = 0.1\nmin_count = 60")


def test_rows_are_mined_once_for_who_asks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mined: list[int] = []
    real = local_sizes.local_sizes

    def counted(*arguments: object) -> object:
        mined.append(1)
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("party.estimate.local_sizes", counted)

    async def test(nodes: Nodes) -> None:
        client = nodes.clients["north"]
        first = await ask(client, weekly(), TOTAL)
        assert await ask(client, weekly(), TOTAL) == first
        assert len(mined) == 1
        (tmp_path / "north.dat").write_text("item0 item1\n" * 50)
        assert await ask(client, weekly(), TOTAL) != first
        assert len(mined) == 2

    with_nodes(tmp_path, "exact", test)


def test_excluded_items_do_not_count() -> None:
    data = Transactions.from_rows(DATA["north"])
    spec = weekly(itemsets={"exclude": ["item0", "item1"]})
    without = Transactions.from_rows([[i for i in row if i not in ("item0", "item1")] for row in DATA["north"]])
    assert sizes_of(spec, data, TOTAL) == sizes_of(weekly(), without, TOTAL)


def test_a_party_can_plan_alone(tmp_path: Path) -> None:
    async def stopped(nodes: Nodes) -> None:
        pass

    with_nodes(tmp_path, "hidden", stopped)
    plan = local_plan(PartyConfig.load(tmp_path / "north.toml"), weekly())
    assert plan.parties["north"].n_rows == len(DATA["north"])
    assert plan.parties["south"].n_rows is None
    assert plan.n_rows == 3 * len(DATA["north"])
    assert "taken to be like north" in plan.assumptions[0]
    assert all(party.bytes_sent > 0 and party.bytes_sent_at_most is None for party in plan.parties.values())
    assert all(each.seconds is not None for each in plan.alternatives)


def test_an_unknown_way_to_publish_is_refused(tmp_path: Path) -> None:
    from link.errors import ConfigurationError

    with pytest.raises(ConfigurationError, match="rows_public"):
        with_nodes(tmp_path, "some", lambda nodes: asyncio.sleep(0))
