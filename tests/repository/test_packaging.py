"""What is shipped: the wheel's contents, the wheel in an environment of its own, and fresh protobuf modules."""

from __future__ import annotations

import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from jobs.loading import load_job
from link.errors import BY_CODE

ROOT = Path(__file__).resolve().parents[2]
WHEEL = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
PACKAGES = set(WHEEL["packages"])


def run(*command: str | Path, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=280,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    done = run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_packages_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    top = {name.partition("/")[0] for name in names}
    assert {name for name in top if not name.endswith((".dist-info", ".data"))} == PACKAGES
    assert len(top) == len(PACKAGES) + 2
    units = {name.partition(".data/")[2] for name in names if ".data/" in name}
    assert units == {f"data/share/comine/systemd/{file.name}" for file in (ROOT / "deploy" / "systemd").iterdir()}
    assert not [name for name in names if "__pycache__" in name or "test" in name.rpartition("/")[2]]


def test_images_are_built_from_all_packages() -> None:
    assert {f"!{name}" for name in WHEEL["packages"]} <= set((ROOT / ".dockerignore").read_text().splitlines())


def test_the_wheel_is_complete(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert sources <= names
    assert {f"{WHEEL['force-include']['docs']}/errors/{code}.md" for code in BY_CODE} <= names
    assert {f"{package}/py.typed" for package in PACKAGES - {"protos"}} <= names
    assert "protos/v1/link_pb2.py" in names


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    text = archive.read(metadata).decode()
    assert "Name: comine\n" in text
    assert "License-Expression: Apache-2.0" in text
    assert "Provides-Extra: demo" in text
    entry_points = archive.read(metadata.replace("METADATA", "entry_points.txt")).decode()
    assert "comine = comine.__main__:main" in entry_points


def test_the_wheel_brings_a_bill_of_materials(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if ".dist-info/sboms/" in name)
    assert name.endswith(".dist-info/sboms/comine.cdx.json")
    bill = json.loads(archive.read(name))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["purl"] == "pkg:pypi/comine@0.1.0"
    pinned = re.findall(r"(?m)^([\w.-]+)(?:\[.*?\])?==([^ \\;]+)", (ROOT / "requirements" / "run.txt").read_text())
    assert {(each["name"], each["version"]) for each in bill["components"]} == {
        (canonicalize_name(name), version) for name, version in pinned
    }
    assert {each["bom-ref"] for each in bill["components"]} == {*bill["dependencies"][0]["dependsOn"]}


def test_what_is_installed_has_a_bill_of_materials_too() -> None:
    done = run(sys.executable, ROOT / "scripts" / "bill_of_materials.py")
    assert done.returncode == 0, done.stderr
    found = {each["name"]: each["version"] for each in json.loads(done.stdout)["components"]}
    assert found["numpy"] == metadata.version("numpy")
    assert run(sys.executable, ROOT / "scripts" / "bill_of_materials.py").stdout == done.stdout


@pytest.mark.slow
def test_builds_of_the_same_source_are_the_same_bytes(tmp_path: Path) -> None:
    """Also from the sdist, which is another folder, at another time, and by another user's umask."""
    unwanted = shutil.ignore_patterns(".*", "build", "dist", "__pycache__", "wheels", "demo-out", "*.egg-info")
    shutil.copytree(ROOT, tmp_path / "one", ignore=unwanted)
    built = packed(tmp_path / "one", "022")
    assert [path.suffix for path in built] == [".whl", ".gz"]
    with tarfile.open(built[1]) as archive:
        archive.extractall(tmp_path / "from", filter="data")
    (source,) = (tmp_path / "from").iterdir()
    (source / "PKG-INFO").unlink()  # which every sdist makes, and another one would hold twice
    for path in source.rglob("*"):
        os.utime(path, (10**9, 10**9))
    for once, again in zip(built, packed(source, "077"), strict=True):
        assert (once.name, once.read_bytes()) == (again.name, again.read_bytes())


def packed(folder: Path, mask: str) -> list[Path]:
    """The wheel and the sdist of a folder."""
    build = f"umask {mask} && exec {sys.executable} -m hatchling build -t sdist -t wheel"
    done = run("sh", "-c", build, cwd=folder, SOURCE_DATE_EPOCH="1790000000")
    assert done.returncode == 0, done.stderr
    return sorted((folder / "dist").iterdir())


@pytest.mark.slow
def test_the_wheel_works_in_an_environment_of_its_own(wheel: Path, tmp_path: Path) -> None:
    """Beside packages that it asks for and that are here; tests/containers installs these, too."""
    assert run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv").returncode == 0
    pip = (sys.executable, "-m", "pip", "--python", tmp_path / "venv", "--disable-pip-version-check")
    installed = run(*pip, "install", "--quiet", "--no-compile", "--no-deps", wheel)
    assert installed.returncode == 0, installed.stderr
    (own,) = (tmp_path / "venv" / "lib").glob("python3*/site-packages")
    (own / "packages.pth").write_text(
        sysconfig.get_path("purelib")
    )  # but not the checkout, to which a .pth there leads

    job = ROOT / "examples" / "groceries" / "job.toml"
    shops = load_job(job).job.parties
    data = [part for shop in shops for part in ("--party", f"{shop}={job.parent / shop}.dat")]
    comine = tmp_path / "venv" / "bin" / "comine"
    done = run(comine, "simulate", job, *data, "--out", "result", cwd=tmp_path, PYTHONPATH="")
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "result" / "itemsets.csv").read_text().splitlines()) > 1
    assert (tmp_path / "result" / "report.html").is_file()
    explained = run(comine, "explain", "E101", cwd=tmp_path, PYTHONPATH="")
    assert explained.returncode == 0, explained.stderr
    assert "E101" in explained.stdout


def test_the_committed_protobuf_modules_are_fresh(tmp_path: Path) -> None:
    done = run(ROOT / "scripts" / "protos.sh", tmp_path, PYTHON=sys.executable)
    assert done.returncode == 0, done.stderr
    made = {path.name: path for path in (tmp_path / "protos" / "v1").iterdir()}
    committed = {path.name: path for path in (ROOT / "protos" / "v1").glob("*_pb2*")}
    assert set(made) == set(committed)
    stale = [name for name, path in made.items() if not filecmp.cmp(path, committed[name], shallow=False)]
    assert not stale, "run make protos"


def test_what_the_protobuf_modules_were_made_for_is_asked_for() -> None:
    """They refuse to be imported under an older runtime."""
    texts = [path.read_text() for path in (ROOT / "protos" / "v1").glob("*_pb2*.py")]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = {each.name: each.specifier for each in map(Requirement, project["dependencies"])}
    for name, line in (
        ("protobuf", r"(?m)^# Protobuf Python Version: (.+)$"),
        ("grpcio", r"(?m)^GRPC_GENERATED_VERSION = '(.+)'$"),
    ):
        (made,) = {found for text in texts for found in re.findall(line, text)}
        assert str(asked[name]) == f">={made}", f"{name} in pyproject.toml, and in the Makefile for client.txt"


@pytest.mark.parametrize("pins", ["dev.txt", "run.txt", "build.txt", "client.txt"])
def test_extras_are_pinned_by_name(pins: str) -> None:
    # An older pip in --require-hashes mode takes `coverage[toml]` for unpinned where only `coverage` is.
    lines = (ROOT / "requirements" / pins).read_text().splitlines()
    pinned = [Requirement(line.removesuffix("\\").strip()) for line in lines if line and line[0].isalnum()]
    extras = {canonicalize_name(pin.name): pin.extras for pin in pinned}
    for pin in pinned:
        if pin.marker and not pin.marker.evaluate():
            continue
        for text in metadata.requires(pin.name) or []:
            needed = Requirement(text)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in pin.extras or {""}):
                assert needed.extras <= extras[canonicalize_name(needed.name)], f"{pin.name} needs {needed}"
