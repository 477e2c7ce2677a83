"""A plug-in's job at running nodes: run where each policy names the plug-in, refused where it does not or is gone."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from coordinator.jobs.planner import plan_job
from coordinator.jobs.runner import run_job
from jobs.kinds import packages
from jobs.loading import job_of
from jobs.spec.job import JobSpec
from link.pki.authority import Authority
from party.cli import app
from party.config import PartyConfig
from party.node.logs import open_log
from party.server import Node
from tests.brought import bring
from tests.party.nodes import DATA, PARTIES, refused, running

POINTS = {"sizes": "tests.extensions.basket_sizes", "noisy-sizes": "tests.extensions.noisy_basket_sizes"}


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    bring(tmp_path, monkeypatch, "sizes_empty", "", {packages.GROUP: POINTS}, "basket-sizes")
    packages.added.cache_clear()
    yield
    packages.added.cache_clear()


def job(privacy: Mapping[str, Any] | None = None) -> JobSpec:
    contents = {
        "job": {"name": "sizes", "task": "basket-sizes", "parties": list(PARTIES), "dataset": "baskets"},
        "basket_sizes": {"longest": 4},
        **({} if privacy is None else {"privacy": privacy}),
    }
    return job_of(contents, "the test", Path())


def uninstall(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plug-in is gone; what looked for it before looks again."""
    monkeypatch.setattr("sys.path", [place for place in sys.path if not place.endswith("site-basket-sizes")])
    packages.added.cache_clear()


POLICY = 'kinds = ["sizes", "noisy-sizes"]\n'


def allow_task(folder: Path, *names: str) -> Callable[[Authority], None]:
    """The policies of these parties, or of all, have the task too."""

    def prepare(_: Authority) -> None:
        for name in names or PARTIES:
            path = folder / f"{name}.toml"
            path.write_text(path.read_text().replace('tasks = ["itemsets"', 'tasks = ["basket-sizes", "itemsets"'))

    return prepare


def test_nodes_run_it_and_tell_what_it_has_cost_also_when_it_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, noisy = job(), job({"model": "laplace", "epsilon": "1", "delta": "1e-6"})

    async def main() -> None:
        async with running(tmp_path, policy=POLICY, prepare=allow_task(tmp_path)) as nodes:
            coordinator = nodes.authority.issue("analyst", "coordinator")
            plan = await plan_job(plain, coordinator, nodes.addresses)
            result = await run_job(plain, coordinator, nodes.addresses)
            assert result.finding is not None
            assert result.n_rows == sum(map(len, DATA.values()))
            assert result.disclosure == plan.disclosure
            assert (await run_job(noisy, coordinator, nodes.addresses)).finding is not None
            ids.append(result.job_id.hex())

    ids: list[str] = []
    asyncio.run(main())
    file = tmp_path / "north.toml"
    shown = CliRunner().invoke(app, ["show", str(file), ids[0], "--detail"])
    assert shown.exit_code == 0, shown.output
    assert "basket_sizes.longest" in shown.output
    uninstall(monkeypatch)
    file.write_text(file.read_text().replace(POLICY, "").replace('"basket-sizes", ', ""))
    spent = CliRunner().invoke(app, ["budget", str(file)])
    assert spent.exit_code == 0, spent.output
    assert "laplace" in spent.output

    async def again() -> None:
        node = Node(PartyConfig.load(file), open_log("north", io.StringIO()))
        await node.start()
        await node.stop()

    asyncio.run(again())


def test_a_node_whose_policy_does_not_name_it_refuses(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path, prepare=allow_task(tmp_path)) as nodes:
            refusal = await refused(nodes.clients["north"].propose(job()))
            assert (refusal.code, refusal.party) == ("E300", "north")
            assert "the plug-in 'sizes', which it does not name (rule kinds)" in refusal.sentence

    asyncio.run(main())


def test_a_node_without_the_plug_in_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = job()

    async def main() -> None:
        async with running(tmp_path) as nodes:
            proposal = nodes.clients["north"].signed(spec)
            uninstall(monkeypatch)
            refusal = await refused(nodes.clients["north"].stub.Propose(proposal))
            assert refusal.code == "E100"
            assert "there is no task of that name" in refusal.sentence
            assert "basket" not in refusal.sentence

    asyncio.run(main())
