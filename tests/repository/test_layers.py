"""The import contract: lower rooms know nothing of upper ones, and protocols never see the transport."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs import-linter on the packages in a folder, not on the installed ones."""
    code = (
        "import sys; sys.path.insert(0, '.'); from importlinter.cli import lint_imports_command; lint_imports_command()"
    )
    command = [sys.executable, "-P", "-c", code, "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


BREACHES = [
    ("crypto/protocols/sums/secure_sum.py", "import grpc"),
    ("crypto/protocols/alignment/choices.py", "from link.transports.grpc_transport import NodeLink"),
    ("mining/miner.py", "import grpc"),
    ("jobs/run.py", "import grpc"),
    ("link/session.py", "import crypto.params"),
    ("jobs/run.py", "import party.config"),
    ("party/config.py", "import coordinator.jobs.runner"),
    ("client/reporter.py", "import pydantic"),
    ("client/store.py", "import jobs.collections.spec"),
    ("console/app.py", "import party.config"),
    ("console/site.py", "import coordinator.member"),
    ("jobs/report/page.py", "import console.pages"),
]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is said of a copy of all packages with all breaches in it."""
    house = tmp_path_factory.mktemp("house")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, house / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", house)
    for module, line in BREACHES:
        with (house / module).open("a") as file:
            file.write(f"\n{line}\n")
    done = lint(house)
    assert done.returncode == 1, done.stdout
    return done.stdout


def test_the_contract_names_every_package() -> None:
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"][
        "packages"
    ]
    assert sorted(PACKAGES) == sorted(built)


def test_the_contract_is_kept() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("module", "line"), BREACHES)
def test_a_breach_is_found(report: str, module: str, line: str) -> None:
    name = module.removesuffix(".py").replace("/", ".")
    assert f"{name} -> {line.split()[1]} (l." in report
