"""The secure set union beside the group operations that it cannot do without."""

from __future__ import annotations

from benchmarks.bound import primitives, union_s
from benchmarks.measure import cores
from benchmarks.protocols import Plan
from benchmarks.settings import PARTIES, Settings
from benchmarks.table import Table
from benchmarks.together import in_memory, in_processes
from crypto.protocols.union.lists import EPSILON_COMMON, common_fakes, spare_for_common_fakes

ELEMENTS = 7000


def run(settings: Settings) -> list[Table]:
    """Three parties, one third of each set common to all; fakes up to a bound."""
    elements = 150 if settings.quick else ELEMENTS
    plan = Plan("union", elements, bound=elements, repeats=settings.repeats)
    parties = len(PARTIES)
    fakes = parties * spare_for_common_fakes(parties, common_fakes(EPSILON_COMMON))
    common = len([number for number in range(elements) if number % 3 == 0])
    listed = parties * elements + fakes
    different = listed - (parties - 1) * common
    bound, speed = union_s(parties, listed, different), primitives()
    table = Table(
        f"Secure set union of {parties} parties, {listed:,} blocks in all lists, {different:,} different",
        ("how", "seconds", "bound", "seconds / bound", "MB sent", "rounds"),
        notes=[
            "bound = (n(Σ|S| + |U|)·t_mul + Σ|S|·t_embed) / cores, fakes included, "
            f"t_mul = {speed.multiply_s * 1e6:.1f} µs, t_embed = {speed.embed_s * 1e6:.1f} µs, {cores()} cores",
            "|U| counts common fakes of two parties twice, so the bound is a little too high",
        ],
    )
    for how, go in (("three processes over loopback TLS", in_processes), ("one process", in_memory)):
        settings.tell(f"union, {how}")
        timing = go(plan)
        table.add(how, timing.seconds, bound, timing.seconds / bound, timing.bytes_sent / 1e6, timing.rounds)
    return [table, _by_prefixes(settings, elements)]


def _by_prefixes(settings: Settings, elements: int) -> Table:
    """The same sets; base transfers between every two parties are part of the time."""
    plan = Plan("prefixes", elements, bound=elements, repeats=settings.repeats)
    table = Table(
        f"Union by prefixes of {len(PARTIES)} parties, {elements:,} elements each, one third common",
        ("how", "seconds", "MB sent", "rounds"),
    )
    for how, go in (("three processes over loopback TLS", in_processes), ("one process", in_memory)):
        settings.tell(f"union by prefixes, {how}")
        timing = go(plan)
        table.add(how, timing.seconds, timing.bytes_sent / 1e6, timing.rounds)
    return table
