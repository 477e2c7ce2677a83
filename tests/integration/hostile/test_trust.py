"""Certificates are revoked and pinned while nodes run, each a process with its own files.

The nodes are shared by the tests that revoke; each leaves them with certificates that are good everywhere.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509

from link.pki.authority import Authority, write_identity
from link.pki.issued import revoke
from link.pki.trust import fingerprint
from tests.integration.processes import Organisations, Ran, comine, command

pytestmark = pytest.mark.slow

DATA = {
    "north": [["bread", "milk"], ["bread"], ["milk", "tea"]] * 5,
    "south": [["bread", "milk"], ["milk"]] * 6,
    "east": [["bread", "milk", "tea"]] * 7,
}
MEMBERS = (*DATA, "hub")


def create(folder: Path) -> Organisations:
    """A federation in which every member has a list of revoked certificates of its own; nothing runs yet."""
    made = Organisations.create(folder, DATA)
    made.authority.revoke(folder / "pki", ())
    for name in MEMBERS:
        ship(folder, name)
        file = folder / ("federation.toml" if name == "hub" else f"{name}.toml")
        key = f'key = "pki/{name}.key"\n'
        file.write_text(file.read_text().replace(key, f'{key}crl = "{name}.crl"\n'))
    return made


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisations]:
    """Running nodes."""
    made = create(tmp_path_factory.mktemp("trust"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Organisations]:
    """The files of a federation of which nothing runs yet."""
    found = create(tmp_path)
    try:
        yield found
    finally:
        found.stop()


def ship(folder: Path, *members: str, list_: Path | None = None) -> None:
    """Puts the authority's list into place at some members, as one should: all at once."""
    for name in members:
        shutil.copy(list_ or folder / "pki" / "ca.crl", folder / "new.crl")
        os.replace(folder / "new.crl", folder / f"{name}.crl")


def refused(ran: Ran, *words: str) -> None:
    assert ran.code == 20, ran.err
    assert all(word in ran.err for word in words), ran.err
    assert "E201" in ran.err


def pin(folder: Path, name: str) -> str:
    return fingerprint(x509.load_pem_x509_certificate((folder / "pki" / f"{name}.crt").read_bytes()))


def run(made: Organisations, federation: str = "federation.toml") -> Ran:
    return made.run_here(made.job(), federation=federation)


def renew(world: Organisations, name: str) -> None:
    """Gives a party a new certificate, with which its node starts again."""
    world.nodes[name].send(signal.SIGTERM)
    assert world.nodes[name].end().code == 0
    write_identity(world.authority.issue(name), world.folder / "pki", force=True)
    world.start(name)


def test_revoking_takes_hold_in_running_nodes(world: Organisations) -> None:
    folder, pki = world.folder, world.folder / "pki"
    for name in MEMBERS:
        ship(folder, name)
    assert run(world).code == 0

    revoke(pki, "east")
    ship(folder, "hub")  # the coordinator refuses east, though east would take the job
    refused(run(world), "the certificate of east was revoked on", "comine pki request east")
    doctor = comine("doctor", "--federation", "federation.toml", cwd=folder)
    refused_rows = [line for line in doctor.out.splitlines() if line.startswith("east\t")]
    assert doctor.code == 20
    assert "was revoked on" in refused_rows[0]
    told = json.loads(command("doctor", "--federation", "federation.toml", "--json", cwd=folder).out)
    newest = told["coordinator"]["revocations"]
    assert f"north applies list number {newest - 1} of revoked certificates and others number {newest}" in doctor.out
    parties = {party["party"]: party for party in told["parties"]}
    assert [parties[name]["revocations"] for name in DATA] == [newest - 1, newest - 1, None]
    assert (parties["east"]["code"], len(parties["north"]["warnings"])) == ("E201", 1)
    renew(world, "east")


def test_peers_refuse_a_revoked_party(world: Organisations) -> None:
    for name, other in (("south", "north"), ("east", "south")):
        revoke(world.folder / "pki", name)
        ship(world.folder, other)
        refused(run(world), f"the certificate of {name} was revoked on")
        renew(world, name)
        assert run(world).code == 0


def test_a_revoked_coordinator_is_refused_until_it_has_a_new_certificate(world: Organisations) -> None:
    folder, pki = world.folder, world.folder / "pki"
    revoke(pki, "hub")
    ship(folder, "north")
    refused(run(world), "the certificate of hub was revoked on")
    write_identity(world.authority.issue("hub", "coordinator"), pki, force=True)
    assert run(world).code == 0


def test_what_is_revoked_or_pinned_wrongly_does_not_start(made: Organisations) -> None:
    folder, pki = made.folder, made.folder / "pki"
    revoke(pki, "north")
    ship(folder, "north", "hub")
    refused(comine("party", "serve", "north.toml", cwd=folder), "the certificate of north was revoked on")
    (folder / "other").mkdir()
    foreign = Authority.create()
    foreign.revoke(folder / "other", [1])
    ship(folder, "south", "hub", list_=folder / "other" / "ca.crl")
    refused(
        comine("party", "serve", "south.toml", cwd=folder), "south.crl was not signed by this federation's authority"
    )
    refused(run(made), "hub.crl was not signed by this federation's authority")
    file = folder / "federation.toml"
    file.write_text(file.read_text() + f'[coordinator_pins]\nhub = "{"0" * 64}"\n')
    ship(folder, "hub")
    refused(run(made), "the certificate of hub is not the one that the federation file pins")


def test_pins_hold_both_ways(made: Organisations) -> None:
    folder = made.folder
    text = (folder / "federation.toml").read_text()

    def pinned(name: str, party: str, pins: str) -> str:
        (folder / name).write_text(text.replace(f'name = "{party}"\n', f'name = "{party}"\npin = {pins}\n'))
        return name

    right, wrong = f'"{pin(folder, "south")}"', f'"{"0" * 64}"'
    (folder / "north.federation.toml").write_text(
        text.replace("[[party]]", f'[coordinator_pins]\nhub = "{pin(folder, "hub").upper()}"\n[[party]]', 1)
    )
    file = folder / "north.toml"
    file.write_text(file.read_text().replace('federation = "federation.toml"', 'federation = "north.federation.toml"'))
    made.start()
    assert run(made, pinned("right.toml", "south", f"[{wrong}, {right}]")).code == 0
    refused(
        run(made, pinned("wrong.toml", "south", wrong)), "certificate of south is not the one", pin(folder, "south")
    )

    write_identity(made.authority.issue("hub", "coordinator"), folder / "pki", force=True)
    refused(run(made), "certificate of hub is not the one that the federation file pins")
