"""Paillier: encryption beside `phe`, and all products of two parties' columns from encryption to result."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal, TypeVar

import numpy as np

from benchmarks.crypto import heu
from benchmarks.measure import cores
from benchmarks.settings import PARTIES, Settings
from benchmarks.table import Cell, Table
from crypto.params import STANDARD_128
from crypto.primitives.bit_matrix import pack_bits
from crypto.primitives.paillier.ciphertexts import encrypt
from crypto.primitives.paillier.interchange import private_to_phe
from crypto.primitives.paillier.keys import PrivateKey, generate_key
from crypto.primitives.paillier.pool import ZeroPool
from crypto.primitives.paillier.zeros import OwnerZeros, TableZeros, UniformZeros, ZeroSource
from crypto.primitives.randomness import Randomness
from crypto.protocols.paillier.arrangement import Arrangement
from crypto.protocols.paillier.dot import declared, evaluate_opened, hold_opened
from crypto.protocols.paillier.kept import KeptColumns, KeptRows, evaluate_kept, hold_kept
from crypto.protocols.products.ot_matrix import all_pairs
from link.core import Terms
from link.executor import ThreadExecutor
from link.runtime.process_executor import ProcessExecutor
from link.session import Session
from link.transports.memory import Hub

T = TypeVar("T")
R = TypeVar("R")

HOLDER, EVALUATOR = PARTIES[:2]
LABEL = "products"
SLOTS_SUM: Final = (1 << 850) - 1  # a plaintext of fifty counts
FULL_TARGET, SHORT_TARGET, POOL_TARGET = 18.0, 40.0, 2000.0  # times as fast as phe, at 2048 bits
HEU_FULL_TARGET, HEU_SHORT_TARGET = 1.0, 2.0  # times as fast as sf-heu, whose exponents have half the length


@dataclass(frozen=True)
class Case:
    """All products of two parties' columns.

    Attributes:
        bits: Size of the key.
        result: "opened" or "doubled".
        rows: Length of the columns.
        columns: Of each party.
        density: Share of ones.
        targets: Seconds in all, seconds online, megabytes.
    """

    bits: int
    result: Literal["opened", "doubled"] = "opened"
    rows: int = 100_000
    columns: int = 50
    density: float = 0.2
    targets: tuple[Cell, Cell, Cell] = (None, None, None)


CASES = (
    Case(2048, targets=(30.0, 5.0, 60.0)),
    Case(3072, targets=(60.0, 9.0, 80.0)),
    Case(2048, density=0.5),
    Case(2048, "doubled"),
    Case(2048, columns=1, rows=1_000_000),
)


def run(settings: Settings) -> list[Table]:
    """Single ciphertexts; then whole products."""
    return [*(_single(settings, bits) for bits in (2048, 3072)), _products(settings)]


# -- single ciphertexts ------------------------------------------------------------------------------------------------
def _single(settings: Settings, bits: int) -> Table:
    settings.tell(f"single ciphertexts, {bits} bits")
    table = Table(
        f"Paillier, {bits} bits, one core, processor time",
        ("what", "µs each", "a second", "× phe", "target × phe", "× sf-heu", "target × sf-heu"),
        notes=["phe, sf-heu: the same operation of these libraries, one at a time; tables are made beforehand"],
    )
    at_2048 = bits == 2048
    targets: tuple[Cell, ...] = (FULL_TARGET, SHORT_TARGET, POOL_TARGET) if at_2048 else (None, None, None)
    full_beside_heu, short_beside_heu = (HEU_FULL_TARGET, HEU_SHORT_TARGET) if at_2048 else (None, None)
    random = Randomness.from_os()
    start = time.thread_time()
    key = generate_key(bits, random)
    table.add("key generation, one", (time.thread_time() - start) * 1e6, *[None] * 5)
    phe = _Phe(key) if importlib.util.find_spec("phe") is not None else None
    if phe is None:
        table.notes.append("phe is skipped; the development tools include it")
    theirs = heu.operations(settings, bits)
    if not theirs:
        table.notes.append(heu.SKIPPED)
    few, many = (2, 20) if settings.quick else (20, 200)

    reference = None if phe is None else _each(phe.encrypt, few)
    if reference is not None:
        table.add("phe, encryption", reference * 1e6, 1 / reference, 1.0, None, None, None)
    in_heu = theirs.get("encryption")
    if in_heu is not None:
        table.add("sf-heu, encryption", in_heu * 1e6, 1 / in_heu, _ratio(reference, in_heu), None, 1.0, None)
    sources: list[tuple[str, ZeroSource, int, tuple[Cell, Cell]]] = [
        ("owner, full exponents: assumes nothing", OwnerZeros.of(key, random), many, (targets[0], full_beside_heu)),
        ("owner, key of phe: assumes nothing", OwnerZeros.of(PrivateKey(key.p, key.q), random), many, (None, None)),
        ("owner, short exponents", OwnerZeros.of(key, random, exponent="short"), many, (targets[1], short_beside_heu)),
        ("anybody, exponents of half the length", TableZeros.of(key.public, random), many, (None, None)),
        ("anybody, short exponents", TableZeros.of(key.public, random, exponent="short"), many, (None, None)),
        ("anybody, uniform: assumes nothing", UniformZeros(key.public), few, (None, None)),
    ]
    for name, source, count, (beside_phe, beside_heu) in sources:
        source.make(1, random)

        def fresh(count: int, source: ZeroSource = source) -> object:
            return encrypt(key.public, [SLOTS_SUM] * count, source.make(count, random))

        cost = _each(fresh, count)
        ratios = _ratio(reference, cost), beside_phe, _ratio(in_heu, cost), beside_heu
        table.add(name, cost * 1e6, 1 / cost, *ratios)

    zeros = sources[2][1].make(1000, random)
    cost = _each(lambda count: encrypt(key.public, [SLOTS_SUM] * count, zeros[:count]), 1000)
    table.add("from a pool", cost * 1e6, 1 / cost, _ratio(reference, cost), targets[2], _ratio(in_heu, cost), None)
    one = encrypt(key.public, [1] * len(zeros), zeros)
    for name, ours, in_phe, count in (
        ("adding ciphertexts", lambda count: one[:count].sum(), phe and phe.add, 1000),
        ("decryption", lambda count: key.decrypt(one[:count]), phe and phe.decrypt, few),
    ):
        cost = _each(ours, count)
        beside = _ratio(_each(in_phe, count) if in_phe else None, cost), None, _ratio(theirs.get(name), cost), None
        table.add(name, cost * 1e6, 1 / cost, *beside)
    return table


class _Phe:
    """The same key in `phe`."""

    def __init__(self, key: PrivateKey) -> None:
        self._key = private_to_phe(key)
        self._one, self._other = (self._key.public_key.encrypt(number) for number in (1, 2))

    def encrypt(self, count: int) -> object:
        return [self._key.public_key.encrypt(SLOTS_SUM) for _ in range(count)]

    def add(self, count: int) -> object:
        return [self._one + self._other for _ in range(count)]

    def decrypt(self, count: int) -> object:
        return [self._key.decrypt(self._one) for _ in range(count)]


def _each(function: Callable[[int], object], count: int) -> float:
    """Seconds of thread time for one of `count`, of the fastest of some runs."""
    seconds = []
    for _ in range(5):
        start = time.thread_time()
        function(count)
        seconds.append((time.thread_time() - start) / count)
    return min(seconds)


def _ratio(theirs: float | None, ours: float) -> float | None:
    return None if theirs is None else theirs / ours


# -- products ----------------------------------------------------------------------------------------------------------
def _products(settings: Settings) -> Table:
    table = Table(
        f"All products of two parties' columns by Paillier, {cores()} worker processes for both, no network",
        (
            *("what", "rows", "density", "pool s", "online s", "in all s", "target s", "target online s"),
            *("CPU s", "MB", "target MB", "rounds"),
        ),
        notes=[
            "pool: encryptions of zero, full exponents, made before there is data; in all: key, tables, pool, online",
            "CPU: of both parties and all worker processes",
        ],
    )
    for case in CASES:
        if settings.quick:
            case = replace(case, rows=case.rows // 100)
        settings.tell(f"{case.columns} × {case.columns} {case.result} at {case.bits} bits")
        cost = asyncio.run(_run(case))
        total, online, size = case.targets
        name = f"{case.columns} × {case.columns} {case.result}, {case.bits} bits"
        table.add(
            *(name, case.rows, case.density, cost.pool_s, cost.online_s, cost.total_s, total, online, cost.cpu_s),
            *(cost.bytes_sent / 1e6, size, cost.rounds),
        )
    return table


@dataclass(frozen=True)
class _Cost:
    pool_s: float
    online_s: float
    total_s: float
    cpu_s: float
    bytes_sent: int
    rounds: int


async def _run(case: Case) -> _Cost:
    rng = np.random.default_rng(1)
    a, b = (rng.random((case.columns, case.rows)) < case.density for _ in range(2))
    pairs = all_pairs(case.columns, case.columns)
    random, threads, workers = Randomness.from_os(), ThreadExecutor(), _Metered(ProcessExecutor())
    try:
        await workers.map(_nothing, range(workers.workers))  # processes have started
        begin, cpu = time.perf_counter(), time.process_time()
        workers.cpu_s = 0.0
        key = generate_key(case.bits, random)
        pool = ZeroPool(OwnerZeros.of(key, random.derive("bases")))
        start = time.perf_counter()
        await pool.fill(_requests(case), random.derive("pool"), workers)
        pool_s = time.perf_counter() - start

        roles = _roles(case, key, pool, pack_bits(a), pack_bits(b), workers)
        hub, job_id = Hub(), hashlib.sha256(b"paillier").digest()

        async def party(name: str) -> tuple[Any, Session]:
            session = await Session.establish(
                Terms(job_id, 1, job_id, (HOLDER, EVALUATOR), STANDARD_128.suite),
                name,
                hub.endpoint(name),
                random=Randomness.from_os(),
                executor=threads,
                declared=[declared(LABEL, HOLDER, len(pairs), when="at the end")],
            )
            return await roles[name](session.lane("products")), session

        start = time.perf_counter()
        (result, one), (_, other) = await asyncio.gather(party(HOLDER), party(EVALUATOR))
        end = time.perf_counter()
        cpu_s = time.process_time() - cpu + workers.cpu_s
    finally:
        threads.close()
        workers.close()
    if case.result == "opened" and not (result.reshape(case.columns, -1) == a.astype(np.int64) @ b.T).all():
        raise RuntimeError("the products are wrong")
    sent = one.costs.bytes_sent + other.costs.bytes_sent
    return _Cost(pool_s, end - start, end - begin, cpu_s, sent, max(one.costs.rounds, other.costs.rounds))


def _requests(case: Case) -> int:
    return Arrangement.of(case.rows, all_pairs(case.columns, case.columns), case.bits).requests


def _roles(
    case: Case, key: PrivateKey, pool: ZeroPool, a: Any, b: Any, workers: _Metered
) -> dict[str, Callable[[Session], Awaitable[Any]]]:
    pairs, rows = all_pairs(case.columns, case.columns), case.rows
    if case.result == "opened":
        opened: dict[str, Any] = {"label": LABEL, "workers": workers}
        return {
            HOLDER: lambda session: hold_opened(session, EVALUATOR, key, pool, a, rows, pairs, **opened),
            EVALUATOR: lambda session: evaluate_opened(session, HOLDER, b, rows, pairs, key_bits=case.bits, **opened),
        }
    sent, kept = KeptColumns(rows, case.bits), KeptRows(KeptColumns(rows, case.bits))
    return {
        HOLDER: lambda session: hold_kept(session, EVALUATOR, key, pool, sent, a, pairs, None, workers=workers),
        EVALUATOR: lambda session: evaluate_kept(session, HOLDER, kept, b, pairs, None, workers=workers),
    }


class _Metered:
    """An executor that adds up the processor time of its kernels."""

    def __init__(self, executor: ProcessExecutor) -> None:
        self._executor, self.workers, self.cpu_s = executor, executor.workers, 0.0

    async def map(self, kernel: Callable[[T], R], chunks: Iterable[T]) -> Sequence[R]:
        results = await self._executor.map(partial(_timed, kernel), chunks)
        self.cpu_s += sum(seconds for _, seconds in results)
        return [result for result, _ in results]

    def close(self) -> None:
        self._executor.close()


def _timed(kernel: Callable[[T], R], chunk: T) -> tuple[R, float]:
    start = time.process_time()
    result = kernel(chunk)
    return result, time.process_time() - start


def _nothing(_: int) -> None:
    time.sleep(0.2)
