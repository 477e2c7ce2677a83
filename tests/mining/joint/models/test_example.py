from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]


def test_the_documented_example_runs() -> None:
    command = [sys.executable, "-W", "error", "examples/joint_models.py"]
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(ROOT)}, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    said = [line.strip() for line in ended.stdout.splitlines()]
    for line in (
        "a smoker of 70 is ill, a non-smoker well",
        "tree; east learns:",
        "tree of columns; east learns:",
        "age >= 50: ill [0, 367]",
        "age >= 50: ill [0, 309]",
    ):
        assert line in said
