"""What the doctor finds."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from coordinator.doctor import Check, examine
from jobs.federation import Credentials
from link.authority import write_identity
from link.errors import PolicyDenied
from tests.unit.coordinator.nodes import World, world


async def examined(made: World, folder: Path) -> dict[str, Check]:
    made.authority.write(folder)
    write_identity(made.coordinator, folder)
    credentials = Credentials(ca=folder / "ca.crt", certificate=folder / "hub.crt", key=folder / "hub.key")
    return {check.party: check for check in await examine(made.coordinator, credentials, made.addresses)}


def run(folder: Path, **changes: dict[str, Any]) -> dict[str, Check]:
    async def test() -> dict[str, Check]:
        async with world(**changes) as made:
            return await examined(made, folder)

    return asyncio.run(test())


def test_all_is_well(tmp_path: Path) -> None:
    for check in run(tmp_path).values():
        assert (check.reachable, check.identified, check.ready, check.exit_code) == (True, True, True, 0)
        assert check.days_left is not None
        assert 800 < check.days_left < 830
        assert check.software == "1.0"


def test_versions_must_be_equal(tmp_path: Path) -> None:
    found = run(tmp_path, south={"software": "2.0"})
    assert (found["north"].exit_code, found["south"].exit_code, found["south"].code) == (0, 10, "E102")
    assert run(tmp_path / "wire", south={"wire": "9"})["south"].exit_code == 10


@pytest.mark.parametrize(("seconds", "words"), [(900, "15 minutes ahead of"), (-7200, "120 minutes behind")])
def test_clocks_must_agree(tmp_path: Path, seconds: int, words: str) -> None:
    found = run(tmp_path, south={"clock": lambda: time.time() + seconds}, north={"clock": lambda: time.time() + 60})
    assert (found["north"].exit_code, found["south"].exit_code, found["south"].ready) == (0, 10, False)
    assert found["south"].clock_s is not None
    assert abs(found["south"].clock_s - seconds) < 120
    assert f"the clock of south is {words} the coordinator's" in found["south"].problem


def test_who_refuses_the_coordinator_is_reachable(tmp_path: Path) -> None:
    check = run(tmp_path, south={"refuse": {"Describe": PolicyDenied("not you")}})["south"]
    assert (check.reachable, check.ready, check.problem) == (True, False, "not you")


def test_who_is_down_is_not(tmp_path: Path) -> None:
    async def test() -> None:
        async with world() as made:
            await made.servers["south"].stop(0)
            found = await examined(made, tmp_path)
            assert (found["south"].reachable, found["south"].exit_code) == (False, 20)
            assert found["north"].exit_code == 0
            made.addresses["south"] = made.addresses["north"]
            found = await examined(made, tmp_path / "swapped")
            assert (found["south"].reachable, found["south"].identified, found["south"].code) == (True, False, "E201")

    asyncio.run(test())
