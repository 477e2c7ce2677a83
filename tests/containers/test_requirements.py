"""What the image installs is what the project asks for, at the versions that the other tests ran with, and by hash."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
PINNED = re.compile(
    r"^([a-z0-9-]+)==([^ ;\\]+)(?: ; ([^\\]+))? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def pins(name: str) -> dict[str, set[str]]:
    """The versions of each package in a file of pins."""
    found: dict[str, set[str]] = {}
    for package, version, _, _ in PINNED.findall((ROOT / "requirements" / f"{name}.txt").read_text()):
        found.setdefault(package, set()).add(version)
    return found


@pytest.mark.parametrize(
    ("name", "asked"),
    [("run", PROJECT["project"]["dependencies"]), ("build", PROJECT["build-system"]["requires"])],
)
def test_pins_are_those_of_the_project_and_of_its_tests(name: str, asked: list[str]) -> None:
    pinned, tested = pins(name), pins("dev")
    for wanted in map(Requirement, asked):
        assert wanted.name in pinned, f"{wanted.name} is not in requirements/{name}.txt: run make lock"
        assert all(version in wanted.specifier for version in pinned[wanted.name])
    for package, versions in pinned.items():
        assert versions <= tested.get(package, set()), f"{package} differs from requirements/dev.txt: run make lock"


@pytest.mark.parametrize("name", ["run", "build"])
def test_every_package_is_pinned_by_hash_and_no_index_is_named(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    assert PINNED.sub("", text) == ""
    assert "://" not in text
