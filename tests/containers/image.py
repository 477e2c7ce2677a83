"""Builds the image as users do; without a registry, on a base of this system's own packages and on wheels."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

from tests.containers.debian import write_packages
from tests.containers.engine import INCLUDED, Docker

ROOT = Path(__file__).resolve().parents[2]
PUBLIC_BASE = "python:3.12-slim"
OWN_BASE = "comine-test-base"


def build(docker: Docker, tag: str, folder: Path) -> Path:
    """Builds the image `tag`; returns a copy of the parts of the repository that it was built from."""
    context = _context(folder / "comine")
    if docker.ours or docker.run("pull", "--quiet", PUBLIC_BASE).code != 0:
        _import_base(docker, folder)
        _fetch_wheels(context / "wheels")
    _build(docker, tag, context)
    return context


def build_again(docker: Docker, tag: str, context: Path) -> None:
    """Builds the image of a folder that `build` has returned once more, from nothing, as `tag`."""
    _build(docker, tag, context, "--no-cache")


def _build(docker: Docker, tag: str, context: Path, *options: str) -> None:
    command = ["build", "--quiet", *options, "--file", context / "docker" / "Dockerfile", "--tag", tag]
    if (context / "wheels").exists():
        command += ["--network", "none", "--build-arg", f"BASE_IMAGE={OWN_BASE}"]
    buildkit = "1" if docker.run("buildx", "version").code == 0 else "0"
    docker(*command, context, DOCKER_BUILDKIT=buildkit)


def _context(folder: Path) -> Path:
    """What a checkout has of the image's parts and of the example's."""
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    unwanted = shutil.ignore_patterns("__pycache__", "federation", ".env")
    for name in (*packages["packages"], "deploy", "docs", "docker", "examples", "requirements", "scripts"):
        shutil.copytree(ROOT / name, folder / name, ignore=unwanted)
    for name in (".dockerignore", "LICENSE", "README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    return folder


def _import_base(docker: Docker, folder: Path) -> None:
    """The base image, of the files of packages that this system has."""
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if not (Path("/usr/bin") / python).exists():
        pytest.skip(f"this system's own packages have another Python than {python}, for which wheels are at hand")
    packed = folder / "base.tar"
    with tarfile.open(packed, "w") as archive:
        write_packages(archive, INCLUDED)
    docker("import", packed, OWN_BASE)
    packed.unlink()


def _fetch_wheels(folder: Path) -> None:
    """The pinned packages, as the image's Python takes them: all that they need is among them."""
    machine = platform.machine()
    download = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"),
        *("--dest", str(folder), "--require-hashes", "--no-deps"),
        *("--implementation", "cp", "--python-version", f"{sys.version_info.major}.{sys.version_info.minor}"),
        *(part for age in ("_2_28", "_2_17", "2014") for part in ("--platform", f"manylinux{age}_{machine}")),
    ]
    for name in ("build", "run"):
        fetched = subprocess.run(
            [*download, "--requirement", str(ROOT / "requirements" / f"{name}.txt")],
            capture_output=True,
            text=True,
            check=False,
        )
        if fetched.returncode and "No matching distribution" in fetched.stderr:
            pytest.skip(f"no package index can be reached from here: {fetched.stderr.strip()[-300:]}")
        assert fetched.returncode == 0, fetched.stderr
