"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import pathlib

import hypothesis
import pytest

hypothesis.settings.register_profile("comine", deadline=None)  # machines are shared; no test is timed
hypothesis.settings.load_profile("comine")


@pytest.fixture(scope="session")
def shared_data() -> pathlib.Path:
    """Folder of reference datasets beside the checkout; tests that need it are skipped where it is absent."""
    root = pathlib.Path(__file__).resolve().parent.parent
    given = os.environ.get("COMINE_REFERENCE_DATA")
    folder = pathlib.Path(given) if given else root.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"reference datasets are not at {folder}")
    return folder
