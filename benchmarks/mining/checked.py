"""Complete jobs that hold against parties that deviate, beside those that do not: real nodes, in turns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from benchmarks.datasets import QUICK, Case, available, folder
from benchmarks.federation import Bench, federation
from benchmarks.measure import core_seconds_of
from benchmarks.settings import PARTIES, Settings
from benchmarks.table import Table
from mining.data.loading import load_transactions

CASES: Final = tuple(Case(data, Decimal("0.005")) for data in ("groceries", "retail"))
_HELPER: Final = f'helper = "{PARTIES[2]}"\n'
_CHECKED: Final = f'{_HELPER}security = "malicious"\n'
_CATALOGUE: Final = 'universe = "items.txt"\n'
# By way, lines of [itemsets] and of [trust]; a way is compared with the first, and with the one named.
_WAYS: Final[Mapping[tuple[str, str], tuple[str, str]]] = {
    ("two", "union"): ("", ""),
    ("three", "union"): ("", _HELPER),
    ("three", "catalogue"): (_CATALOGUE, _HELPER),
    ("malicious", "union"): ("", _CHECKED),
    ("malicious", "catalogue"): (_CATALOGUE, _CHECKED),
}
_TURNS: Final = 5


def run(settings: Settings) -> list[Table]:
    """Wall time, processor time and messages, by security and by where items come from."""
    table = Table(
        "Joint job of three parties by security: the whole process `comine job run`, nodes running",
        (
            *("data", "computing", "items", "seconds", "× two", "× three"),
            *("parties' s", "× two", "× three", "nodes' core s", "× two", "× three", "kB sent", "rounds"),
        ),
        notes=[
            "two: two parties compute, the default; three: and a helper; malicious: the three check all that they do; "
            "a catalogue has all items; × two: of a union, × three: of the same items",
            f"the ways take turns, {_TURNS} each; seconds: the best; parties' s: of the joint computation at the "
            "slowest party, the best; core seconds: of all nodes together, the mean",
        ],
    )
    cases = available(QUICK if settings.quick else CASES)
    if not cases:
        table.notes.append(f"skipped: no data in {folder()}; set COMINE_REFERENCE_DATA")
    for case in cases:
        with federation(case) as bench:
            settings.tell(f"checked and other jobs on {case.name}")
            _measure(table, bench, 1 if settings.quick else _TURNS)
    return [table]


def _measure(table: Table, bench: Bench, turns: int) -> None:
    items = {item for path in bench.files.values() for item in load_transactions(path, "basket").items}
    catalogue = bench.federation.folder / "items.txt"
    catalogue.write_text("".join(f"{item}\n" for item in sorted(items)), encoding="utf-8")
    for lines in _WAYS.values():  # warm: data loaded, connections open
        bench.run("supports", *lines)
    wall, inside, cores = ({way: list[float]() for way in _WAYS} for _ in range(3))
    costs: dict[tuple[str, str], tuple[float, int]] = {}
    for _ in range(turns):
        for way, lines in _WAYS.items():
            before = _core_seconds(bench)
            wall[way].append(bench.run("supports", *lines).seconds)
            cores[way].append(_core_seconds(bench) - before)
            parties = json.loads((bench.federation.folder / "result" / "result.json").read_text())["parties"].values()
            inside[way].append(max(party["seconds"] for party in parties))
            costs[way] = sum(p["bytes_sent"] for p in parties) / 1000, max(p["rounds"] for p in parties)
    columns = (
        {way: min(seconds) for way, seconds in wall.items()},
        {way: min(seconds) for way, seconds in inside.items()},
        {way: sum(seconds) / turns for way, seconds in cores.items()},
    )
    for way in _WAYS:
        times = [(of[way], of[way] / of["two", "union"], of[way] / of["three", way[1]]) for of in columns]
        table.add(bench.case.name, *way, *(each for part in times for each in part), *costs[way])


def _core_seconds(bench: Bench) -> float:
    return sum(core_seconds_of(node.pid) for node in bench.federation.nodes.values())
