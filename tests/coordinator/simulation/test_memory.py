"""What a node's process takes during jobs: real nodes, `comine party serve`, and their peak as Linux sees it.

The bound is three times the party's packed data (the bitmaps of its frequent items, and its encoded rows) and 300 MB
for the interpreter, the libraries, and the vectors of a batch of candidates. It holds for jobs one after another, too.
"""

from __future__ import annotations

import asyncio
import ctypes
import gzip
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from coordinator.demo.loopback import LoopbackFederation
from coordinator.jobs.runner import run_job
from jobs.loading import job_of
from jobs.results.result import Result
from mining.data.items.bitmaps import packed_bytes
from mining.data.loading import load_transactions
from party.node.memory import return_freed_arrays

PARTIES = ("north", "south", "east")
FIXED_BYTES = 300e6
PER_PACKED_BYTE = 3


def dealt(source: Path, folder: Path) -> dict[str, Path]:
    """A file for each party with the rows that chance gave it."""
    rows = [line for line in gzip.decompress(source.read_bytes()).splitlines(keepends=True) if line.strip()]
    owner = np.random.default_rng(1).integers(len(PARTIES), size=len(rows))
    files = {party: folder / f"{party}.dat" for party in PARTIES}
    for place, path in enumerate(files.values()):
        path.write_bytes(b"".join(rows[row] for row in np.flatnonzero(owner == place)))
    return files


def peak_bytes(pid: int) -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


async def mined(federation: LoopbackFederation, min_support: str, jobs: int) -> Result:
    """What several jobs, one after another, find."""
    contents = {
        "job": {"name": "memory", "task": "itemsets", "parties": list(PARTIES), "dataset": "baskets"},
        "itemsets": {"min_support": min_support},
    }
    spec = job_of(contents, "the test", Path())
    await federation.ready()
    results = [await run_job(spec, federation.identity(), federation.addresses) for _ in range(jobs)]
    return results[0]


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is read from /proc")
@pytest.mark.turn(2)
@pytest.mark.parametrize(("name", "min_support", "jobs"), [("T10I4D100K", "0.002", 2), ("retail", "0.001", 1)])
def test_a_node_stays_small(name: str, min_support: str, jobs: int, shared_data: Path, tmp_path: Path) -> None:
    files = dealt(shared_data / "transactions" / f"{name}.dat.gz", tmp_path)
    federation = LoopbackFederation.prepare(tmp_path / "federation", "baskets", files)
    with federation.running():
        result = asyncio.run(mined(federation, min_support, jobs))
        peaks = {party: peak_bytes(node.pid) for party, node in federation.nodes.items()}
    assert result.finding is not None
    frequent = {item for itemset, _ in result.finding.itemsets if len(itemset) == 1 for item in itemset}
    for party, path in files.items():
        data = load_transactions(path, "basket")
        packed = packed_bytes(len(frequent), data.n_rows) + data.nbytes
        assert peaks[party] < PER_PACKED_BYTE * packed + FIXED_BYTES, (
            f"{party} took {peaks[party] / 1e6:.0f} MB for {packed / 1e6:.1f} MB of packed data"
        )


def test_a_libc_without_the_setting_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    return_freed_arrays()
