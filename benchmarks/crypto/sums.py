"""The secure sum of a million values, and the primitives on which all protocols stand."""

from __future__ import annotations

from benchmarks.crypto.protocols import Plan
from benchmarks.crypto.together import in_memory, in_processes
from benchmarks.mining.bound import primitives
from benchmarks.settings import Settings
from benchmarks.table import Table

TARGET_S = 0.15


def run(settings: Settings) -> list[Table]:
    """Three parties over loopback TLS and in one process; keystream and group operations of one core."""
    values = 10_000 if settings.quick else 1_000_000
    table = Table(
        f"Secure sum of {values:,} 64-bit values among three parties, opened to all",
        ("how", "seconds", "target", "million values/s", "MB sent", "rounds"),
    )
    plan = Plan("sum", values, repeats=1 if settings.quick else 5)
    for how, go in (("three processes over loopback TLS", in_processes), ("one process", in_memory)):
        settings.tell(f"sum, {how}")
        timing = go(plan)
        table.add(how, timing.seconds, TARGET_S, values / timing.seconds / 1e6, timing.bytes_sent / 1e6, timing.rounds)
    speed = primitives()
    basis = Table(
        "Primitives, one core",
        ("what", "number", "unit"),
        notes=["the best of three runs, on the machine as it is now"],
    )
    basis.add("random bytes (AES-128-CTR into an array)", speed.keystream_gb_s, "GB/s")
    basis.add("ristretto255 scalar multiplication", speed.multiply_s * 1e6, "µs")
    return [table, basis]
