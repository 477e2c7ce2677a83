from __future__ import annotations

import ctypes
import glob
import os
import subprocess
import sys
import tempfile

import pytest

from crypto.primitives.groups import sodium
from tests.errors import fails


def test_this_machine_has_a_libsodium() -> None:
    found = sodium.library()
    assert found.origin in ("system", "rbcl")
    assert found is sodium.library()


def test_both_copies_bear_their_names(copy_of_sodium: sodium.Sodium) -> None:
    assert copy_of_sodium.origin in ("system", "rbcl")
    assert tuple(int(number) for number in copy_of_sodium.version.split(".")) >= sodium.MINIMUM


def test_without_any_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sodium, "load_system", lambda: None)
    monkeypatch.setattr(sodium, "load_bundled", lambda: None)
    with fails("E100"):
        sodium.library.__wrapped__()


def test_a_missing_rbcl_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rbcl", None)
    assert sodium.load_bundled() is None


def test_a_system_without_it_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sodium, "SONAMES", ("libno-such-library.so.1",))
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None)
    assert sodium.load_system() is None


def test_a_library_without_the_functions_is_refused() -> None:
    assert sodium.bind(ctypes.CDLL(None), "system") is None


def test_an_old_version_is_refused(copy_of_sodium: sodium.Sodium, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sodium, "MINIMUM", (99, 0, 0))
    assert sodium.load_system() is None
    assert sodium.load_bundled() is None


@pytest.mark.parametrize("version", ["1.0.18", "1.0.18-stable", "1.0.20", "1.1"])
def test_versions_are_compared_as_numbers(version: str) -> None:
    assert sodium.parsed(version) >= sodium.MINIMUM > sodium.parsed("1.0.9")


def test_the_bundled_copy_leaves_no_file_behind() -> None:
    script = "from crypto.primitives.groups.sodium import load_bundled; assert load_bundled() is not None"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", script], env={**os.environ, "TMPDIR": folder}, check=True)
        assert glob.glob(f"{folder}/*") == []


def test_where_the_system_has_one_rbcl_is_not_imported() -> None:
    if sodium.load_system() is None:
        pytest.skip("this machine has no libsodium of its own")
    script = (
        "import sys; from crypto.primitives.groups.sodium import library; library(); assert 'rbcl' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
