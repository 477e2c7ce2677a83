"""Runs the benchmarks and prints tables of ratios."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from benchmarks import console as console_pages
from benchmarks import soak
from benchmarks.anonymization import anonymize, anonymize_clustering, joint_anonymisation, rows_at_size
from benchmarks.crypto import oblivious_transfer, paillier, psi, sums, union, wide_area
from benchmarks.measure import cores
from benchmarks.mining import (
    checked,
    columns_at_size,
    distributed,
    engines,
    job,
    large_rows,
    local,
    memory,
    models,
    plan,
    relayed,
    rule_hiding,
    sizing,
    vertical,
)
from benchmarks.privacy import accounting, auditing, frequency, hybrid, ldp, reports_at_size, sets, shuffle, streams
from benchmarks.settings import ROWS, Settings
from benchmarks.table import Table

SECTIONS: dict[str, Callable[[Settings], list[Table]]] = {
    "sum": sums.run,
    "union": union.run,
    "psi": psi.run,
    "ot": oblivious_transfer.run,
    "paillier": paillier.run,
    "engines": engines.run,
    "vertical": vertical.run,
    "ldp": ldp.run,
    "reports-at-size": reports_at_size.run,
    "frequency": frequency.run,
    "accounting": accounting.run,
    "sets": sets.run,
    "hybrid": hybrid.run,
    "distributed": distributed.run,
    "models": models.run,
    "shuffle": shuffle.run,
    "streams": streams.run,
    "link": wide_area.run,
    "local": local.run,
    "large": large_rows.run,
    "columns-at-size": columns_at_size.run,
    "cardinality": columns_at_size.without_order,
    "union-at-size": columns_at_size.united,
    "job": job.run,
    "checked": checked.run,
    "relay": relayed.run,
    "memory": memory.run,
    "sizing": sizing.run,
    "plan": plan.run,
    "anonymize": anonymize.run,
    "anonymize-at-size": rows_at_size.run,
    "clustering": anonymize_clustering.run,
    "joint-anonymisation": joint_anonymisation.run,
    "hiding": rule_hiding.run,
    "auditing": auditing.run,
    "console": console_pages.run,
    "soak": soak.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", default="", metavar="NAMES", help=f"some of {','.join(SECTIONS)}, between commas")
    parser.add_argument("--quick", action="store_true", help="small inputs, to see that all works; not for numbers")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all tables there too")
    parser.add_argument(
        "--rows",
        type=int,
        nargs="+",
        metavar="N",
        help=f"of sections 'large', 'cardinality' and '…-at-size'; {' and '.join(map(str, ROWS))} by default",
    )
    parser.add_argument(
        "--minutes", type=float, metavar="M", help="of section 'soak'; 30 by default, a third of it warm-up"
    )
    given = parser.parse_args()
    names = [name for name in given.only.split(",") if name] or list(SECTIONS)
    for name in names:
        if name not in SECTIONS:
            parser.error(f"there is no section '{name}'; there are {', '.join(SECTIONS)}")
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 180)
    settings = Settings(given.quick, Console(stderr=True), tuple(given.rows or ()), given.minutes)
    machine = f"{platform.machine()}, {cores()} cores, Python {platform.python_version()}"
    console.print(f"{machine}{', QUICK: the numbers mean nothing' if given.quick else ''}\n")
    tables: list[Table] = []
    for name in names:
        for table in SECTIONS[name](settings):
            table.show(console)
            tables.append(table)
    if given.json is not None:
        given.json.write_text(
            json.dumps({"machine": machine, "tables": [t.as_data() for t in tables]}, indent=2) + "\n"
        )


if __name__ == "__main__":
    main()
