"""A node that shuffles more sealed reports than it has memory for: in its state folder, and gone when the job ends."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

import pytest

from crypto.primitives.scratch_file import Bytes, ScratchFile
from mining.joint.hybrid.spool_limits import SpoolLimits
from protos.v1.control_pb2 import FAILED, SUCCEEDED
from tests.mining.joint.hybrid.hybrid_world import PARTIES, baskets, job
from tests.party.nodes import running

SPEC = job(privacy={"model": "shuffle", "epsilon": "1.5", "delta": "1e-6", "shufflers": ["south", "east"]})
DATA = {party: baskets(300, place) for place, party in enumerate(PARTIES)}


def _small(_: int, folder: Path) -> SpoolLimits:
    return SpoolLimits(1 << 12, folder)


def _held(folder: Path) -> list[Path]:
    """Files in a folder that this process has open without a name."""
    opened = []
    for number in Path("/proc/self/fd").iterdir():
        try:
            target = number.readlink()
        except FileNotFoundError:
            continue
        if str(target).startswith(str(folder)) and str(target).endswith(" (deleted)"):
            opened.append(target)
    return opened


def test_reports_wait_in_the_state_folder_and_are_gone_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("party.server.SpoolLimits", _small)
    append, seen = ScratchFile.append, set[Path]()

    def appended(file: ScratchFile, contents: Bytes) -> int:
        place = append(file, contents)
        seen.update(path.parent for path in _held(tmp_path))
        return place

    monkeypatch.setattr(ScratchFile, "append", appended)

    async def test() -> None:
        async with running(tmp_path, data=DATA) as nodes:
            _, ends = await nodes.run(SPEC)
            assert {end.state for end in ends.values()} == {SUCCEEDED}
            assert not _held(tmp_path)

    asyncio.run(test())
    assert seen == {tmp_path / "state/south", tmp_path / "state/east"}


def test_a_full_disk_at_one_party_ends_the_job_in_a_fixed_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("party.server.SpoolLimits", _small)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)

    async def test() -> None:
        async with running(tmp_path, data=DATA) as nodes:
            _, ends = await nodes.run(SPEC)
            assert {(end.state, end.error_code) for end in ends.values()} == {(FAILED, "E103")}
            assert not _held(tmp_path)
            assert "sealed reports that do not fit memory" in nodes.logs["south"].getvalue()
            assert str(tmp_path) not in ends["north"].error_message

    asyncio.run(test())
