"""Records in buckets come back as they were added, from memory and from the disk, and leave nothing behind."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives.buckets import Buckets, Room
from crypto.primitives.randomness import Randomness
from crypto.primitives.scratch_file import ScratchLimits
from tests.errors import fails

RECORD = np.dtype([("value", np.uint8, (3,)), ("number", "<u4")])


def records(numbers: list[int]) -> np.ndarray:
    found = np.zeros(len(numbers), RECORD)
    found["number"] = numbers
    found["value"][:, 1] = numbers
    return found


def room(memory: int, folder: Path | None = None) -> Room:
    return Room(ScratchLimits(memory, folder), Randomness.from_seed(1))


@given(
    added=st.lists(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 255)), max_size=20), max_size=6),
    memory=st.sampled_from([0, 50, 1 << 20]),
)
def test_a_bucket_has_its_records_in_the_order_in_which_they_came(
    added: list[list[tuple[int, int]]], memory: int
) -> None:
    with room(memory) as space:
        kept = Buckets(5, RECORD, space)
        for some in added:
            kept.add(np.array([bucket for bucket, _ in some], np.int64), records([number for _, number in some]))
        for bucket in range(5):
            expected = [number for some in added for place, number in some if place == bucket]
            assert kept.counts[bucket] == len(expected)
            assert np.array_equal(kept.read(bucket), records(expected))
        total = sum(map(len, added)) * RECORD.itemsize
        assert bool(space.bytes_on_disk) == (total > memory)


def test_lists_share_their_room_and_give_it_back(tmp_path: Path) -> None:
    with room(5 * RECORD.itemsize, tmp_path) as space:
        one, other = Buckets(1, RECORD, space), Buckets(1, RECORD, space)
        one.add(np.zeros(4, np.int64), records([1, 2, 3, 4]))
        assert not space.bytes_on_disk
        other.add(np.zeros(4, np.int64), records([5, 6, 7, 8]))
        assert space.bytes_on_disk
        before = space.bytes_on_disk
        one.close()
        other.add(np.zeros(4, np.int64), records([9, 10, 11, 12]))
        assert space.bytes_on_disk == before
        assert other.read(0)["number"].tolist() == list(range(5, 13))
        assert not list(tmp_path.iterdir())
    with fails("E700"):
        other.read(0)


def test_what_is_on_the_disk_is_not_what_was_added(tmp_path: Path) -> None:
    with room(0, tmp_path) as space:
        kept = Buckets(1, np.uint8, space)
        kept.add(np.zeros(4096, np.int64), np.zeros(4096, np.uint8))
        held = [each for each in Path("/proc/self/fd").iterdir() if str(tmp_path) in os.path.realpath(each)]
        assert len(held) == 1
        assert max(np.bincount(np.frombuffer(held[0].read_bytes(), np.uint8))) < 100  # 16 of each are expected


@pytest.mark.parametrize("party", [True, False])
def test_a_disk_without_room_for_lists_is_told(party: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A simulation has no settings of parties."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    limits = ScratchLimits(0, tmp_path if party else None)
    with Room(limits, Randomness.from_seed(1)) as space, fails("E103") as error:
        Buckets(1, np.uint8, space).add(np.zeros(1, np.int64), np.zeros(1, np.uint8))
    assert ("[party]" in error.value.message) == party
