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
    assert comine("pki", "issue", "north", "--role", "king").code == 2
    assert comine("pki", "show", "--out", "elsewhere").code == 10
