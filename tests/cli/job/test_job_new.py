"""`comine job new` and `comine federation new`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from jobs.federation import Federation
from jobs.loading import load_job
from tests.cli.conftest import Comine
from tests.cli.job.test_job import nodes


def test_a_job_is_checked_against_its_parties(comine: Comine, tmp_path: Path) -> None:
    with nodes(tmp_path):
        ran = comine("job", "new", "--task", "rules", "--dataset", "mine", "--out", "new.toml")
    assert ran.code == 0
    assert ran.out == ""
    spec = load_job(tmp_path / "new.toml")
    assert (spec.job.parties, spec.job.dataset) == (("north", "south"), "mine")
    assert "north has no dataset 'mine' with transactions" in ran.err
    assert "comine job plan new.toml" in ran.err


def test_parties_that_cannot_be_reached_are_named(comine: Comine, tmp_path: Path) -> None:
    with nodes(tmp_path):
        pass
    ran = comine("job", "new", "--task", "itemsets", "--out", "new.toml")
    assert ran.code == 0
    assert "not checked: north: " in ran.err
    assert "not checked: south: " in ran.err


def test_a_job_is_written_where_there_is_nobody_to_ask(comine: Comine, tmp_path: Path) -> None:
    ran = comine("job", "new", "--task", "rules", "--party", "a", "--party", "b")
    assert ran.code == 0
    assert "no party was asked" in ran.err
    before = (tmp_path / "job.toml").read_bytes()
    assert comine("job", "new", "--task", "itemsets").code == 10
    assert (tmp_path / "job.toml").read_bytes() == before
    assert comine("job", "new", "--task", "itemsets", "--force").code == 0
    ran = comine("job", "new", "--task", "itemsets", "--model", "local", "--force")
    assert (ran.code, "to complete: the catalogue items.txt" in ran.err) == (0, True)
    assert comine("job", "new", "--task", "riches", "--out", "other.toml").code == 2
    assert comine("job", "new", "--task", "rules", "--federation", "missing.toml", "--out", "other.toml").code == 10
    assert not (tmp_path / "other.toml").exists()


@pytest.mark.parametrize("partition", ["horizontal", "vertical"])
def test_whom_to_trust_is_written_for_whoever_wants_it(partition: str, comine: Comine, tmp_path: Path) -> None:
    parties = [word for name in ("a", "b", "c") for word in ("--party", name)]
    assert comine("job", "new", "--task", "itemsets", "--partition", partition, *parties).code == 0
    lines = (tmp_path / "job.toml").read_text().splitlines()
    trust = lines[lines.index("# [trust]") :]
    (tmp_path / "job.toml").write_text("\n".join([*lines, *(line.removeprefix("# ") for line in trust if line)]))
    spec = load_job(tmp_path / "job.toml")
    assert (spec.compute, spec.trust.helper != "none", spec.is_verified) == (("a", "b"), True, True)


def test_a_federation_and_what_to_do_at_each_machine(comine: Comine, tmp_path: Path) -> None:
    ran = comine("federation", "new", "north=north.example:7101", "south=10.0.0.2:7102", "--coordinator", "hub")
    assert ran.code == 0
    for command in (
        "comine pki init",
        "comine pki request south --host 10.0.0.2",
        "comine init north --source FILE --listen 0.0.0.0:7101",
        "comine pki request hub --role coordinator",
        "comine pki sign NAME.csr --federation federation.toml",
    ):
        assert command in ran.err
    assert list(Federation.load(tmp_path / "federation.toml").addresses) == ["north", "south"]
    assert comine("federation", "new", "north=north.example:7101").code == 10
    assert comine("federation", "new", "north", "--force").code == 2
    assert comine("federation", "new", "north=a:1", "north=b:2", "--force").code == 2
    assert comine("federation", "new", "hub=a:1", "--coordinator", "hub", "--force").code == 2


def test_a_federation_can_be_made_as_it_says(comine: Comine, tmp_path: Path) -> None:
    """The commands that `comine federation new` names, one after the other, up to a node that is fit to start."""
    (tmp_path / "north.dat").write_text("bread butter\n" * 20)
    assert comine("federation", "new", "north=127.0.0.1:7101", "south=127.0.0.1:7102").code == 0
    assert comine("pki", "init", "--out", "authority").code == 0
    assert comine("pki", "request", "north", "--host", "127.0.0.1").code == 0
    assert comine("pki", "request", "analyst", "--role", "coordinator").code == 0
    for name in ("north", "analyst"):
        ran = comine("pki", "sign", f"pki/{name}.csr", "--federation", "federation.toml", "--out", "authority")
        assert ran.code == 0, ran.err
        shutil.copy(tmp_path / f"authority/{name}.crt", tmp_path / "pki")
    shutil.copy(tmp_path / "authority/ca.crt", tmp_path / "pki")
    assert comine("pki", "request", "stranger").code == 0
    ran = comine("pki", "sign", "pki/stranger.csr", "--federation", "federation.toml", "--out", "authority")
    assert (ran.code, "has no party 'stranger'" in ran.err) == (10, True)
    assert comine("init", "north", "--source", "north.dat", "--listen", "127.0.0.1:0").code == 0
    ran = comine("party", "check", "party.toml")
    assert ran.code == 0, ran.out
