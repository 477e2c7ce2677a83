"""Jobs over columns of two parties, alignment included, beside mining the joined table; and the engines alone."""

from __future__ import annotations

import asyncio
import csv
import json
import random
import sys
import tempfile
import time
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import numpy as np

from benchmarks.datasets import Case, folder, minimum_count
from benchmarks.measure import run_process
from benchmarks.mining.local import OURS, measure
from benchmarks.settings import PARTIES, Settings
from benchmarks.table import Table
from crypto.primitives.bit_matrix import pack_bits
from crypto.primitives.randomness import Randomness
from crypto.protocols.comparison.two_party import pairs_of
from crypto.protocols.products.outside_dealer import Dealer, Dealings
from crypto.protocols.sums.pairwise import agree
from link.core import Terms
from link.executor import ThreadExecutor
from link.session import Session
from link.transports.memory import Hub
from mining.joint.vertical.choice import chosen_engine
from mining.joint.vertical.engines.engine import Setup
from mining.joint.vertical.engines.products import Addends
from mining.joint.vertical.engines.registry import OWN
from mining.joint.vertical.parameters import COORDINATOR, Mode, VerticalMining
from mining.joint.vertical.sizes import EngineCost, engine_costs, pairs_of_items

HOLDERS = PARTIES[:2]
CASE = Case("mushroom", Decimal("0.3"))
TARGET = 20  # times the whole process of our own miner on the joined table, for the fastest engine
DENSITY = 0.2


def run(settings: Settings) -> list[Table]:
    """Whole processes of `comine simulate`; and products of 50 × 50 columns over 100,000 rows."""
    return [_jobs(settings), _engines(settings)]


# -- whole jobs --------------------------------------------------------------------------------------------------------
def _jobs(settings: Settings) -> Table:
    table = Table(
        f"Joint job over the columns of two parties, {CASE.name}: seconds of the whole process `comine simulate`",
        ("alignment, engine", "itemsets", "seconds", "joined table", "×", "target ×", "MB sent", "rounds"),
        notes=[
            "joined table: the whole process of comine's own miner on the joined rows; × is the job's time beside it, "
            "for which the target holds with the fastest engine",
            "both parties are in one process and share its cores; alignment, report and result are in it",
        ],
    )
    source = folder().parent / "tables" / "mushroom_table.csv"
    if not (source.is_file() and CASE.path.is_file()):
        table.notes.append(f"skipped: no {source}; set COMINE_REFERENCE_DATA")
        return table
    with source.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    pooled = measure(OURS, CASE, minimum_count(CASE, len(rows)), settings)["whole_s"]
    modes: tuple[Mode, ...] = ("intersection",) if settings.quick else ("intersection", "union")
    with tempfile.TemporaryDirectory(prefix="comine-bench-") as name:
        files = _deal_columns(rows, Path(name))
        for mode in modes:
            for engine in list(OWN)[1:] if settings.quick else OWN:
                settings.tell(f"columns, {mode}, {engine}")
                repeats = 1 if engine == "paillier" else settings.repeats
                seconds = min(_simulate(Path(name), files, mode, engine) for _ in range(repeats))
                result = json.loads((Path(name) / "out" / "result.json").read_text())
                costs = result["parties"].values()
                found = sum(1 for _ in (Path(name) / "out" / "itemsets.csv").open(encoding="utf-8")) - 1
                table.add(
                    *(f"{mode}, {engine}", found, seconds, pooled, seconds / pooled, TARGET),
                    *(sum(cost["bytes_sent"] for cost in costs) / 1e6, max(cost["rounds"] for cost in costs)),
                )
    return table


def _deal_columns(rows: list[dict[str, str]], into: Path) -> dict[str, Path]:
    """Deals columns in turn; each party's rows are in an order of its own."""
    columns = [column for column in rows[0] if column != "id"]
    files = {}
    for number, party in enumerate(HOLDERS):
        files[party] = into / f"{party}.csv"
        own = ["id", *columns[number :: len(HOLDERS)]]
        people = [{**row, "id": f"r{place}"} for place, row in enumerate(rows)]
        random.Random(number).shuffle(people)
        with files[party].open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, own, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(people)
    return files


def _simulate(place: Path, files: Mapping[str, Path], mode: Mode, engine: str) -> float:
    (place / "job.toml").write_text(
        f'[job]\nname = "columns"\ntask = "itemsets"\nparties = {json.dumps(list(files))}\ndataset = "people"\n'
        f'partition = "vertical"\n[align]\nmode = "{mode}"\n'
        f'[itemsets]\nmin_support = {CASE.support}\nengine = "{engine}"\n'
    )
    parties = [word for party, path in files.items() for word in ("--party", f"{party}={path}")]
    options = ["--format", "csv", "--id", "id", "--out", "out"]
    command = [Path(sys.executable).with_name("comine"), "simulate", "job.toml", *parties, *options]
    return run_process(command, cwd=place).seconds


# -- engines alone -----------------------------------------------------------------------------------------------------
def _engines(settings: Settings) -> Table:
    rows, columns = (5_000, 10) if settings.quick else (100_000, 50)
    table = Table(
        f"Supports of all pairs of {columns} × {columns} columns over {rows} rows, density {DENSITY}, left shared",
        ("engine", "seconds", "CPU s, both", "reckoned CPU s", "MB", "rounds"),
        notes=[
            "both parties in one process, over a transport in memory; agreements and keys are made beforehand",
            "with several cores, encryption works in processes whose time is not among the CPU seconds",
        ],
    )
    task = VerticalMining(1, HOLDERS, HOLDERS, HOLDERS[0])
    reckoned = engine_costs(task, HOLDERS, rows, dict.fromkeys(HOLDERS, columns), density=DENSITY)
    for cost in reckoned:
        settings.tell(f"engine {cost.engine}")
        seconds, cpu = asyncio.run(_products(cost, rows, columns))
        table.add(cost.engine, seconds, cpu, cost.seconds, cost.bytes_sent / 1e6, cost.rounds)
    return table


async def _products(cost: EngineCost, rows: int, columns: int) -> tuple[float, float]:
    """Wall time and processor time of one call of an engine, checked against numpy."""
    draw = np.random.default_rng(0)
    bits = {party: draw.random((columns, rows)) < DENSITY for party in HOLDERS}
    itemsets = pairs_of_items(HOLDERS, dict.fromkeys(HOLDERS, columns), "intersection")
    helper = COORDINATOR if cost.engine == "replicated" else None
    task = VerticalMining(1, HOLDERS, HOLDERS, HOLDERS[0], engine=cost.engine, helper=helper)
    dealings: dict[str, Dealings] = dict(zip(HOLDERS, Dealer(Randomness.from_os()).here(), strict=True))
    executor, hub, ready = ThreadExecutor(), Hub(), asyncio.Barrier(len(HOLDERS))
    clocks: dict[str, tuple[float, float]] = {}

    async def part(party: str) -> Addends:
        terms = Terms(bytes(32), 1, bytes(32), HOLDERS, "engines")
        random = Randomness.from_os()
        session = await Session.establish(terms, party, hub.endpoint(party), random=random, executor=executor)
        secrets, pairs = await agree(session), pairs_of(session)
        engine = chosen_engine(task).start(Setup(session.lane("engine"), task, secrets, pairs, dealings[party]))
        try:
            await engine.prepare(0)
            for pair in pairs.values():
                await pair.prepare()
            packed = pack_bits(bits[party])
            await ready.wait()
            begun = time.perf_counter(), time.process_time()
            addends = await engine.addends(session.lane("work"), packed, rows, itemsets)
            clocks[party] = time.perf_counter() - begun[0], time.process_time() - begun[1]
            await ready.wait()
            return addends
        finally:
            engine.close()

    first, second = await asyncio.gather(*map(part, HOLDERS))
    executor.close()
    one, other = (bits[party].astype(np.float32) for party in HOLDERS)
    if not np.array_equal((first + second).reshape(columns, columns), (one @ other.T).astype(np.uint64)):
        raise RuntimeError(f"the engine {cost.engine} counts wrongly")
    return max(seconds for seconds, _ in clocks.values()), max(cpu for _, cpu in clocks.values())
