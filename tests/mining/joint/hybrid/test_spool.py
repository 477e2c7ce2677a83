"""Reports at a shuffler: on the disk where memory is short, without repetitions, in uniform order, gone at the end."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections import Counter
from itertools import permutations
from math import factorial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from crypto.primitives.sealed import Rows
from mining.joint.hybrid.spool import Spool
from mining.joint.hybrid.spool_limits import SpoolLimits
from tests.errors import fails

pytestmark = pytest.mark.turn(3)

SIZE = 6
SHORT = SpoolLimits(memory=1 << 10)  # 128 bytes of reports at a time


def rows(reports: list[int]) -> Rows:
    return np.frombuffer(b"".join(each.to_bytes(SIZE, "big") for each in reports), np.uint8).reshape(-1, SIZE)


def spool(limits: SpoolLimits, expected: int, seed: int = 0) -> Spool:
    random = Randomness.from_seed(seed)
    return Spool(limits, SIZE, expected, random.bytes(32), random.bytes(32))


def came_out(filled: Spool, seed: int = 0) -> list[int]:
    pieces = filled.in_secret_order(Randomness.from_seed(seed))
    return [int.from_bytes(row.tobytes(), "big") for piece in pieces for row in piece]


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 2), st.lists(st.integers(0, 60), max_size=25)), max_size=12), st.booleans())
def test_each_report_comes_out_once_for_the_first_sender_that_sent_it(
    added: list[tuple[int, list[int]]], short: bool
) -> None:
    number = sum(len(reports) for _, reports in added)
    filled = spool(SHORT if short else SpoolLimits(), number)
    for sender, reports in added:
        filled.add(sender, rows(reports))
    kept = filled.kept(3)
    owner: dict[int, int] = {}
    for sender in range(3):
        for each, reports in added:
            if each == sender:
                owner |= {report: sender for report in reports if report not in owner}
    assert Counter(came_out(filled)) == Counter(dict.fromkeys(owner, 1))
    assert kept.by_sender == tuple(list(owner.values()).count(sender) for sender in range(3))
    assert kept.replayed == number - len(owner)
    filled.close()


def test_what_fits_memory_never_touches_the_disk(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    filled = spool(SpoolLimits(folder=tmp_path), 1_000)
    filled.add(0, rows(list(range(1_000))))
    assert filled.kept(1).by_sender == (1_000,)
    assert sorted(came_out(filled)) == list(range(1_000))
    assert filled.bytes_on_disk == 0


def test_orders_of_few_reports_are_uniform() -> None:
    """All 24 orders of four reports that lie in up to eight buckets, 600 draws: χ² with 23 degrees of freedom stays
    below 70 but with a probability of 10⁻⁶."""
    seen = Counter[tuple[int, ...]]()
    for seed in range(600):
        filled = spool(SpoolLimits(memory=64), 4, seed)
        filled.add(0, rows([1, 2, 3, 4]))
        filled.kept(1)
        seen[tuple(came_out(filled, seed + 1))] += 1
        filled.close()
    assert set(seen) == set(permutations([1, 2, 3, 4]))
    assert sum((count - 25) ** 2 / 25 for count in seen.values()) < 70


@pytest.mark.parametrize(("n", "buckets"), [(3, 2), (4, 4), (5, 3)])
def test_every_order_has_the_same_probability(n: int, buckets: int) -> None:
    """The law of the docstring in exact numbers: for each order, sum over all labels of which it can come."""
    chances: Counter[tuple[int, ...]] = Counter()  # in units of B⁻ⁿ / (n!)^B
    for code in range(buckets**n):
        labels = [code // buckets**place % buckets for place in range(n)]
        held = [[each for each in range(n) if labels[each] == bucket] for bucket in range(buckets)]
        orders: list[tuple[int, ...]] = [()]
        weight = factorial(n) ** buckets
        for inside in held:
            orders = [(*before, *each) for before in orders for each in permutations(inside)]
            weight //= factorial(len(inside))
        for order in orders:
            chances[order] += weight
    assert set(chances.values()) == {buckets**n * factorial(n) ** buckets // factorial(n)}


def test_where_a_report_comes_out_says_nothing_of_where_it_came_in() -> None:
    """The rank correlation of 20,000 reports that pass the disk stays within 5 deviations of 0."""
    n = 20_000
    filled = spool(SpoolLimits(memory=1 << 16), n)
    for start in range(0, n, 1_000):
        filled.add(start // 7_000, rows(list(range(start, start + 1_000))))
    filled.kept(3)
    assert filled.bytes_on_disk > n * SIZE * 0.9
    places = np.array(came_out(filled))
    assert abs(np.corrcoef(np.arange(n), places)[0, 1]) < 5 / n**0.5
    filled.close()


def test_nothing_is_seen_on_the_disk_and_nothing_stays(tmp_path: Path) -> None:
    """The file has no name, and its bytes say nothing of equal reports."""
    filled = spool(SpoolLimits(1 << 10, tmp_path), 400)
    for _ in range(20):
        filled.add(0, np.zeros((20, SIZE), np.uint8))
    assert filled.bytes_on_disk
    assert not list(tmp_path.iterdir())
    opened = next(each for each in Path("/proc/self/fd").iterdir() if _target(each).startswith(str(tmp_path)))
    assert opened.stat().st_mode & 0o777 == 0o600
    held = opened.read_bytes()
    assert max(Counter(held).values()) < len(held) / 8  # a plain one would be zeros for the most part
    filled.close()
    assert not _open_in(tmp_path, os.getpid())


def _target(number: Path) -> str:
    try:
        return str(number.readlink())
    except FileNotFoundError:
        return ""


def test_a_disk_that_fills_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    filled = spool(SpoolLimits(1 << 10, tmp_path), 400)
    with fails("E103"):
        for start in range(0, 400, 20):
            filled.add(0, rows(list(range(start, start + 20))))
    filled.close()


PROCESS = """
import resource, sys, time
from pathlib import Path
import numpy as np
from crypto.primitives.randomness import Randomness
from mining.joint.hybrid.spool_limits import SpoolLimits
from mining.joint.hybrid.spool import Spool

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10

size, number, memory = 500, 400_000, 64 << 20
random, before = Randomness.from_seed(1), peak()
filled = Spool(SpoolLimits(memory, Path(sys.argv[1])), size, number, random.bytes(32), random.bytes(32))
for _ in range(0, number, 4_000):
    filled.add(0, np.frombuffer(random.bytes(4_000 * size), np.uint8).reshape(-1, size))
print(filled.bytes_on_disk, flush=True)
assert filled.kept(1).by_sender == (number,)
assert sum(map(len, filled.in_secret_order(random))) == number
print(peak() - before, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured in kibibytes there")
def test_a_process_needs_little_memory_and_leaves_nothing_when_it_dies(tmp_path: Path) -> None:
    """200 MB of reports take less than 64 MiB of memory, and nothing of them is there once the process is dead."""
    with subprocess.Popen([sys.executable, "-c", PROCESS, tmp_path], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert int(process.stdout.readline()) > 190e6
            assert int(process.stdout.readline()) < 64 << 20
            assert not list(tmp_path.iterdir())
            assert _open_in(tmp_path, process.pid)
        finally:
            process.kill()
    assert not list(tmp_path.iterdir())


def _open_in(folder: Path, process: int) -> list[str]:
    """Files in a folder that a process has open, also those without a name."""
    numbers = Path(f"/proc/{process}/fd").iterdir()
    return [target for target in map(_target, numbers) if target.startswith(str(folder))]
