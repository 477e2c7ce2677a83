"""The union by prefixes, beside the operations that it cannot do without."""

from __future__ import annotations

from benchmarks.crypto.protocols import Plan, set_of
from benchmarks.crypto.together import in_memory, in_processes
from benchmarks.measure import cores
from benchmarks.mining.bound import prefix_union_s, primitives
from benchmarks.settings import PARTIES, Settings
from benchmarks.table import Table

ELEMENTS = 7000


def run(settings: Settings) -> list[Table]:
    """Three parties, one third of each set common to all."""
    elements = 150 if settings.quick else ELEMENTS
    parties, speed = len(PARTIES), primitives()
    names = set().union(*(set_of(party, elements, 0) for party in PARTIES))
    plan = Plan("prefixes", elements, bound=elements, repeats=settings.repeats)
    bound = prefix_union_s(parties, names)
    table = Table(
        f"Union by prefixes of {parties} parties, {elements:,} names of 16 bytes each, one third common",
        ("how", "seconds", "bound", "seconds / bound", "MB sent", "rounds"),
        notes=[
            "bound = a transfer between every two parties for each bit that is asked for, and their base transfers; "
            f"t_transfer = {speed.transfer_s * 1e6:.2f} µs, {cores()} cores"
        ],
    )
    for how, go in (("three processes over loopback TLS", in_processes), ("one process", in_memory)):
        settings.tell(f"{plan.protocol}, {how}")
        timing = go(plan)
        table.add(how, timing.seconds, bound, timing.seconds / bound, timing.bytes_sent / 1e6, timing.rounds)
    return [table]
