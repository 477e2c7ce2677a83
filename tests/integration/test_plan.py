"""`comine job plan` against nodes, and the job that it foretells."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from coordinator.jobs.planner import plan_job
from coordinator.jobs.runner import run_job
from jobs.loading import load_job
from jobs.schema import generate
from link.errors import PeerError
from link.pki.authority import Authority
from mining.data.transactions import Transactions
from mining.public_sizes import measured
from party.jobs.planning.estimate import Estimates
from protos.v1.plan_pb2 import EstimateRequest, PartyEstimate
from tests.errors import fails
from tests.examples import slowly
from tests.party.files import free_ports
from tests.party.nodes import Nodes, random_rows, running, weekly

pytestmark = pytest.mark.turn(2)

DATA = {name: random_rows(seed, 400) for seed, name in enumerate(("north", "south", "east"))}


def _publishing(folder: Path, *names: str) -> Callable[[Authority], None]:
    """These parties publish what `comine party check` proposes for their data."""

    def write(authority: Authority) -> None:
        for name in names:
            file = folder / f"{name}.toml"
            lines = measured(Transactions.from_rows(DATA[name])).coarse().as_toml()
            file.write_text(file.read_text().replace("[policy]", f"{lines}[policy]", 1))

    return write


@pytest.mark.parametrize(
    "settings",
    slowly(
        [
            {"strategy": "level-wise"},
            {"strategy": "one-shot", "disclose": "candidates"},
            {"prefer": "disclosure", "disclose": "frequent"},
        ],
        now=[0],
    ),
    ids=lambda settings: ", ".join(settings.values()),
)
def test_the_plan_foretells_between_what_the_job_costs(tmp_path: Path, settings: dict[str, str]) -> None:
    spec = weekly(itemsets=settings)

    async def test() -> None:
        async with running(tmp_path, data=DATA, prepare=_publishing(tmp_path, *DATA)) as nodes:
            coordinator = nodes.clients["north"].identity
            plan = await plan_job(spec, coordinator, nodes.addresses)
            result = await run_job(spec, coordinator, nodes.addresses)
            for name, costs in result.parties.items():
                party = plan.parties[name]
                least, most = party.bytes_sent_at_least, party.bytes_sent_at_most
                assert least is not None
                assert most is not None
                assert least <= costs.bytes_sent <= most, name
                assert plan.rounds_at_least is not None
                assert plan.rounds_at_least <= costs.rounds
            assert plan.strategy == result.strategy

    asyncio.run(test())


def test_no_data_moves_and_nothing_is_proposed(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, data=DATA) as nodes:
            await plan_job(weekly(), nodes.clients["north"].identity, nodes.addresses)
            for name in DATA:
                log = (tmp_path / "state" / name / "audit.log").read_text()
                assert "plan-asked" in log
                assert "proposed" not in log
                assert "session" not in log

    asyncio.run(test())


def test_a_party_that_hides_its_sizes_is_named(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, data=DATA, prepare=_publishing(tmp_path, "north", "south")) as nodes:
            plan = await plan_job(weekly(), nodes.clients["north"].identity, nodes.addresses)
            assert plan.parties["east"].n_rows is None
            assert plan.parties["north"].bytes_sent_at_most
            assert any("east hides its sizes" in line for line in plan.assumptions)

    asyncio.run(test())


def test_a_refusal_is_the_party_s_own(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, data=DATA, policy="min_support = 0.5") as nodes:
            with fails("E300") as refused:
                await plan_job(weekly(), nodes.clients["north"].identity, nodes.addresses)
            assert refused.value.party in DATA

    asyncio.run(test())


IMPOSSIBLE: tuple[Callable[[PartyEstimate], None], ...] = (
    lambda answer: setattr(answer, "party", "another"),
    lambda answer: setattr(answer.sizes, "rows", 1 << 60),
    lambda answer: setattr(answer.sizes, "rows", 1234),  # which is not coarse
    lambda answer: setattr(answer.sizes, "rows", 0),  # and yet it tells of items
    lambda answer: setattr(answer.sizes, "items", 3),
    lambda answer: setattr(answer, "certificate_bytes", 1 << 30),
    lambda answer: setattr(answer.speed, "multiply_s", float("nan")),
    lambda answer: answer.sizes.frequent.add(support=123, itemsets=[100]),
    lambda answer: answer.sizes.frequent.add(support=5, itemsets=[150]),
    lambda answer: answer.sizes.frequent.add(support=5, itemsets=[100] * 5000),
    lambda answer: answer.sizes.frequent.extend(list(answer.sizes.frequent)),
    lambda answer: setattr(answer.left, "epsilon", "nonsense"),
)


def test_an_answer_that_no_node_can_mean_is_laid_at_its_door(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    """Of nodes that have measured their speed once."""
    real = Estimates.answer

    async def test() -> None:
        async with running(tmp_path, data=DATA, prepare=_publishing(tmp_path, *DATA)) as nodes:
            for number, change in enumerate(IMPOSSIBLE):

                async def spoiled(
                    self: Estimates,
                    request: EstimateRequest,
                    coordinator: str,
                    change: Callable[[PartyEstimate], None] = change,
                ) -> PartyEstimate:
                    answer = await real(self, request, coordinator)
                    if answer.party == "south":
                        change(answer)
                    return answer

                monkeypatch.setattr(Estimates, "answer", spoiled)
                with subtests.test(number=number), fails("E402", party="south"):
                    await plan_job(weekly(), nodes.clients["north"].identity, nodes.addresses)

    asyncio.run(test())


def test_a_party_that_cannot_be_reached(tmp_path: Path) -> None:
    authority, (port,) = Authority.create(), free_ports(1)
    identity = authority.issue("analyst", "coordinator")
    with pytest.raises(PeerError) as lost:
        asyncio.run(plan_job(weekly(), identity, dict.fromkeys(DATA, f"127.0.0.1:{port}")))
    assert lost.value.exit_code == 20


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a thread of its own, since the nodes run here; the plan is kept for the job that follows."""
    from comine.command import run
    from coordinator.jobs.records.store import Store
    from link.pki.authority import write_identity

    text = (
        '[job]\nname = "weekly"\ntask = "itemsets"\nparties = ["north", "south", "east"]\ndataset = "baskets"\n'
        "[itemsets]\nmin_support = 0.2\n"
    )
    (tmp_path / "job.toml").write_text(text)
    command = ["job", "plan", str(tmp_path / "job.toml"), "--federation", str(tmp_path / "coordinator.toml")]

    async def test(nodes: Nodes) -> list[tuple[int, str]]:
        write_identity(nodes.clients["north"].identity, tmp_path / "pki")
        own = (
            '\n[coordinator]\nca = "pki/ca.crt"\ncertificate = "pki/analyst.crt"\nkey = "pki/analyst.key"\n'
            'state_dir = "kept"\n'
        )
        (tmp_path / "coordinator.toml").write_text((tmp_path / "federation.toml").read_text() + own)
        found = []
        for more in (["--detail"], [], ["--json"]):
            code = await asyncio.to_thread(run, [*command, *more])
            found.append((code, capsys.readouterr().out))
        return found

    async def with_nodes() -> list[tuple[int, str]]:
        async with running(tmp_path, data=DATA, prepare=_publishing(tmp_path, *DATA)) as nodes:
            return await test(nodes)

    (code, shown), (brief_code, brief), (json_code, machine) = asyncio.run(with_nodes())
    assert (code, json_code, brief_code) == (0, 0, 0)
    assert brief.splitlines()[-1] == "all else: --detail"
    assert len(brief.splitlines()) <= 14
    assert shown.startswith("asked        by ")
    assert re.search(r"^cost {9}about [0-9.]+ kB and [0-9]+ s$", shown, re.MULTILINE)
    assert "\nparty\trows\tsends\tbetween\treceives\tseconds\tmemory\nnorth\t≈ 500\t" in shown
    assert "Who learns what\n  - " in shown
    assert "no row was looked at" in " ".join(shown.split())
    assert "In all likely " in shown
    assert "\nas written\tlevel-wise\t" in shown
    assert "not estimated" not in shown
    contents = json.loads(machine)
    assert all(each["seconds"] is not None for each in contents["alternatives"])
    jsonschema.validate(contents, json.loads(generate("plan")))
    kept = Store(tmp_path / "kept").load_plan(load_job(tmp_path / "job.toml").digest)
    assert kept == contents
