"""A complete private job among three nodes on this machine, beside mining the pooled rows with mlxtend."""

from __future__ import annotations

import json
from functools import partial

from benchmarks.datasets import JOB_CASES, QUICK, available, folder
from benchmarks.federation import Bench, federation
from benchmarks.measure import best
from benchmarks.mining.bound import SESSION_S, items_union_s, primitives
from benchmarks.mining.local import measure
from benchmarks.settings import Settings
from benchmarks.table import Table
from mining.data.loading import load_transactions
from mining.joint.parameters import Disclose
from mining.miner import frequent_itemsets
from mining.thresholds import local_threshold, minimum_count

PEER = "mlxtend fpgrowth"


def run(settings: Settings) -> list[Table]:
    """Wall time of `comine job run` with warm nodes, of the peer's whole process, and of the bound."""
    table = Table(
        "Joint job of three parties: seconds of the whole process `comine job run`, nodes running",
        (
            "data",
            "sums opened",
            "comine",
            "by candidates'",
            "above them",
            PEER,
            "×",
            "bound",
            "comine / bound",
            "local mining",
            "union of items",
            "kB sent",
            "rounds",
        ),
        notes=[
            "× is the peer's whole process on the pooled rows divided by comine's on the distributed ones",
            f"bound = slowest party's local mining alone + transfers of the union of items + {SESSION_S} s, "
            "for a job that opens the sums of all candidates; job and bound are measured in turns, since the speed of "
            "a machine drifts, and of each the best counts",
            "supports: sums stay shared until they are compared, and those of frequent itemsets alone are opened; this "
            "should take at most 1.3 times as long, or 0.4 s more",
        ],
    )
    cases = available(QUICK if settings.quick else JOB_CASES)
    if not cases:
        table.notes.append(f"skipped: no data in {folder()}; set COMINE_REFERENCE_DATA")
    for case in cases:
        with federation(case) as bench:
            settings.tell(f"joint job on {case.name}")
            opened, opened_costs, (mining, union), least = _opened_job(bench, settings)
            hidden, hidden_costs = _job(bench, "supports", settings)
        peer = measure(PEER, case, least, settings).get("whole_s")
        bound = mining + union + SESSION_S
        ratios = [None if peer is None else peer / seconds for seconds in (opened, hidden)]
        parts = (bound, opened / bound, mining, union)
        table.add(case.name, "candidates", opened, None, None, peer, ratios[0], *parts, *opened_costs)
        above = (hidden / opened, hidden - opened)
        table.add(case.name, "supports", hidden, *above, peer, ratios[1], *(None for _ in parts), *hidden_costs)
    return [table]


def _job(bench: Bench, disclose: Disclose, settings: Settings) -> tuple[float, tuple[float, int]]:
    """Seconds of the quickest run on warm nodes, and its costs."""
    bench.run(disclose)  # warm: data loaded, connections open
    return min(bench.run(disclose).seconds for _ in range(settings.repeats)), _costs(bench)


def _opened_job(bench: Bench, settings: Settings) -> tuple[float, tuple[float, int], tuple[float, float], int]:
    """Seconds of the quickest run on warm nodes; its costs, the parts of the bound, the least count."""
    bench.run("candidates")  # warm: data loaded, connections open
    seconds, parts, least = [], [], 0
    for _ in range(settings.repeats):
        primitives.cache_clear()
        mining, union, least = _parts(bench, settings)
        parts.append((mining, union))
        seconds.append(bench.run("candidates").seconds)
    return min(seconds), _costs(bench), min(parts, key=sum), least


def _parts(bench: Bench, settings: Settings) -> tuple[float, float, int]:
    support = bench.spec.itemsets.min_support
    if isinstance(support, int):
        raise TypeError("the cases give fractions")
    slices = [load_transactions(path, "basket") for path in bench.files.values()]
    n_rows = sum(data.n_rows for data in slices)
    least = minimum_count(support, n_rows)
    slowest = 0.0
    for data in slices:
        threshold = local_threshold(support, data.n_rows, least, len(slices), bench.spec.itemsets.lambda_, n_rows)
        slowest = max(slowest, best(partial(frequent_itemsets, data, threshold), settings.repeats))
    return slowest, items_union_s(slices, support), least


def _costs(bench: Bench) -> tuple[float, int]:
    parties = json.loads((bench.federation.folder / "result" / "result.json").read_text())["parties"]
    return sum(p["bytes_sent"] for p in parties.values()) / 1000, max(p["rounds"] for p in parties.values())
