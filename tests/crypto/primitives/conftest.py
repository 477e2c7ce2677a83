"""Published vectors, the integer oracle, and both copies of libsodium."""

from __future__ import annotations

import importlib.util
import json
import pathlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from crypto.primitives.groups import ristretto255, sodium
from crypto.primitives.randomness import Randomness

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "vectors"


@pytest.fixture(scope="session")
def vectors() -> Callable[[str], Any]:
    return lambda name: json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def reference() -> ModuleType:
    """ristretto255 in plain integers (tests/vectors/ristretto_reference.py)."""
    spec = importlib.util.spec_from_file_location("ristretto_reference", VECTORS / "ristretto_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def random() -> Randomness:
    return Randomness.from_seed(b"tests")


@pytest.fixture(scope="session", params=["system", "bundled"])
def copy_of_sodium(request: pytest.FixtureRequest) -> sodium.Sodium:
    found: sodium.Sodium | None = getattr(sodium, f"load_{request.param}")()
    if found is None:
        pytest.skip(f"this machine has no libsodium of the kind '{request.param}'")
    return found


@pytest.fixture
def either_sodium(copy_of_sodium: sodium.Sodium, monkeypatch: pytest.MonkeyPatch) -> sodium.Sodium:
    """Runs a test once with each copy of libsodium."""
    monkeypatch.setattr(ristretto255, "library", lambda: copy_of_sodium)
    return copy_of_sodium
