"""Where there is no Linux: on macOS a node starts, as far as that can be feigned; on Windows comine says what to do."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from comine.__main__ import main
from tests.comine.as_macos import LINUX_ONLY
from tests.party.files import write_federation
from tests.party.nodes import DATA

ROOT = Path(__file__).resolve().parents[2]
AS_MACOS = (sys.executable, str(ROOT / "tests" / "comine" / "as_macos.py"))
USED = re.compile(
    rf"\b(?:os|resource|signal|socket)\.({'|'.join(name for names in LINUX_ONLY.values() for name in names)})\b"
)
KNOWN = {  # where each is asked for before it is used, or used on Linux alone
    "link/executor.py": {"sched_getaffinity"},
    "party/node/connections.py": {"TCP_DEFER_ACCEPT"},
    "party/node/unread.py": {"TCP_INFO"},
}


def test_what_linux_alone_has_is_used_where_that_is_known() -> None:
    packages = (
        "link",
        "crypto",
        "ldp",
        "anonymize",
        "mining",
        "jobs",
        "client",
        "relay",
        "party",
        "coordinator",
        "comine",
    )
    found = {}
    for package in packages:
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text()
            if used := set(USED.findall(text)):
                found[path.relative_to(ROOT).as_posix()] = used
    assert found == KNOWN


@pytest.mark.slow
def test_a_node_starts_and_ends_without_what_linux_alone_has(tmp_path: Path) -> None:
    write_federation(tmp_path, DATA)
    command = (*AS_MACOS, "party", "serve", tmp_path / "north.toml")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stderr is not None
        lines: list[str] = []
        for line in process.stderr:
            lines.append(line)
            if " is ready at " in line:
                break
        process.terminate()
        _, rest = process.communicate()
    assert process.returncode == 0, [*lines, rest]
    assert "descriptors: 10240\n" in lines


SIMULATE = ("simulate", "job.toml", "--party", "north=north.dat", "--party", "south=south.dat", "--out", "out")
JOB = """[job]
name = "weekly"
task = "itemsets"
parties = ["north", "south"]
dataset = "baskets"
[itemsets]
min_support = 0.5
"""


def simulated(folder: Path, script: str) -> None:
    (folder / "job.toml").write_text(JOB)
    for name in ("north", "south"):
        (folder / f"{name}.dat").write_text("a b\na b c\n" * 5)
    command = (sys.executable, str(ROOT / "tests" / "comine" / script), *SIMULATE)
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    assert (folder / "out" / "itemsets.csv").exists()


@pytest.mark.slow
def test_a_simulation_runs_without_what_linux_alone_has(tmp_path: Path) -> None:
    simulated(tmp_path, "as_macos.py")


@pytest.mark.slow
def test_simulations_and_coordinators_need_no_modules_of_unix_alone(tmp_path: Path) -> None:
    simulated(tmp_path, "without_unix.py")
    program = (
        "from tests.comine.without_unix import take_away; take_away(); import comine; comine.simulate; "
        "from coordinator.cli.jobs import jobs_kept, plan, resume; "
        "from coordinator.cli import doctor, federation, pki; "
        "from coordinator.jobs import driver, runner; from coordinator.jobs.records import store"
    )
    done = subprocess.run((sys.executable, "-c", program), capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr


def test_windows_is_told_where_comine_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 10
    assert "Windows Subsystem for Linux" in capsys.readouterr().err
