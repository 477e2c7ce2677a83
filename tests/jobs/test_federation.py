"""The federation file: members, pins, and where a list of revoked certificates is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.federation import Credentials, Federation
from link.pki.authority import Authority, write_identity
from tests.errors import fails

DIGITS = "0123456789abcdef" * 4

TOP = '[federation]\nname = "retail"\n'
COORDINATOR = '[coordinator]\nca = "pki/ca.crt"\ncertificate = "pki/hub.crt"\nkey = "pki/hub.key"\n'
NORTH = '[[party]]\nname = "north"\naddress = "127.0.0.1:1"\n'


def load(folder: Path, contents: str) -> Federation:
    path = folder / "federation.toml"
    path.write_text(contents)
    return Federation.load(path)


def test_without_pins_nothing_is_pinned(tmp_path: Path) -> None:
    assert load(tmp_path, TOP + NORTH).pins == {}


def test_pins_of_parties_and_coordinators(tmp_path: Path) -> None:
    other = "f" * 64
    found = load(
        tmp_path,
        f'{TOP}[coordinator_pins]\nhub = ["{DIGITS}", "{other}"]\n{NORTH}pin = "{DIGITS}"\n'
        '[[party]]\nname = "south"\naddress = "127.0.0.1:2"\n',
    )
    assert found.pins == {"party/north": {DIGITS}, "coordinator/hub": {DIGITS, other}}


@given(st.binary(min_size=32, max_size=32))
def test_a_pin_may_be_written_as_openssl_does(fingerprint: bytes) -> None:
    written = fingerprint.hex(":").upper()
    contents = {"federation": {"name": "x"}, "party": [{"name": "a", "address": "a:1", "pin": written}]}
    assert Federation.model_validate(contents).pins == {"party/a": {fingerprint.hex()}}


@pytest.mark.parametrize(
    "pin",
    [
        '"12"',
        f'"{DIGITS[:-1]}g"',
        "[]",
        "7",
        f'["{DIGITS}", 7]',
    ],
)
def test_what_is_no_pin(tmp_path: Path, pin: str) -> None:
    for contents, key in (
        (f"{TOP}{NORTH}pin = {pin}\n", "[party.0] pin"),
        (f"{TOP}[coordinator_pins]\nhub = {pin}\n{NORTH}", "hub"),
    ):
        with fails("E100") as refused:
            load(tmp_path, contents)
        assert key in refused.value.message


def test_the_list_of_revoked_certificates(tmp_path: Path) -> None:
    """Named, it must exist; unnamed, it is the one beside the authority's certificate."""
    authority, pki = Authority.create(), tmp_path / "pki"
    authority.write(pki)
    write_identity(authority.issue("hub", "coordinator"), pki)
    plain = load(tmp_path, TOP + COORDINATOR + NORTH).coordinator
    named = load(tmp_path, TOP + COORDINATOR + 'crl = "revoked.crl"\n' + NORTH).coordinator
    assert isinstance(plain, Credentials)
    assert isinstance(named, Credentials)
    assert (plain.crl, named.crl) == (None, tmp_path / "revoked.crl")
    assert plain.identity().trust.number == 0
    with fails("E100"):
        named.identity()
    authority.revoke(pki, [7])
    assert plain.identity().trust.number == 1
    (pki / "ca.crl").rename(tmp_path / "revoked.crl")
    assert (plain.identity().trust.number, named.identity().trust.number) == (0, 1)
    Authority.create().revoke(pki, [7])
    with fails("E201"):
        plain.identity()
