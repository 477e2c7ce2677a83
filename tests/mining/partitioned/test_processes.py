"""Blocks counted by processes: the same counts; lost and ended workers; bounded memory."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mining.counting import SupportCounter
from mining.data.transactions import Transactions
from mining.partitioned.blocks import Block
from mining.partitioned.cores import Cores
from mining.partitioned.counter import PartitionedCounter
from mining.partitioned.processes import Processes, runs_of
from mining.partitioned.rows import PartitionedRows
from mining.partitioned.runner import Source
from tests.errors import fails
from tests.mining.partitioned.deadly_kernels import Deadly, lives
from tests.mining.partitioned.world import evenly, partitioned, waiting


def three(sources: Sequence[Source], lengths: Sequence[int]) -> Processes:
    return Processes(sources, lengths, Cores(3))


@pytest.fixture
def data() -> Transactions:
    generator = np.random.default_rng(3)
    rows = [[f"{item:02}" for item in np.flatnonzero(generator.random(20) < 0.2)] for _ in range(100)]
    return Transactions.from_rows([["00", "01"], *rows[:60], [], *rows[60:]])


@pytest.fixture
def cut(data: Transactions) -> Iterator[PartitionedRows]:
    rows = partitioned(data, [0, 0, *evenly(data.n_rows, 5), data.n_rows], three)
    yield rows
    rows.close()


def test_processes_count_as_memory_does(data: Transactions, cut: PartitionedRows) -> None:
    memory, blocks = SupportCounter(data), PartitionedCounter(cut)
    counts = memory.count_pairs()
    assert np.array_equal(blocks.count_pairs(), counts)
    assert np.array_equal(cut.without(["1*"]).total(Transactions.item_counts), data.without(["1*"]).item_counts())
    lengths = list(cut.parts(_n_rows))
    assert sum(lengths) == data.n_rows
    assert lengths[0] == lengths[-1] == 0


def _n_rows(rows: Transactions, _first: int) -> int:
    return rows.n_rows


class Remembers:
    """Tells which process counts a block, and how often this very kernel was called there; may kill that process once.

    Args:
        killed: The file that tells that it was done; None: not to be done.
        at: At the block that begins with this row.
    """

    def __init__(self, killed: Path | None = None, at: int = -1) -> None:
        self._killed, self._at, self._calls = killed, at, 0

    def __call__(self, _rows: Transactions, first: int) -> tuple[int, int, int]:
        if first == self._at and self._killed is not None and not self._killed.exists():
            self._killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        self._calls += 1
        return first, os.getpid(), self._calls


def test_a_kernel_of_parts_goes_once_to_each_process(data: Transactions, tmp_path: Path) -> None:
    """It is there for the next block, also where other work came between, or a process has died."""
    cuts = evenly(data.n_rows, 9)
    rows = partitioned(data, cuts, three)
    calls: dict[int, list[int]] = {}
    for _, process, call in rows.parts(Remembers()):
        calls.setdefault(process, []).append(call)
    assert sorted(calls.values()) == [[1, 2, 3]] * 3
    parts = rows.parts(Remembers(tmp_path / "killed", cuts[4]))
    firsts = [next(parts)[0]]
    assert len(list(rows.parts(_n_rows))) == 9
    firsts += [first for first, _, _ in parts]
    assert firsts == cuts[:-1]
    assert (tmp_path / "killed").exists()
    rows.close()


def test_totals_of_kernels_that_are_told_where_they_are(data: Transactions, cut: PartitionedRows) -> None:
    expected = sum(first * rows for first, rows in _places(data.n_rows))
    assert cut.placed_total(_places_of).tolist() == [data.n_rows, expected]
    assert data.placed_total(_places_of).tolist() == [data.n_rows, 0]


def _places_of(rows: Transactions, first: int) -> NDArray[np.int64]:
    return np.array([rows.n_rows, first * rows.n_rows])


def _places(n_rows: int) -> list[tuple[int, int]]:
    return [(start, stop - start) for start, stop in pairwise(evenly(n_rows, 5))]


def test_a_killed_worker_costs_a_retry(data: Transactions, cut: PartitionedRows, tmp_path: Path) -> None:
    assert np.array_equal(cut.total(Deadly(tmp_path, 1)), data.item_counts())
    assert len(list(tmp_path.iterdir())) == 1


def test_two_killed_workers_end_the_work_with_one_sentence(
    data: Transactions, cut: PartitionedRows, tmp_path: Path
) -> None:
    with fails("E103"):
        cut.total(Deadly(tmp_path, 1000))
    assert np.array_equal(cut.total(Transactions.item_counts), data.item_counts())


def test_a_worker_that_died_between_calls_is_replaced(data: Transactions, cut: PartitionedRows, tmp_path: Path) -> None:
    for place in range(3):
        deaths = tmp_path / str(place)
        deaths.mkdir()
        assert np.array_equal(cut.total(Deadly(deaths, 1)), data.item_counts())


def test_closing_ends_the_workers_at_once(cut: PartitionedRows, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    thread, found = waiting(cut, begun)
    cut.close()
    thread.join()
    assert "were ended" in str(found[0])
    while lives(int(begun.read_text())):
        time.sleep(0.01)
    with fails("E103"):
        cut.total(Transactions.item_counts)


def test_a_damaged_block_is_told_by_the_worker() -> None:
    data = Transactions.from_rows([["a"], ["a", "b"]])
    block = Block.of(data).to_bytes()
    sources = [partial(Block.from_bytes, block, "block 6"), partial(Block.from_bytes, block[:-1], "block 7")]
    rows = PartitionedRows(Processes(sources, [2, 2]), data.items, data.item_counts(), b"")
    try:
        with fails("E101"):
            rows.total(Transactions.item_counts)
    finally:
        rows.close()


def test_cores_are_shared_and_nobody_waits() -> None:
    cores, users = Cores(4), [object() for _ in range(6)]
    assert cores.allot(users[0], 9) == 4
    assert cores.allot(users[1], 9) == 1  # as long as the first has all
    assert cores.allot(users[0], 9) == 2
    assert cores.allot(users[1], 9) == 2
    assert [cores.allot(user, 9) for user in users[2:]] == [1] * 4
    assert [cores.allot(user, 9) for user in users] == [1] * 6
    for user in users[1:]:
        cores.give_up(user)
    assert cores.allot(users[0], 3) == 3
    assert cores.allot(users[1], 9) == 1
    cores.give_up(users[0])
    cores.give_up(users[0])
    assert cores.allot(users[1], 9) == 4


def test_jobs_at_the_same_time_count_by_as_many_processes_as_there_are_cores(data: Transactions) -> None:
    cores = Cores(2)
    rows = [partitioned(data, evenly(data.n_rows, 5), partial(Processes, cores=cores)) for _ in range(3)]
    used: list[set[int]] = []
    try:
        for _ in range(2):
            used = [set(each.parts(_process)) for each in rows]
    finally:
        for each in rows:
            each.close()
    assert [len(processes) for processes in used] == [1, 1, 1]
    alone = partitioned(data, evenly(data.n_rows, 5), partial(Processes, cores=cores))
    try:
        assert len(set(alone.parts(_process))) == 2
        assert np.array_equal(alone.total(Transactions.item_counts), data.item_counts())
    finally:
        alone.close()


def _process(_rows: Transactions, _first: int) -> int:
    return os.getpid()


def test_a_death_costs_a_retry_of_what_waited_for_the_same_worker(data: Transactions, tmp_path: Path) -> None:
    cores = Cores(2)
    rows = [partitioned(data, evenly(data.n_rows, 4), partial(Processes, cores=cores)) for _ in range(2)]
    try:
        rows[0].total(Transactions.item_counts)
        assert np.array_equal(rows[1].total(Deadly(tmp_path, 1)), data.item_counts())
        assert len(list(tmp_path.iterdir())) == 1
    finally:
        for each in rows:
            each.close()


def test_blocks_are_shared_out_evenly() -> None:
    for lengths in ([1], [0], [0, 0, 0], [5, 5, 5, 5], [100, 1, 1, 1], [1, 1, 1, 100], [3] * 17):
        for workers in (1, 2, 3, len(lengths)):
            runs = runs_of(lengths, workers)
            assert [place for run in runs for place in range(len(lengths))[run]] == list(range(len(lengths)))
            assert len(runs) <= workers
    assert [run.stop - run.start for run in runs_of([5] * 16, 4)] == [4, 4, 4, 4]
