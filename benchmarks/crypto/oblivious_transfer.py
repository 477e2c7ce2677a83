"""Oblivious transfer and computing on shares, from the bare arithmetic to comparisons between two processes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from unittest import mock

import numpy as np

from benchmarks.crypto.two_party import BITS_PER_S, LATENCY_S, Task, in_processes, wide_area
from benchmarks.measure import run_process
from benchmarks.settings import Settings
from benchmarks.table import Table
from crypto.primitives.bit_matrix import ROWS, transpose
from crypto.primitives.correlation_robust import hash_words
from crypto.primitives.keystream import Keystream
from crypto.primitives.randomness import Randomness
from crypto.protocols.transfers import extension_seeds
from crypto.protocols.transfers.extension_check import BatchCheck, check_bytes
from crypto.protocols.transfers.extension_codes import SYMBOL_BITS, block_count
from crypto.protocols.transfers.extension_seeds import DEFAULT_FIELD_BITS, Expanded, ReceiverSeeds, SenderSeeds, Told
from crypto.protocols.transfers.ot_extension import BATCH, Keep, lowest_bits, whole

MPYC = Path(__file__).parent.parent / "peers" / "mpyc_comparisons.py"
TRANSFERS_TARGET, TRIPLES_TARGET = 14.0, 7.5  # millions a second of one core, both sides added
COMPARISONS = (("at 64 bits", 64, 0.25), ("at 24 bits", 24, 0.12), ("at 18 bits", 18, 0.12), ("at 9 bits", 9, None))
CHECK_TARGET = 1.15
LEVEL, LEVEL_BITS, LEVEL_TARGET_S = 2_240_000, 9, 0.8  # retail at 0.1 %, three parties: pairs, and bits of capped sums
NO_OFFSET = np.zeros((1, 2), np.uint64)
HEAD = bytes(32)  # of a chain
DOT_TARGET_S, BASE_TARGET_S = 0.15, 0.040


def run(settings: Settings) -> list[Table]:
    """One core's arithmetic; two processes over the loopback; the same over a slow network; MPyC at its side."""
    return [_arithmetic(settings), _checks(settings), *_two_parties(settings)]


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
    for k in (1, 2, 3, 4):
        cost = _cpu_ns(_transfers(k), repeats)
        target = TRANSFERS_TARGET if k in (2, DEFAULT_FIELD_BITS) else None
        table.add(f"random transfers, k = {k}", cost, 1e3 / cost, target, block_count(k) / 8, cost / bare)
    for k in (2, 3, 4):
        cost, size = _cpu_ns(_symbols(k), repeats), block_count(k, SYMBOL_BITS) / 8
        table.add(f"of bits, one of {2**SYMBOL_BITS}, k = {k}", cost, 1e3 / cost, None, size, cost / bare)
    k = DEFAULT_FIELD_BITS
    cost = _cpu_ns(_triples(k), repeats)
    table.add(f"AND triples, k = {k}", cost, 1e3 / cost, TRIPLES_TARGET, 2 * block_count(k) / 8, cost / bare)
    return table


def _checks(settings: Settings) -> Table:
    """What the check of a batch adds: the two ways take turns, so that both meet the same machine."""
    table = Table(
        "Oblivious-transfer extension: batches with and without their check, in turn, processor time of both sides",
        ("what", "ns each", "without ns", "× without", "median ×", "target ×"),
        notes=["without: rows are not hashed, and nothing is compared; the link hashes corrections in either case"],
    )
    kinds: tuple[tuple[str, Callable[[int], Callable[[], object]], int], ...] = (
        ("random transfers", _transfers, 1),
        (f"of bits, one of {2**SYMBOL_BITS}", _symbols, SYMBOL_BITS),
    )
    for name, make, symbol_bits in kinds:
        for k in (1, 2, 3, 4):
            settings.tell(f"{name}, k = {k}, with and without check")
            work = make(k)
            unchecked = partial(_Unchecked, check_bytes(k, symbol_bits))
            taken: tuple[list[float], list[float]] = ([], [])
            for _ in range(3 if settings.quick else 25):
                for found, check in zip(taken, (BatchCheck, unchecked), strict=True):
                    with mock.patch.object(extension_seeds, "BatchCheck", check):
                        found.append(_cpu_ns(work, 1))
            best, bare = map(min, taken)
            ratios = [one / other for one, other in zip(*taken, strict=True)]
            table.add(f"{name}, k = {k}", best, bare, best / bare, median(ratios), CHECK_TARGET)
    return table


class _Unchecked:
    """In place of the check of a batch: as many bytes, and no work."""

    def __init__(self, told: int, *_: object) -> None:
        self._told = bytes(told)

    def hashes_of(self, _: object) -> bytes:
        return b""

    def told(self, *_: object) -> bytes:
        return self._told

    def agrees(self, *_: object) -> bool:
        return True


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
    random, blocks = Randomness.from_os(), block_count(k, SYMBOL_BITS)
    leaves = np.frombuffer(random.bytes(blocks * 2**k * 16), np.uint8).reshape(blocks, 2**k, 16)
    return ReceiverSeeds(leaves), SenderSeeds(leaves, random.bytes(-(-blocks * k // 8)), "receiver")


def _transfers(k: int, keep: Keep = whole) -> Callable[[], object]:
    receiver, sender = _seeds(k)
    choices = np.frombuffer(Randomness.from_os().bytes(BATCH // 8), np.uint8)

    def batch() -> None:
        first = receiver.used
        batch = receiver.expand(choices)
        keep(batch.rows, NO_OFFSET, first, 0)
        keep(sender.expand(_told(batch)), sender.offsets(1), first, 0)

    return batch


def _symbols(k: int) -> Callable[[], object]:
    """Transfers of one byte out of as many as symbols have values."""
    receiver, sender = _seeds(k)
    drawn = Randomness.from_os().bytes(SYMBOL_BITS * BATCH // 8)
    choices = np.frombuffer(drawn, np.uint8).reshape(SYMBOL_BITS, -1)

    def batch() -> None:
        first = receiver.used
        batch = receiver.expand(choices)
        hash_words(batch.rows, first, 0, NO_OFFSET, np.uint8)
        hash_words(sender.expand(_told(batch), SYMBOL_BITS), first, 0, sender.offsets(SYMBOL_BITS), np.uint8)

    return batch


def _told(batch: Expanded) -> Told:
    return Told(batch.corrections, HEAD, batch.check(HEAD))


def _triples(k: int) -> Callable[[], object]:
    one, other = _transfers(k, lowest_bits), _transfers(k, lowest_bits)

    def both() -> None:
        one()
        other()

    return both


def _two_parties(settings: Settings) -> list[Table]:
    near = Table(
        "Two parties on shares: two processes over loopback TLS",
        (
            "what",
            "number",
            "seconds",
            "target s",
            "CPU s, both",
            "µs each",
            "CPU µs each, both",
            "bytes each",
            "rounds",
        ),
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
        *(
            (
                f"comparisons at {LEVEL_BITS} bits, a level of retail, k = {k}",
                Task("comparisons", 10 * some if settings.quick else LEVEL, LEVEL_BITS, field_bits=k, repeats=repeats),
                LEVEL_TARGET_S if k == DEFAULT_FIELD_BITS and not settings.quick else None,
            )
            for k in (DEFAULT_FIELD_BITS, 4)
        ),
    ]
    seconds = {}
    for name, task, target in tasks:
        settings.tell(name)
        cost = in_processes(task)
        number = task.number
        near.add(
            *(name, number, cost.seconds, target, cost.cpu_s, cost.seconds / number * 1e6, cost.cpu_s / number * 1e6),
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
