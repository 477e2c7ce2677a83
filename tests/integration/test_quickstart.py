"""`comine quickstart`, as a user runs it: real processes, ports and certificates."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.integration.test_demo import nodes_below

pytestmark = pytest.mark.slow
COMMAND = [sys.executable, "-P", "-m", "comine", "quickstart"]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """The same rows in two ways of writing them."""
    (tmp_path / "North Shop.dat").write_text("bread butter\nbread butter\ntea\n" * 4)
    rows = [f"{number},{item}\n" for number in range(8) for item in ("bread", "butter")]
    (tmp_path / "all.csv").write_text("receipt,item\n" + "".join(rows))
    return ["North Shop.dat", "all.csv"]


def test_from_files_to_a_result(tmp_path: Path, files: list[str]) -> None:
    done = subprocess.run([*COMMAND, *files], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "bread, butter\t16\t0.8000" in done.stdout
    out = tmp_path / "quickstart-out"
    result = json.loads((out / "result/result.json").read_text())
    assert (result["n_rows"], list(result["parties"]), result["simulated"]) == (20, ["north-shop", "party-2"], False)
    assert (out / "result/report.html").is_file()
    keys = list(out.rglob("*.key"))
    assert len(keys) == 6  # the authority's, the coordinator's, and two of each party
    assert not [key for key in keys if key.stat().st_mode & 0o077]
    assert not nodes_below(tmp_path)
    assert not list(tmp_path.glob(".quickstart-out*"))


def test_an_interrupted_one_leaves_nothing_behind(tmp_path: Path, files: list[str]) -> None:
    process = subprocess.Popen(
        [*COMMAND, *files], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    while not nodes_below(tmp_path):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate()
    assert process.returncode == 50, err
    assert not nodes_below(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(files)
