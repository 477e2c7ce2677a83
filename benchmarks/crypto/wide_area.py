"""Each protocol once over an emulated wide-area network, where rounds and bytes count, beside the loopback."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Final

from benchmarks.crypto.protocols import Plan, Timing
from benchmarks.crypto.together import BITS_PER_S, LATENCY_S, over_tls, processor_s, wide_area
from benchmarks.datasets import CASES, QUICK, Case, available, deal, lines, minimum_count
from benchmarks.settings import PARTIES, Settings
from benchmarks.table import Table
from mining.data.loading import load_transactions
from mining.joint.parameters import Security

_SLOW_S, _NARROW = 0.050, 20e6
_SECURITY: Final[tuple[Security, ...]] = ("semi-honest", "malicious")
_HIDDEN = tuple(case for case in CASES if case.name in ("groceries 0.1%", "retail 0.5%", "retail 0.1%"))


_CHECKED = (Case("groceries", Decimal("0.005")), *_HIDDEN[:2])


def run(settings: Settings) -> list[Table]:
    """Secure sum, ring sum, union and a joint job, all parties in one process."""
    table = Table(
        f"Wide area: {LATENCY_S * 1000:.0f} ms one way and {BITS_PER_S / 1e6:.0f} Mbit/s uplink per party, emulated",
        ("protocol", "loopback TLS s", "wide area s", "rounds", "MB sent", "rounds × latency s"),
        notes=["all parties in one process; the last column is what the rounds alone cost"],
    )
    size, elements = (1_000, 50) if settings.quick else (100_000, 1_000)
    plans = {
        f"secure sum of {size:,} values": Plan("sum", size),
        f"ring sum of {size:,} values": Plan("ring", size),
        f"union by prefixes, {elements:,} names per party": Plan("prefixes", elements, bound=elements),
    }
    with tempfile.TemporaryDirectory(prefix="comine-bench-") as folder:
        for case in available(QUICK):
            rows = lines(case)
            files = {name: str(path) for name, path in deal(rows, PARTIES, Path(folder)).items()}
            least = minimum_count(case, len(rows))
            plans[f"joint itemsets, {case.name}"] = Plan("joint", data=files, min_support=least)
        for name, plan in plans.items():
            settings.tell(f"wide area, {name}")
            near, far = over_tls(plan), wide_area(plan)
            table.add(name, near.seconds, far.seconds, far.rounds, far.bytes_sent / 1e6, far.rounds * LATENCY_S)
    return [table, _computing(settings), _verified(settings)]


def _verified(settings: Settings) -> Table:
    """Three computing parties that follow the protocol beside three of whom one may not."""
    table = Table(
        f"Three computing parties over {1000 * _SLOW_S:.0f} ms one way and {_NARROW / 1e6:.0f} Mbit/s uplink of each, "
        "emulated",
        ("job", "security", "items", "seconds", "rounds", "MB sent", "loopback TLS s", "processor s"),
        notes=[
            '`disclose = "supports"`, three parties in one process; a catalogue has all items; '
            "processor seconds are of all three, without a network"
        ],
    )
    with tempfile.TemporaryDirectory(prefix="comine-bench-") as folder:
        for case in available(QUICK if settings.quick else _CHECKED):
            rows = lines(case)
            files = {name: str(path) for name, path in deal(rows, PARTIES, Path(folder)).items()}
            items = {item for path in files.values() for item in load_transactions(Path(path), "basket").items}
            plan = Plan(
                "joint",
                data=files,
                min_support=minimum_count(case, len(rows)),
                helper=PARTIES[2],
                catalogue=tuple(sorted(items, key=str.encode)),
            )
            for catalogue, security in product((plan.catalogue, ()), _SECURITY):
                items_from = "catalogue" if catalogue else "union"
                settings.tell(f"{case.name}, {security}, {items_from}")
                way = replace(plan, security=security, catalogue=catalogue)
                cost, near, taken = _far(way), over_tls(way), processor_s(way)
                sent = cost.bytes_sent / 1e6
                table.add(case.name, security, items_from, cost.seconds, cost.rounds, sent, near.seconds, taken)
    return table


def _far(plan: Plan) -> Timing:
    return wide_area(plan, _SLOW_S, _NARROW)


def _computing(settings: Settings) -> Table:
    """Two computing parties beside three, where bytes count most."""
    table = Table(
        f"Sums that stay hidden over {1000 * _SLOW_S:.0f} ms one way and {_NARROW / 1e6:.0f} Mbit/s uplink per party, "
        "emulated",
        ("job", "computing", "seconds", "rounds", "MB sent"),
        notes=['`disclose = "supports"`, three parties in one process; the third computing party is the job\'s helper'],
    )
    with tempfile.TemporaryDirectory(prefix="comine-bench-") as folder:
        for case in available(QUICK if settings.quick else _HIDDEN):
            rows = lines(case)
            files = {name: str(path) for name, path in deal(rows, PARTIES, Path(folder)).items()}
            plan = Plan("joint", data=files, min_support=minimum_count(case, len(rows)))
            for number, helper in ((2, None), (3, PARTIES[2])):
                settings.tell(f"{case.name}, {number} computing parties")
                cost = wide_area(replace(plan, helper=helper), _SLOW_S, _NARROW)
                table.add(case.name, number, cost.seconds, cost.rounds, cost.bytes_sent / 1e6)
    return table
