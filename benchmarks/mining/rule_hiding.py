"""Rule hiding on real baskets: what each method loses and how long it takes."""

from __future__ import annotations

import time
from decimal import Decimal

from benchmarks.datasets import Case, available
from benchmarks.settings import Settings
from benchmarks.table import Table
from mining.data.loading import load_transactions
from mining.hiding.effects import Mined
from mining.hiding.hide import METHODS, checked_method, hide
from mining.hiding.sensitive import SensitiveRule, Thresholds

CASES = {
    Case("groceries", Decimal("0.01")): Decimal("0.3"),
    Case("retail", Decimal("0.005")): Decimal("0.4"),
}  # confidence
SIZES = (5, 20, 50)
TIME_LIMIT_S = 40.0


def run(settings: Settings) -> list[Table]:
    """Side effects and seconds, by data set, number of sensitive rules and method."""
    heads = ("data", "sensitive", "method", "itemsets lost", "rules lost", "cells changed", "rows gone", "gap", "s")
    table = Table("Rule hiding", heads)
    for case in available(tuple(CASES)):
        data = load_transactions(case.path, "basket")
        thresholds = Thresholds(case.support, CASES[case])
        rules = sorted((sorted(left), sorted(right)) for left, right in Mined(data, thresholds).rules())
        for size in SIZES[:1] if settings.quick else SIZES:
            chosen = [
                SensitiveRule(tuple(left), tuple(right)) for left, right in rules[:: max(1, len(rules) // size)][:size]
            ]
            for method in METHODS:
                began = time.perf_counter()
                found = hide(data, chosen, thresholds, method=checked_method(method), time_limit=TIME_LIMIT_S)
                seconds = time.perf_counter() - began
                table.add(
                    case.name,
                    str(size),
                    method,
                    f"{found.itemsets.lost} of {found.itemsets.others}",
                    f"{found.rules.lost} of {found.rules.others}",
                    f"{found.deleted + found.added:,}",
                    f"{found.removed:,}",
                    "" if found.solved is None else f"{found.solved.gap:.0%} {found.solved.status}",
                    f"{seconds:.2f}",
                )
    return [table]
