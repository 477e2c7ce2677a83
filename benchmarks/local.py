"""Mining in one place: comine's local miner beside tools that miners of baskets use."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.datasets import CASES, QUICK, Case, available, folder, lines, minimum_count
from benchmarks.measure import run_process
from benchmarks.settings import ROOT, Settings
from benchmarks.table import Cell, Table

SCRIPT = Path(__file__).parent / "peers" / "run.py"
OURS = "comine"
PEERS = ("pyfim eclat", "orange3-associate", "PAMI FPGrowth", "PAMI ECLAT", "mlxtend fpgrowth", "pyspark FPGrowth")


def run(settings: Settings) -> list[Table]:
    """Seconds of mining and of the whole process, per tool and data set; ratios to ours."""
    mining = Table("Local mining: seconds of mining alone", ("data", "itemsets", OURS, *_heads()))
    whole = Table("Local mining: seconds of the whole process", ("data", "peak MB", OURS, *_heads()))
    for table in (mining, whole):
        table.notes.append("× is the peer's time divided by comine's; above 1 comine is faster")
    cases = available(QUICK if settings.quick else CASES)
    if not cases:
        mining.notes.append(f"skipped: no data in {folder()}; set COMINE_REFERENCE_DATA")
        return [mining]
    if settings.peers_python is None:
        mining.notes.append("the peers are skipped; make bench-peers installs them")
    for case in cases:
        least = minimum_count(case, len(lines(case)))
        ours = measure(OURS, case, least, settings)
        theirs = {tool: measure(tool, case, least, settings) for tool in PEERS}
        mining.add(case.name, ours["itemsets"], *_cells("mining_s", ours, theirs))
        whole.add(case.name, ours["peak_mb"], *_cells("whole_s", ours, theirs))
        mining.notes += _remarks(case, ours, theirs)
    return [mining, whole]


def measure(tool: str, case: Case, least: int, settings: Settings) -> dict[str, Any]:
    """The best run of one tool, or why there is none under "absent"."""
    if tool == OURS:
        python, environment = Path(sys.executable), {"PYTHONPATH": str(ROOT)}
    elif settings.peers_python is None:
        return {"absent": "not installed"}
    else:
        python, environment = settings.peers_python, {}
    settings.tell(f"{tool} on {case.name}")
    runs: list[dict[str, Any]] = []
    for _ in range(1 if tool.startswith("pyspark") else settings.repeats):
        try:
            finished = run_process([python, SCRIPT, tool, case.path, str(least)], environment=environment)
        except RuntimeError as error:
            return {"absent": str(error)}
        found = json.loads(finished.output.strip().splitlines()[-1])
        if "absent" in found:
            return {"absent": str(found["absent"])}
        runs.append({**found, "whole_s": finished.seconds})
    return {
        "itemsets": runs[0]["itemsets"],
        **{key: min(each[key] for each in runs) for key in ("mining_s", "whole_s", "peak_mb")},
    }


def _heads() -> list[str]:
    return [head for tool in PEERS for head in (tool, "×")]


def _cells(key: str, ours: dict[str, Any], theirs: dict[str, dict[str, Any]]) -> list[Cell]:
    cells: list[Cell] = [ours[key]]
    for found in theirs.values():
        seconds = found.get(key)
        cells += [None, None] if seconds is None else [seconds, seconds / ours[key]]
    return cells


def _remarks(case: Case, ours: dict[str, Any], theirs: dict[str, dict[str, Any]]) -> list[str]:
    remarks = []
    for tool, found in theirs.items():
        if "absent" in found:
            if found["absent"] != "not installed":
                remarks.append(f"{tool} on {case.name} is absent: {found['absent']}")
        elif found["itemsets"] != ours["itemsets"]:
            remarks.append(f"{tool} on {case.name} finds {found['itemsets']:,} itemsets, not {ours['itemsets']:,}")
    return remarks
