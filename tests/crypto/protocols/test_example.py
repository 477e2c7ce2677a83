from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_documented_example_runs() -> None:
    command = [sys.executable, "-W", "error", "examples/oblivious_transfer.py"]
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(ROOT)}, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    said = ended.stdout.splitlines()
    for line in (
        "of two each, ben took right heads",
        "of five, ben took three",
        "of five, ben took four zero",
        "ben learns which numbers reach 100: [0 1 1 0]",
        "ada learns which numbers reach 100: [0 1 1 0]",
        "ada learns how many rows both have marked: [167]",
    ):
        assert line in said
