"""What `comine job plan` foretells beside what the job then costs, over nodes on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from benchmarks.datasets import Case, available, folder
from benchmarks.federation import federation
from benchmarks.measure import run_process
from benchmarks.settings import Settings
from benchmarks.table import Table
from coordinator.demo.loopback import LoopbackFederation
from coordinator.demo.story import BASKETS, JOB, as_file, households
from link.errors import ConfigurationError
from mining.data.transactions import Transactions
from mining.public_sizes import measured

CASES = (Case("retail", Decimal("0.005")), Case("T10I4D100K", Decimal("0.005")))
STRATEGIES = ("level-wise", "one-shot")


def run(settings: Settings) -> list[Table]:
    """Predicted and actual bytes, rounds and seconds of each job."""
    table = Table(
        "Plans of three parties: predicted by actual",
        (
            "job",
            "strategy",
            "kB sent",
            "predicted",
            "×",
            "worst party ×",
            "rounds",
            "predicted",
            "seconds",
            "predicted",
            "×",
        ),
        notes=[
            "sizes published coarsely; seconds are the parties' own, from greeting to receipts, data read before",
            "× is predicted by actual; of several runs, each planned anew, the one with the middle ratio of seconds",
        ],
    )
    cases = CASES[:1] if settings.quick else CASES
    for strategy in STRATEGIES:
        try:
            with demo() as made:
                measure(table, settings, "demo", made, strategy)
        except ConfigurationError as error:
            table.notes.append(f"demo skipped: {error.message}")
        for case in available(cases):
            with federation(case) as bench:
                measure(table, settings, case.name, bench.federation, strategy)
    if len(available(cases)) < len(cases):
        table.notes.append(f"skipped: not all data in {folder()}; set COMINE_REFERENCE_DATA")
    return [table]


def measure(table: Table, settings: Settings, name: str, made: LoopbackFederation, strategy: str) -> None:
    """Plans and runs one job some times and enters the run of the middle ratio of seconds."""
    settings.tell(f"plan of {name}, {strategy}")
    job = made.folder / "job.toml"
    lines = [line for line in job.read_text(encoding="utf-8").splitlines() if not line.startswith("strategy")]
    lines.insert(lines.index("[itemsets]") + 1, f'strategy = "{strategy}"')
    job.write_text("\n".join(lines) + "\n", encoding="utf-8")
    comine = [sys.executable, "-P", "-m", "comine", "job"]
    of = [str(job), "--federation", str(made.file)]
    found: list[tuple[float, dict[str, Any]]] = []
    for _ in range(settings.repeats):
        run_process([*comine, "plan", *of, "--json"])
        run_process([*comine, "run", *of, "--out", str(made.folder / "result")])
        compared = json.loads((made.folder / "result" / "result.json").read_text())["plan"]
        found.append((max(party["seconds"]["ratio"] for party in compared.values()), compared))
    found.sort(key=lambda each: each[0])
    ratio, compared = found[len(found) // 2]
    parties = list(compared.values())
    predicted, actual = (sum(party["bytes_sent"][what] for party in parties) for what in ("predicted", "actual"))
    worst = max(
        (party[kind]["ratio"] for party in parties for kind in ("bytes_sent", "bytes_received")),
        key=lambda each: abs(each - 1),
    )
    rounds = [max(party["rounds"][what] for party in parties) for what in ("actual", "predicted")]
    seconds = [max(party["seconds"][what] for party in parties) for what in ("actual", "predicted")]
    table.add(
        name, strategy, actual / 1000, predicted / 1000, predicted / actual, worst, *map(int, rounds), *seconds, ratio
    )


@contextlib.contextmanager
def demo() -> Iterator[LoopbackFederation]:
    """The demo's federation, its nodes running.

    Raises:
        ConfigurationError: The demo's data are not installed.
    """
    with tempfile.TemporaryDirectory(prefix="comine-bench-") as name:
        place = Path(name)
        sources = {}
        for party, baskets in households().items():
            sources[party] = place / f"{party}.txt"
            sources[party].write_text(as_file(baskets), encoding="utf-8")
        public = {party: measured(Transactions.from_rows(baskets)) for party, baskets in households().items()}
        made = LoopbackFederation.prepare(
            place, "policies", sources, written=dict.fromkeys(sources, BASKETS), public=public
        )
        (place / "job.toml").write_text(JOB, encoding="utf-8")
        with made.running():
            asyncio.run(made.ready())
            yield made
