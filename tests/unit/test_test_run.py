"""How `make test` ends when the interpreter of a worker dies: as failed, and soon."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

MAKEFILE = (Path(__file__).parents[2] / "Makefile").read_text()


def test_a_run_whose_worker_dies_ends_and_has_failed(tmp_path: Path) -> None:
    (recipe,) = re.findall(r"^PYTEST = .* -m pytest ((?:.*\\\n)*.*)\n", MAKEFILE, re.MULTILINE)
    for number in range(6):
        source = (
            f"import os\ndef test_one(): pass\ndef test_two(): {number} != 1 or os._exit(3)\ndef test_three(): pass\n"
        )
        (tmp_path / f"test_{number}.py").write_text(source)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *recipe.replace("\\\n", " ").split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert re.search(r"crashed while running 'test_1\.py::test_two'", done.stdout)
