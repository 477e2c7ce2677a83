"""What `make test` tries, and how it ends when the interpreter of a worker dies: as failed, and soon."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import cast
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import examples
from tests.examples import examples as examples_of
from tests.examples import few_at_first, files_in_turn

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()


def test_a_run_whose_worker_dies_ends_and_has_failed(tmp_path: Path) -> None:
    (recipe,) = re.findall(r"^PYTEST = .* -m pytest ((?:.*\\\n)*.*)\n", MAKEFILE, re.MULTILINE)
    for number in range(6):
        source = (
            f"import os\ndef test_one(): pass\ndef test_two(): {number} != 1 or os._exit(3)\ndef test_three(): pass\n"
        )
        (tmp_path / f"test_{number}.py").write_text(source)
    options = recipe.replace("\\\n", " ").replace("$(WORKERS)", "3").split()
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    # pytest-xdist says which test ran, unless it learns of the death by giving the dead worker another file.
    told = {1: r"crashed while running 'test_1\.py::test_two'", 3: r"cannot send \(already closed\?\)"}
    assert done.returncode in told
    assert re.search(told[done.returncode], done.stdout)


def test_who_asks_for_many_examples_gets_them() -> None:
    @examples_of(300, 300)
    @given(st.integers())
    def asked_for(number: int) -> None: ...

    item = Mock(
        function=asked_for, get_closest_marker=lambda name: name in {each.name for each in asked_for.pytestmark}
    )
    few_at_first([cast(pytest.Item, item)])
    assert cast(settings, asked_for._hypothesis_internal_use_settings).max_examples == 300


def test_a_process_that_ran_a_command_frees_at_its_end_what_it_has_loaded(tmp_path: Path) -> None:
    """Else duckdb's module, which most processes of tests load, fills the screen with what was kept."""
    script = "import duckdb; from comine.command import run; run(['job', 'run', 'absent.toml'])"
    ended = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert "absent.toml" in ended.stderr
    assert "nanobind" not in ended.stderr


def test_files_that_take_long_are_where_their_order_says() -> None:
    named = re.findall(r'^    "(\S+/test_\w+\.py)",$', (ROOT / "tests/conftest.py").read_text(), re.MULTILINE)
    assert len(named) > 50
    assert [file for file in named if not (ROOT / "tests" / file).is_file()] == []


def test_of_files_that_cost_most_a_run_takes_some_and_all_runs_take_all(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [Path(f"test_{number}.py") for number in range(10)]
    taken = []
    monkeypatch.setattr(examples, "ALL", False)
    for turn in range(4):
        monkeypatch.setattr(examples, "TURN", turn)
        items = [Mock(path=file) for file in [*files, Path("test_quick.py")]]
        files_in_turn(cast(list[pytest.Item], items), files, 4)
        now = [item.path for item in items if not item.add_marker.called]
        assert now[-1] == Path("test_quick.py")
        taken += now[:-1]
    assert sorted(taken) == sorted(files)
