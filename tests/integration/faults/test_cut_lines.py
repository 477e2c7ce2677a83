"""A line between two parties that stays cut: what cannot be healed names one of its ends, and no third."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from coordinator.jobs.runner import run_job
from link.errors import ComineError
from tests.examples import crossed
from tests.integration.faults.test_guilty_network import Wire, all_running, by_wire
from tests.party.files import free_ports
from tests.party.nodes import brief, hold, running

pytestmark = [pytest.mark.turn(2), pytest.mark.slow]


@pytest.mark.parametrize(
    ("pair", "begun"),
    crossed([(("east", "south"),), (("north", "south"),)], [False, True]),
)
def test_a_line_between_two_parties_that_stays_cut_accuses_no_third(
    tmp_path: Path, pair: tuple[str, str], *, begun: bool
) -> None:
    """Each has lost the other, and nobody can tell whose end is broken; the third one has lost nobody."""
    (port,) = free_ports(1)

    async def test() -> None:
        async with running(tmp_path, prepare=by_wire(tmp_path, *pair, port)) as nodes:
            hub, wire = nodes.authority.issue("analyst", "coordinator"), Wire(nodes.addresses[pair[1]])
            await wire.open(port)
            release = [hold(node) for node in nodes.nodes.values()] if begun else []
            job = asyncio.create_task(run_job(brief(deadline="5m"), hub, nodes.addresses))
            if begun:
                await all_running(nodes)
            await wire.close()
            for each in release:
                each.set()
            with pytest.raises(ComineError) as caught:
                await job
            assert (caught.value.exit_code, caught.value.party in pair) == (20, True), caught.value
            assert caught.value.code in ("E200", "E201"), caught.value

    asyncio.run(test())
