"""Peak memory of a node during a job, beside the size of its data."""

from __future__ import annotations

from benchmarks.datasets import JOB_CASES, QUICK, available, folder
from benchmarks.federation import federation
from benchmarks.measure import peak_mb_of
from benchmarks.settings import Settings
from benchmarks.table import Table
from mining.data.loading import load_transactions


def run(settings: Settings) -> list[Table]:
    """Resident memory of the largest node before and after one job."""
    table = Table(
        "Memory of a node: peak resident MB",
        ("data", "rows of the party", "packed data", "file", "idle node", "peak after a job", "(peak − idle) / packed"),
        notes=["packed data = the encoded rows in memory; idle = started, nothing loaded yet"],
    )
    cases = available(QUICK if settings.quick else JOB_CASES)
    if not cases:
        table.notes.append(f"skipped: no data in {folder()}; set COMINE_REFERENCE_DATA")
    for case in cases:
        settings.tell(f"memory on {case.name}")
        with federation(case) as bench:
            nodes = {name: node.pid for name, node in bench.federation.nodes.items()}
            idle = {name: peak_mb_of(pid) for name, pid in nodes.items()}
            bench.run()
            peaks = {name: peak_mb_of(pid) for name, pid in nodes.items()}
            name = max(peaks, key=lambda party: peaks[party] - idle[party])
            path = bench.files[name]
            data, size = load_transactions(path, "basket"), path.stat().st_size / 1e6
        packed = data.nbytes / 1e6
        table.add(case.name, data.n_rows, packed, size, idle[name], peaks[name], (peaks[name] - idle[name]) / packed)
    return [table]
