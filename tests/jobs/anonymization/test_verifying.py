"""`comine anonymize verify` finds a change of any byte of any file in the folder that `run` wrote."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.anonymization.verifying import verify
from jobs.results.destination import MANIFEST
from tests.jobs.anonymization.released import release_here

FILES = {"certificate.json", "labels.json", MANIFEST, "release.csv", "release.parquet", "report.html"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = release_here(tmp_path_factory.mktemp("released") / "release", tmp_path_factory.mktemp("source"))
    assert {path.name for path in folder.iterdir()} == FILES
    return folder


def test_an_honest_folder_is_checked_as_a_whole(folder: Path) -> None:
    found = verify(folder)
    assert found.ok
    assert [each.found for each in found.findings if MANIFEST in each.expected] == ["5 files, each byte as listed"]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_any_change_of_any_byte_is_found(folder: Path, data: st.DataObject) -> None:
    path = folder / data.draw(st.sampled_from(sorted(FILES)))
    before = path.read_bytes()
    at, byte = data.draw(st.integers(0, len(before) - 1)), data.draw(st.integers(0, 255))
    after = data.draw(
        st.sampled_from(
            [
                before[:at] + bytes([before[at] ^ (byte or 1)]) + before[at + 1 :],
                before[:at] + bytes([byte]) + before[at:],
                before[:at] + before[at + 1 :],
                before[:at],
                before + bytes([byte]),
            ]
        )
    )
    path.write_bytes(after)
    try:
        assert not verify(folder).ok
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize("name", sorted(FILES - {MANIFEST}))
def test_a_file_that_goes_or_is_another_is_named(name: str, folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    (copy / name).unlink()
    assert f"file {name}" in {each.check for each in verify(copy).failures}
    (copy / name).symlink_to(folder / name)
    assert f"file {name}" in {each.check for each in verify(copy).failures}


@pytest.mark.parametrize("name", ["notes.txt", ".hidden", "below/notes.txt", os.fsdecode(b"\xff\x1b[2J")])
def test_a_file_that_comes_is_named(name: str, folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    (copy / name).parent.mkdir(exist_ok=True)
    (copy / name).write_text("")
    (failure,) = verify(copy).failures
    assert "does not list it" in failure.found
    assert failure.check.isprintable()


def test_what_is_handed_on_is_checked_by_itself(folder: Path, tmp_path: Path) -> None:
    for name in ("release.csv", "release.parquet", "certificate.json"):
        shutil.copy(folder / name, tmp_path / name)
    found = verify(tmp_path)
    assert found.ok
    assert [each.found for each in found.unchecked if MANIFEST in each.expected] == [
        f"there is no {MANIFEST}: nothing but the release and its certificate was checked"
    ]
