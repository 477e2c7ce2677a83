"""A reader that leaves early, such as `head`, changes neither what a command does nor its exit code."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator.cli.terminal.outlet import Outlet, check_reader, outlet
from tests.cli.conftest import ROWS, Comine
from tests.examples import slowly


def piped(line: str, folder: Path, **environment: str) -> int:
    """The exit code of `comine` in a line of bash, into a pipe that nobody reads."""
    ran = subprocess.run(
        ["bash", "-c", f"set -o pipefail; '{sys.executable}' -m comine {line} | true"],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
    )
    return ran.returncode


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_files_are_written_though_nobody_reads(tmp_path: Path, unbuffered: str) -> None:
    (tmp_path / "south.dat").write_text("".join(f"{' '.join(row)}\n" for row in ROWS["south"]))
    line = "init zed --source south.dat --out zed 2>&1"
    assert piped(line, tmp_path, PYTHONUNBUFFERED=unbuffered) == 0
    assert sorted(path.name for path in (tmp_path / "zed").iterdir()) == ["federation.toml", "party.toml"]


@pytest.mark.parametrize(
    ("line", "code"),
    slowly([("explain E999 2>&1", 2), ("job list 2>&1", 10), ("explain E100", 0), ("explain --help", 0)], now=[0]),
)
def test_the_exit_code_is_the_commands_own(tmp_path: Path, line: str, code: int) -> None:
    assert piped(line, tmp_path) == code


@pytest.mark.parametrize("write_through", [False, True])
def test_what_nobody_reads_goes_nowhere(monkeypatch: pytest.MonkeyPatch, write_through: bool) -> None:
    read, write = os.pipe()
    given = io.TextIOWrapper(os.fdopen(write, "wb"), encoding="utf-8", write_through=write_through)
    stream = outlet(given)
    assert isinstance(stream, Outlet)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        print("seen")
        check_reader()
        assert os.read(read, 100) == b"seen\n"
        os.close(read)
        print("lost" * 100_000)
        with pytest.raises(BrokenPipeError):
            check_reader()
        assert stream.abandoned
        print("lost too", flush=True)
    stream.close()
    given.close()


def test_a_wrong_command_line_ends_with_its_code(comine: Comine) -> None:
    ran = comine("schema")
    assert (ran.code, ran.out) == (2, "")
    usage, sentence = ran.err.splitlines()
    assert usage.startswith("Usage: comine schema ")
    assert sentence == "comine: missing argument 'NAME' (E001; comine schema --help)"
    assert comine("simulat").err.endswith(" (E001; comine --help)\n")
    assert comine("job", "lst").err.endswith(" (E001; comine job --help)\n")
    assert comine("explain", "E999").err.endswith(" (E001; comine explain --help)\n")  # said by the command itself
    group = comine("job")
    assert (group.code, "E001" in group.err, "Show how a job stands" in group.err) == (2, False, True)
