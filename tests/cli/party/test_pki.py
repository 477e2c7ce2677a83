"""`comine pki`: an authority, certificates, and what is in them."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path
from typing import Any

from tests.cli.conftest import Comine


def test_an_authority_and_its_certificates(comine: Comine, tmp_path: Path) -> None:
    assert comine("pki", "init").code == 0
    assert comine("pki", "issue", "north", "--host", "127.0.0.1", "--host", "node.example").code == 0
    assert comine("pki", "issue", "hub", "--role", "coordinator").code == 0
    for name in ("ca", "north", "hub"):
        assert stat.S_IMODE((tmp_path / f"pki/{name}.key").stat().st_mode) == 0o600
    shown = json.loads(comine("pki", "show", "--json").out)["certificates"]
    assert [(c["name"], c["role"]) for c in shown[1:]] == [("hub", "coordinator"), ("north", "party")]
    assert "127.0.0.1" in shown[2]["hosts"]
    assert comine("pki", "show").out.count("\n") == 4


def test_nothing_is_replaced_unasked(comine: Comine, tmp_path: Path) -> None:
    assert comine("pki", "init").code == 0
    before = (tmp_path / "pki/ca.key").read_bytes()
    assert comine("pki", "init").code == 10
    assert (tmp_path / "pki/ca.key").read_bytes() == before
    assert comine("pki", "init", "--force").code == 0
    assert (tmp_path / "pki/ca.key").read_bytes() != before


def test_wrong_names_roles_and_folders(comine: Comine) -> None:
    assert comine("pki", "issue", "north").code == 10
    assert comine("pki", "init").code == 0
    assert comine("pki", "issue", "North Pole").code == 10
    assert comine("pki", "issue", "all").code == 10
    assert comine("pki", "issue", "north", "--role", "king").code == 2
    assert comine("pki", "show", "--out", "elsewhere").code == 10


def test_clients_of_the_frequency_service_have_a_role_of_their_own(comine: Comine) -> None:
    assert comine("pki", "init").code == 0
    assert comine("pki", "issue", "phone", "--role", "client").code == 0
    shown = json.loads(comine("pki", "show", "--json").out)["certificates"]
    assert [(c["name"], c["role"], c["hosts"]) for c in shown[1:]] == [("phone", "client", [])]
    ran = comine("pki", "issue", "tablet", "--role", "client", "--host", "10.0.0.2")
    assert ran.code == 10
    assert "a client answers no calls" in ran.err


def test_no_certificate_lets_its_holder_answer_as_another_party(comine: Comine, tmp_path: Path) -> None:
    assert comine("pki", "init").code == 0
    assert comine("pki", "issue", "south", "--host", "10.0.0.2", "--host", "Node.example").code == 0
    assert comine("pki", "issue", "hub", "--role", "coordinator").code == 0
    for host in ("south", "SOUTH"):
        ran = comine("pki", "issue", "north", "--host", host)
        assert ran.code == 10
        assert "'south' cannot be a host of north" in ran.err
    ran = comine("pki", "issue", "node.example")
    assert ran.code == 10
    assert "it is a host of south" in ran.err
    assert not (tmp_path / "pki/north.crt").exists()
    assert comine("pki", "issue", "north", "--host", "10.0.0.2", "--host", "north", "--host", "node.example").code == 0
    assert comine("pki", "issue", "south", "--host", "south", "--force").code == 0


def test_revoking_renewing_and_what_show_tells(comine: Comine, tmp_path: Path) -> None:
    assert comine("pki", "init").code == 0
    assert comine("pki", "issue", "north").code == 0
    assert comine("pki", "issue", "hub", "--role", "coordinator").code == 0
    assert not (tmp_path / "pki/ca.crl").exists()

    assert comine("pki", "issue", "north").code == 10
    assert comine("pki", "issue", "north", "--force").code == 0
    current, replaced = certificates(comine, "north")
    assert [(c["current"], c["revoked"]) for c in (current, replaced)] == [(True, None), (False, None)]

    assert comine("pki", "revoke", "north", "--serial", replaced["serial"][:16]).code == 0
    current, replaced = certificates(comine, "north")
    assert (current["revoked"] is None, replaced["revoked"] is None) == (True, False)

    ran = comine("pki", "revoke", "north")
    assert ran.code == 0
    assert "was revoked before" in ran.err
    assert "revoked the certificate" in ran.err
    assert "copy it to every party" in ran.err
    assert all(c["revoked"] for c in certificates(comine, "north"))
    before = (tmp_path / "pki/ca.crl").read_bytes()
    assert comine("pki", "revoke", "north").code == 0
    assert (tmp_path / "pki/ca.crl").read_bytes() == before

    assert comine("pki", "issue", "north").code == 0  # in place of a revoked one, without --force
    assert [bool(c["revoked"]) for c in certificates(comine, "north")] == [False, True, True]
    assert "revoked " in comine("pki", "show").out
    assert stat.S_IMODE((tmp_path / "pki/ca.crl").stat().st_mode) == 0o644
    assert all(c["revoked"] is None for c in certificates(comine, "hub"))

    assert "list number 3" in comine("pki", "revoke").err
    (tmp_path / "pki/north.crt").rename(tmp_path / "lost.crt")
    assert comine("pki", "revoke", "north", "--certificate", "lost.crt").code == 0
    assert comine("pki", "revoke", "hub", "--certificate", "lost.crt").code == 10
    assert comine("pki", "revoke", "nobody").code == 10
    assert comine("pki", "revoke", "--serial", "1234567890").code == 2


def certificates(comine: Comine, name: str) -> list[dict[str, Any]]:
    shown = json.loads(comine("pki", "show", "--json").out)
    assert shown["schema"] == "comine.pki/1"
    return [c for c in shown["certificates"] if c["name"] == name]


def test_a_key_never_leaves_its_owner(comine: Comine, tmp_path: Path) -> None:
    assert comine("pki", "init").code == 0
    ran = comine("pki", "request", "north", "--host", "10.0.0.1", "--out", "node")
    assert ran.code == 0
    assert stat.S_IMODE((tmp_path / "node/north.key").stat().st_mode) == 0o600
    said = next(line for line in ran.err.splitlines() if "fingerprint" in line).split()[-1]
    ran = comine("pki", "sign", "node/north.csr")
    assert ran.code == 0
    assert "north asks to be a party, reached at 10.0.0.1" in ran.err
    assert said in ran.err
    assert not (tmp_path / "pki/north.key").exists()
    (tmp_path / "pki/north.crt").rename(tmp_path / "node/north.crt")

    assert comine("pki", "request", "north", "--out", "node").code == 10
    before = (tmp_path / "node/north.key").read_bytes()
    assert comine("pki", "request", "north", "--out", "node", "--renew").code == 0
    assert (tmp_path / "node/north.key").read_bytes() == before
    assert comine("pki", "sign", "node/north.csr").code == 0
    assert [c["hosts"] for c in certificates(comine, "north")] == [["10.0.0.1"]]  # those of the certificate so far

    assert comine("pki", "request", "north", "--out", "node", "--force").code == 0
    assert (tmp_path / "node/north.key").read_bytes() == before  # of use until the certificate is there
    ran = comine("pki", "sign", "node/north.csr")
    assert (ran.code, "ANOTHER" in ran.err) == (10, True)
    assert comine("pki", "sign", "node/north.csr", "--force").code == 0
    shutil.copy(tmp_path / "pki/ca.crt", tmp_path / "node/ca.crt")
    install = ("pki", "install", "north", "pki/north.crt", "--out", "node")
    made = (tmp_path / "node/north.key.new").read_bytes()
    assert comine("pki", "install", "south", "pki/north.crt", "--out", "node").code in (10, 20)
    assert (tmp_path / "node/north.key").read_bytes() == before
    assert comine(*install).code == 0
    assert (tmp_path / "node/north.key").read_bytes() == made
    assert not (tmp_path / "node/north.key.new").exists()
    assert comine(*install).code == 0  # once more, as after a crash


def test_a_certificate_of_no_key_that_is_there_is_not_installed(comine: Comine, tmp_path: Path) -> None:
    assert comine("pki", "init").code == 0
    assert comine("pki", "request", "north", "--out", "node").code == 0
    assert comine("pki", "issue", "north").code == 0
    shutil.copy(tmp_path / "pki/ca.crt", tmp_path / "node/ca.crt")
    assert comine("pki", "install", "north", "pki/north.crt", "--out", "node").code == 20
    assert comine("pki", "request", "north", "--out", "node", "--force").code == 0
    assert comine("pki", "install", "north", "pki/north.crt", "--out", "node").code == 20
    assert not (tmp_path / "node/north.crt").exists()


def test_what_cannot_be_asked_for(comine: Comine, tmp_path: Path) -> None:
    assert comine("pki", "init").code == 0
    assert comine("pki", "request", "North Pole").code == 10
    assert comine("pki", "request", "north", "--role", "king").code == 2
    assert comine("pki", "request", "hub", "--role", "coordinator", "--host", "10.0.0.1").code == 10
    assert comine("pki", "request", "hub", "--renew").code == 10
    assert not list(tmp_path.glob("pki/[!c]*"))
    assert comine("pki", "sign", "missing.csr").code == 10
    assert comine("pki", "request", "hub", "--role", "coordinator").code == 0
    assert comine("pki", "sign", "pki/hub.csr", "--out", "elsewhere").code == 10
    assert comine("pki", "sign", "pki/hub.csr", "--federation", "missing.toml").code == 10


def test_issuing_says_that_it_is_for_trials(comine: Comine) -> None:
    assert comine("pki", "init").code == 0
    assert "this is for trials" in comine("pki", "issue", "north").err
