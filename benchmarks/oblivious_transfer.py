"""Oblivious transfer and computing on shares, from the bare arithmetic to comparisons between two processes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.measure import run_process
from benchmarks.settings import Settings
from benchmarks.table import Table
from benchmarks.two_party import BITS_PER_S, LATENCY_S, Task, in_processes, wide_area
from crypto.primitives.bit_matrix import ROWS, transpose, xor_each
from crypto.primitives.correlation_robust import hash_rows
from crypto.primitives.keystream import Keystream
from crypto.primitives.randomness import Randomness
from crypto.protocols.extension_seeds import ReceiverSeeds, SenderSeeds
from crypto.protocols.ot_extension import BATCH, lowest_bits

MPYC = Path(__file__).parent / "peers" / "mpyc_comparisons.py"
TRANSFERS_TARGET, TRIPLES_TARGET = 14.0, 7.5  # millions a second of one core, both sides added
COMPARISONS = (("at 64 bits", 64, 0.25), ("at 24 bits", 24, 0.12), ("at 18 bits", 18, 0.12))
DOT_TARGET_S, BASE_TARGET_S = 0.15, 0.040


def run(settings: Settings) -> list[Table]:
    """One core's arithmetic; two processes over the loopback; the same over a slow network; MPyC at its side."""
    return [_arithmetic(settings), *_two_parties(settings)]


def _arithmetic(settings: Settings) -> Table:
    settings.tell("extension, one core")
    table = Table(
        "Oblivious-transfer extension: both sides' work on one core, processor time",
        ("what", "ns each", "million/s", "target", "bytes each", "× bare loop"),
        notes=[
            "bare loop = 56 bytes of AES-CTR and two bit transposes a transfer: no extension with k = 2 can do without",
            "processor time still grows when other work shares the core's caches and threads: the ratios say more",
        ],
    )
    repeats = 3 if settings.quick else 15
    bare = _cpu_ns(_bare_loop(), repeats)
    table.add("bare AES and transpose loop", bare, 1e3 / bare, None, None, 1.0)
    for k in (1, 2, 4):
        cost = _cpu_ns(_transfers(k), repeats)
        target = TRANSFERS_TARGET if k == 2 else None
        table.add(f"random transfers, k = {k}", cost, 1e3 / cost, target, ROWS / 8 / k, cost / bare)
    cost = _cpu_ns(_triples(), repeats)
    table.add("AND triples, k = 2", cost, 1e3 / cost, TRIPLES_TARGET, ROWS / 8, cost / bare)
    return table


def _cpu_ns(work: Callable[[], object], repeats: int) -> float:
    """Thread time a transfer of the fastest of some runs over one batch."""
    seconds = []
    for _ in range(repeats):
        start = time.thread_time()
        work()
        seconds.append(time.thread_time() - start)
    return min(seconds) / BATCH * 1e9


def _bare_loop() -> Callable[[], object]:
    streams = [
        Keystream(i.to_bytes(16, "big"), bytes(16)) for i in range(ROWS // 2 * 7)
    ]  # 64 blocks: 4 and 3 streams each
    buffer = np.zeros(BATCH // 64 + 2, np.uint64)
    matrix = np.zeros((ROWS, BATCH // 8), np.uint8)

    def loop() -> None:
        for stream in streams:
            stream.fill(buffer)
        transpose(matrix)
        transpose(matrix)

    return loop


def _seeds(k: int) -> tuple[ReceiverSeeds, SenderSeeds]:
    """Both halves as a trusted dealer would hand them out."""
    random = Randomness.from_os()
    leaves = np.frombuffer(random.bytes(ROWS // k * 2**k * 16), np.uint8).reshape(ROWS // k, 2**k, 16)
    return ReceiverSeeds(leaves), SenderSeeds(leaves, random.bytes(16))


def _transfers(k: int, keep: Callable[..., object] = lambda rows: rows) -> Callable[[], object]:
    receiver, sender = _seeds(k)
    choices = np.frombuffer(Randomness.from_os().bytes(BATCH // 8), np.uint8)

    def batch() -> None:
        first = receiver.used
        corrections, chosen = receiver.expand(choices)
        keep(hash_rows(chosen, first))
        rows = sender.expand(corrections)
        keep(hash_rows(rows, first))
        keep(hash_rows(xor_each(rows, sender.delta), first))

    return batch


def _triples() -> Callable[[], object]:
    one, other = _transfers(2, lowest_bits), _transfers(2, lowest_bits)

    def both() -> None:
        one()
        other()

    return both


def _two_parties(settings: Settings) -> list[Table]:
    near = Table(
        "Two parties on shares: two processes over loopback TLS",
        ("what", "number", "seconds", "target s", "µs each", "CPU µs each, both", "bytes each", "rounds"),
        notes=["seeds are agreed upon beforehand, once a session; all that follows, triples included, is counted"],
    )
    far = Table(
        f"Two parties in one process, {LATENCY_S * 1000:.0f} ms one way and {BITS_PER_S / 1e6:.0f} Mbit/s, emulated",
        ("what", "number", "seconds", "rounds", "MB", "rounds × latency s"),
    )
    some, many = (1_000, 10_000) if settings.quick else (10_000, 1 << 20)
    repeats = 1 if settings.quick else 5
    tasks = [
        ("agreement, both directions", Task("agreement", 1, repeats=repeats), 2 * BASE_TARGET_S),
        ("random transfers", Task("transfers", 4 * many, repeats=repeats), None),
        ("AND triples", Task("triples", 4 * many, repeats=repeats), None),
        ("dot product of bits", Task("dot product", many, repeats=repeats), DOT_TARGET_S),
        ("products modulo 2^64", Task("products", some, repeats=repeats), None),
        *(
            (f"comparisons {name}", Task("comparisons", some, width, repeats=repeats), target)
            for name, width, target in COMPARISONS
        ),
        ("comparisons at 18 bits, a large level", Task("comparisons", many // 2, 18, repeats=min(2, repeats)), None),
    ]
    seconds = {}
    for name, task, target in tasks:
        settings.tell(name)
        cost = in_processes(task)
        number = task.number
        near.add(
            *(name, number, cost.seconds, target, cost.seconds / number * 1e6, cost.cpu_s / number * 1e6),
            *(cost.bytes_sent / number, cost.rounds),
        )
        if task.name == "comparisons":
            seconds[number, task.width] = cost.seconds
        if number <= some:
            slow = wide_area(task)
            far.add(name, number, slow.seconds, slow.rounds, slow.bytes_sent / 1e6, slow.rounds * LATENCY_S)
    return [near, far, _beside_mpyc(settings, some, seconds)]


def _beside_mpyc(settings: Settings, number: int, ours: dict[tuple[int, int], float]) -> Table:
    table = Table(
        f"{number:,} comparisons beside MPyC's arrays, three local parties",
        ("width", "comine s", "MPyC s", "×"),
        notes=["comine: two computing parties, semi-honest, TLS. MPyC: honest majority of three, no TLS; with gmpy2"],
    )
    for _, width, _ in COMPARISONS[:2]:
        found = _mpyc(settings, number, width)
        mine = ours[number, width]
        table.add(width, mine, found, None if found is None else found / mine)
    if settings.peers_python is None:
        table.notes.append("MPyC is skipped; make bench-peers installs it")
    return table


def _mpyc(settings: Settings, number: int, width: int) -> float | None:
    if settings.peers_python is None:
        return None
    settings.tell(f"MPyC at {width} bits")
    try:
        finished = run_process(
            [settings.peers_python, MPYC, "-M3", "--number", str(number), "--width", str(width)],
        )
    except RuntimeError as error:
        settings.tell(str(error))
        return None
    seconds: float = json.loads(finished.output.strip().splitlines()[-1])["seconds"]
    return seconds
