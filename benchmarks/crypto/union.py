"""The unions, of names and of pseudonyms, beside the operations that they cannot do without."""

from __future__ import annotations

from benchmarks.crypto.protocols import Plan, set_of
from benchmarks.crypto.together import in_memory, in_processes
from benchmarks.measure import cores
from benchmarks.mining.bound import prefix_union_s, primitives, set_union_s
from benchmarks.settings import PARTIES, Settings
from benchmarks.table import Table

ELEMENTS = 7000


def run(settings: Settings) -> list[Table]:
    """Three parties, one third of each set common to all; fakes up to a bound."""
    elements = 150 if settings.quick else ELEMENTS
    parties, speed = len(PARTIES), primitives()
    names = set().union(*(set_of(party, elements, 0) for party in PARTIES))
    by_prefixes = _table(
        settings,
        "prefixes",
        elements,
        f"Union by prefixes of {parties} parties, {elements:,} names of 16 bytes each, one third common",
        prefix_union_s(parties, names),
        "bound = a transfer between every two parties for each bit that is asked for, and their base transfers; "
        f"t_transfer = {speed.transfer_s * 1e6:.2f} µs, {cores()} cores",
    )
    under_encryption = _table(
        settings,
        "union",
        elements,
        f"Set union of {parties} parties, {elements:,} pseudonyms each, one third common",
        set_union_s(parties, elements),
        "bound = ((2n² + 1)·L·t_mul + n·L·t_embed) / cores, L the length of a list with fakes, "
        f"t_mul = {speed.multiply_s * 1e6:.1f} µs, t_embed = {speed.embed_s * 1e6:.1f} µs, {cores()} cores",
    )
    return [by_prefixes, under_encryption]


def _table(settings: Settings, protocol: str, elements: int, title: str, bound: float, note: str) -> Table:
    plan = Plan(protocol, elements, bound=elements, repeats=settings.repeats)
    table = Table(title, ("how", "seconds", "bound", "seconds / bound", "MB sent", "rounds"), notes=[note])
    for how, go in (("three processes over loopback TLS", in_processes), ("one process", in_memory)):
        settings.tell(f"{plan.protocol}, {how}")
        timing = go(plan)
        table.add(how, timing.seconds, bound, timing.seconds / bound, timing.bytes_sent / 1e6, timing.rounds)
    return table
