"""Auditing of sums at scale: seconds a query and memory, up to 10⁴ answered sums over 10⁵ records."""

from __future__ import annotations

import os
import sys
import tempfile
import time

import numpy as np
from numpy.typing import NDArray

from anonymize.auditing.extremes import MaxAuditor
from anonymize.auditing.sums import SumAuditor
from benchmarks.measure import peak_mb_of, run_process
from benchmarks.settings import ROOT, Settings
from benchmarks.table import Table
from crypto.primitives.randomness import Randomness

RECORDS = 100_000
RANKS = (0, 1_000, 3_000, 10_000)
QUERIES = 12
LARGEST_SET = 1_000


def run(settings: Settings) -> list[Table]:
    """A row for each number of answered sums, each in a process of its own; then maxima."""
    heads = (
        "answered sums",
        "s to decide",
        "s to answer",
        "CPU s, both",
        "file MB",
        "s to keep",
        "s to take up",
        "peak MB",
    )
    table = Table(f"Auditing of sums over {RECORDS:,} records", heads)
    for rank in RANKS[:2] if settings.quick else RANKS:
        settings.progress.print(f"auditing: {rank:,} sums")
        command = [sys.executable, "-m", "benchmarks.privacy.auditing", str(rank)]
        cells = run_process(command, cwd=ROOT).output.split()
        table.add(rank, *map(float, cells))
    table.notes += [
        f"sets of 2 to {LARGEST_SET:,} records; medians of {QUERIES} queries after those that the first column counts",
        "CPU of both threads, one a prime; files hold both primes' state; the peak includes keeping it",
    ]
    return [table, _maxima(settings)]


def _maxima(settings: Settings) -> Table:
    table = Table(f"Auditing of maxima over {RECORDS:,} records", ("answered maxima", "s to decide"))
    rng, auditor, values = np.random.default_rng(1), MaxAuditor(RECORDS), np.random.default_rng(2).random(RECORDS)
    answered = 0
    for goal in (100,) if settings.quick else (100, 300, 1000):
        seconds = 0.0
        while answered < goal:
            query = random_set(rng)
            began = time.perf_counter()
            allowed = auditor.decide(query).allowed
            seconds = time.perf_counter() - began
            if allowed:
                auditor.answer(query, float(values[query].max()))
                answered += 1
        table.add(goal, seconds)
    return table


def random_set(rng: np.random.Generator) -> NDArray[np.int64]:
    return np.unique(rng.integers(0, RECORDS, rng.integers(2, LARGEST_SET)))


def prepared(rank: int, rng: np.random.Generator) -> SumAuditor:
    """An auditor after so many answers, which to ask one by one would take an hour.

    Each query has one record that no other has: their block is the identity, and its own inverse. What comes after
    costs as much as after any other queries, since nothing depends on what the inverse holds.
    """
    auditor = SumAuditor(RECORDS, Randomness.from_seed(1))
    for record in range(rank):
        others = np.unique(rng.integers(rank, RECORDS, rng.integers(2, LARGEST_SET)))
        query = np.concatenate([[record], others])
        auditor._sets.append(query)
        auditor._touched[query] = True
    for field in auditor._fields:
        while len(field._inverse) < rank:
            field._grow(len(field._inverse) + 1)  # as it grows by and by
        np.fill_diagonal(field._inverse[:rank, :rank], 1)
        field._pivots[:rank] = np.arange(rank)
        field._pivot_of[:rank] = np.arange(rank)
        if rank:
            field._null = []
            field.refill()
    return auditor


def measure(rank: int) -> tuple[float, ...]:
    """Seconds to decide, to answer, of both threads; megabytes and seconds of the file; the peak of memory."""
    rng = np.random.default_rng(rank)
    auditor = prepared(rank, rng)
    deciding, answering, working = [], [], []
    while len(answering) < QUERIES:
        query = random_set(rng)
        cpu, began = time.process_time(), time.perf_counter()
        allowed = auditor.decide(query).allowed
        decided = time.perf_counter()
        if allowed:
            auditor.answer(query)
            answering.append(time.perf_counter() - decided)
            deciding.append(decided - began)
            working.append(time.process_time() - cpu)
    with tempfile.TemporaryFile() as file:
        began = time.perf_counter()
        auditor.write(file)
        kept, size = time.perf_counter() - began, file.tell()
        peak = peak_mb_of(os.getpid())
        assert auditor.rank == rank + QUERIES
        del auditor
        file.seek(0)
        began = time.perf_counter()
        assert SumAuditor.read(file).rank == rank + QUERIES
        taken = time.perf_counter() - began
    medians = (float(np.median(each)) for each in (deciding, answering, working))
    return *medians, size / 1e6, kept, taken, peak


if __name__ == "__main__":
    print(*measure(int(sys.argv[1])))
