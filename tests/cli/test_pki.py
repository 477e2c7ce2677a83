"""`comine pki`: an authority, certificates, and what is in them."""

from __future__ import annotations

import json
import stat
from pathlib import Path

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
