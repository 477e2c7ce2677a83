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

SCRIPT = Path(__file__).parent.parent / "peers" / "run.py"
OURS = "comine"
NOT_INSTALLED = "not installed"
SLOW_S = 5.0  # a tool that takes longer runs once
PEERS = ("pyfim eclat", "orange3-associate", "PAMI FPGrowth", "PAMI ECLAT", "mlxtend fpgrowth", "pyspark FPGrowth")


def run(settings: Settings) -> list[Table]:
    """Seconds of mining and of the whole process, per data set and tool; ratios to ours."""
    table = Table(
        "Local mining",
        ("data, tool", "itemsets", "mining s", "mining ×", "process s", "process ×", "peak MB"),
        notes=["× is the tool's time divided by comine's; above 1 comine is faster"],
    )
    cases = available(QUICK if settings.quick else CASES)
    if not cases:
        table.notes.append(f"skipped: no data in {folder()}; set COMINE_REFERENCE_DATA")
    if settings.peers_python is None:
        table.notes.append("the other tools are skipped; make bench-peers installs them")
    for case in cases:
        least = minimum_count(case, len(lines(case)))
        ours: dict[str, Any] = {}
        for tool in (OURS, *PEERS):
            found = measure(tool, case, least, settings)
            ours = ours or found
            if found.get("absent") == NOT_INSTALLED:
                continue
            table.add(f"{case.name}, {tool}", *_cells(ours, found))
            if "absent" in found:
                table.notes.append(f"{tool} on {case.name} is absent: {found['absent']}")
            elif found["itemsets"] != ours["itemsets"]:
                table.notes.append(f"{tool} on {case.name} gives another number of itemsets")
    return [table]


def measure(tool: str, case: Case, least: int, settings: Settings) -> dict[str, Any]:
    """The best run of one tool, or why there is none under "absent"."""
    if tool == OURS:
        python, environment = Path(sys.executable), {"PYTHONPATH": str(ROOT)}
    elif settings.peers_python is None:
        return {"absent": NOT_INSTALLED}
    else:
        python, environment = settings.peers_python, {}
    settings.tell(f"{tool} on {case.name}")
    runs: list[dict[str, Any]] = []
    while len(runs) < settings.repeats and (not runs or runs[-1]["whole_s"] < SLOW_S):
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


def _cells(ours: dict[str, Any], found: dict[str, Any]) -> list[Cell]:
    if "absent" in found:
        return [None] * 6
    mining, process = found["mining_s"], found["whole_s"]
    return [
        *(found["itemsets"], mining, mining / ours["mining_s"]),
        *(process, process / ours["whole_s"], found["peak_mb"]),
    ]
