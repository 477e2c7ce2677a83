"""Each protocol once over an emulated wide-area network, where rounds and bytes count, beside the loopback."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.crypto.protocols import Plan
from benchmarks.crypto.together import BITS_PER_S, LATENCY_S, over_tls, wide_area
from benchmarks.datasets import QUICK, available, deal, lines, minimum_count
from benchmarks.settings import PARTIES, Settings
from benchmarks.table import Table


def run(settings: Settings) -> list[Table]:
    """Secure sum, ring sum, unions and a joint job, all parties in one process."""
    table = Table(
        f"Wide area: {LATENCY_S * 1000:.0f} ms one way and {BITS_PER_S / 1e6:.0f} Mbit/s uplink per party, emulated",
        ("protocol", "loopback TLS s", "wide area s", "rounds", "MB sent", "rounds × latency s"),
        notes=["all parties in one process; the last column is what the rounds alone cost"],
    )
    size, elements = (1_000, 50) if settings.quick else (100_000, 1_000)
    plans = {
        f"secure sum of {size:,} values": Plan("sum", size),
        f"ring sum of {size:,} values": Plan("ring", size),
        f"union by prefixes, {elements:,} names per party": Plan("prefixes", elements, bound=elements),
        f"set union, {elements:,} pseudonyms per party": Plan("union", elements, bound=elements),
    }
    with tempfile.TemporaryDirectory(prefix="comine-bench-") as folder:
        for case in available(QUICK):
            rows = lines(case)
            files = {name: str(path) for name, path in deal(rows, PARTIES, Path(folder)).items()}
            least = minimum_count(case, len(rows))
            plans[f"joint itemsets, {case.name}"] = Plan("joint", data=files, min_support=least)
        for name, plan in plans.items():
            settings.tell(f"wide area, {name}")
            near, far = over_tls(plan), wide_area(plan)
            table.add(name, near.seconds, far.seconds, far.rounds, far.bytes_sent / 1e6, far.rounds * LATENCY_S)
    return [table]
