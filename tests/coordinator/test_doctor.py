"""What the doctor finds."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from coordinator.doctor import Check, examine, own_warnings
from jobs.federation import Credentials
from link.errors import PolicyDenied
from link.pki.authority import write_identity
from link.pki.identity import Identity
from link.pki.trust import Trust, fingerprint
from tests.coordinator.nodes import World, world


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


def test_another_version_that_speaks_the_same_wire_is_able_and_one_that_does_not_is_not(tmp_path: Path) -> None:
    found = run(tmp_path, south={"software": "2.0"})
    assert [(check.ready, check.exit_code) for check in found.values()] == [(True, 0), (True, 0)]
    assert not any("comine" in warning for warning in found["north"].warnings)
    assert any("south runs comine 2.0, north runs 1.0" in warning for warning in found["south"].warnings)
    assert run(tmp_path / "wire", south={"wire": "9"})["south"].exit_code == 10


@pytest.mark.parametrize(("seconds", "words"), [(900, "15 minutes ahead of"), (-7200, "2 hours behind")])
def test_clocks_must_agree(tmp_path: Path, seconds: int, words: str) -> None:
    found = run(tmp_path, south={"clock": lambda: time.time() + seconds}, north={"clock": lambda: time.time() + 60})
    assert (found["north"].exit_code, found["south"].exit_code, found["south"].ready) == (0, 10, False)
    assert found["south"].clock_s is not None
    assert abs(found["south"].clock_s - seconds) < 120
    assert f"the clock of south is {words} those of north and the coordinator" in found["south"].problem


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


def certificate(identity: Identity) -> x509.Certificate:
    return x509.load_pem_x509_certificate(identity.certificate_pem)


def test_a_certificate_that_expires_soon_is_warned_of(tmp_path: Path) -> None:
    async def test() -> None:
        async with world() as made:
            await made.servers["south"].stop(0)
            made.nodes["south"].identity = made.authority.issue("south", valid_days=29.2)
            await made.start("south")
            found = await examined(made, tmp_path)
            assert found["north"].warnings == ()
            assert found["south"].ready
            assert found["south"].warnings == ("the certificate of south expires in 29 days; have a new one issued",)
            own = replace(
                made.coordinator,
                certificate_pem=made.authority.issue("hub", "coordinator", valid_days=3).certificate_pem,
            )
            assert own_warnings(made.coordinator, list(found.values())) == ()
            (warning,) = own_warnings(own, list(found.values()))
            assert warning.startswith("the coordinator's certificate expires in 3 days")

    asyncio.run(test())


def test_a_certificate_that_is_revoked_or_not_pinned_is_a_problem(tmp_path: Path) -> None:
    async def test() -> None:
        async with world() as made:
            north, south = (certificate(made.nodes[name].identity) for name in ("north", "south"))
            pins = {"party/north": frozenset({fingerprint(south)})}
            (tmp_path / "pki").mkdir()
            made.authority.write(tmp_path / "pki")
            made.authority.revoke(tmp_path / "pki", [south.serial_number])
            trust = Trust.load(made.authority.certificate_pem, tmp_path / "pki" / "ca.crt", pins=pins)
            made.coordinator = replace(made.coordinator, trust=trust)
            found = await examined(made, tmp_path / "files")
            for check in found.values():
                assert (check.reachable, check.identified, check.code, check.exit_code) == (True, False, "E201", 20)
            assert "certificate of south was revoked on" in found["south"].problem
            assert "certificate of north is not the one that the federation file pins" in found["north"].problem
            assert fingerprint(north) in found["north"].problem

    asyncio.run(test())


def test_who_applies_an_older_list_than_others_is_warned_of(tmp_path: Path) -> None:
    found = run(tmp_path, south={"revocations": 2})
    assert [check.exit_code for check in found.values()] == [0, 0]
    assert found["south"].warnings == ()
    assert found["north"].warnings == (
        "north applies no list of revoked certificates and others number 2; copy the latest ca.crl there",
    )

    async def test() -> None:
        async with world(north={"revocations": 2}) as made:
            (warning,) = own_warnings(made.coordinator, list((await examined(made, tmp_path / "own")).values()))
            assert warning.startswith("the coordinator applies no list of revoked certificates and others number 2")

    asyncio.run(test())


def test_parties_whose_clocks_are_apart_are_warned_of(tmp_path: Path) -> None:
    found = run(tmp_path, south={"clock": lambda: time.time() + 200}, north={"clock": lambda: time.time() - 200})
    for check in found.values():
        assert check.exit_code == 0
        (warning,) = check.warnings
        assert warning.startswith("the clocks of north and south are ")
        assert "warnings" in check.as_data()
