"""The experiments of "An enhanced privacy-protection method based on identity replacement" (Kang and Meng, 2018).

`python -m examples.anonymization.identity_replacement [--adult FOLDER] [--out FOLDER]`
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from anonymize import Randomness, Table, ppir
from anonymize.replacement.ppir import LEAK
from examples.anonymization.charts import WIDE, Panel, draw
from examples.anonymization.patients import census, patients, seeded

RANGES = {
    "T1": {"sex": 0, "age": 3, "height": 5, "weight": 5},
    "T2": {"sex": 0, "age": 5, "height": 10, "weight": 10},
}
REPETITIONS = 200
POINTS = 100  # of which the paper counts those that leak
SAMPLING_POINTS, BATCH = 50, 200


def distributions(ages: Sequence[int], out: Path) -> None:
    """Figures 3–6: how many people are of each age, before and after."""
    panels = []
    print("\n| people | age | height | weight |\n|---:|---:|---:|---:|")
    for n in (10_000, 100_000):
        table = patients(n, ages, seeded(n))
        release = ppir(table, RANGES["T1"], rng=Randomness.from_seed(n))
        columns = [
            (table.data[name].to_numpy(), release.table[name].to_numpy()) for name in ("age", "height", "weight")
        ]
        changes = [_changed(before, after) for before, after in columns]
        print(f"| {n:,} | " + " | ".join(f"{100 * change:.1f} %" for change in changes) + " |")
        series = {}
        for name, numbers in zip(("original", "published"), columns[0], strict=True):
            counts = Counter(np.floor(numbers).astype(int).tolist())
            series[name] = [(float(age), float(counts[age])) for age in range(min(counts), max(counts) + 1)]
        panels.append(Panel(f"{n:,} people", series))
    for panel, name in zip(panels, ("small", "large"), strict=True):
        (out / f"anonymize-ppir-{name}.svg").write_text(draw([panel], "age", "people", WIDE))


def _changed(before: np.ndarray, after: np.ndarray) -> float:  # type: ignore[type-arg]
    """Share of people that would have to change their bin of 1 to make the histograms equal."""
    edges = np.arange(np.floor(min(before.min(), after.min())), max(before.max(), after.max()) + 2)
    counts = [np.histogram(numbers, edges)[0] for numbers in (before, after)]
    return float(np.abs(counts[0] - counts[1]).sum() / 2 / len(before))


def leaks(ages: Sequence[int]) -> None:
    """Figures 7 and 8: the share of published records with an identity similarity of 95 % or more."""
    print(
        f"\n| ranges | of 100,000 | of {POINTS} points, {REPETITIONS} times | most of {POINTS} |\n|---|---:|---:|---:|"
    )
    for name, ranges in RANGES.items():
        everybody = patients(100_000, ages, seeded(5))
        rate = ppir(everybody, ranges, rng=Randomness.from_seed(5)).statistics["leak_rate"]
        few = []
        for seed in range(REPETITIONS):
            table = patients(POINTS, ages, seeded(1_000 + seed))
            few.append(POINTS * ppir(table, ranges, rng=Randomness.from_seed(seed)).statistics["leak_rate"])
        spread = f"{statistics.mean(few):.1f} ± {statistics.stdev(few):.1f}"
        print(f"| {name} | {100 * rate:.2f} % | {spread} | {max(few):.0f} |")
    capped = ppir(everybody, RANGES["T2"], rng=Randomness.from_seed(5), alpha=(0.8, LEAK - 1e-9), ch_max=0.05)
    told = capped.statistics
    print(
        f"\nT2 with 0.8 ≤ α < 0.95 and |1 − β| ≤ 0.05: leak rate {told['leak_rate']:g}, {told['exhausted']} of 100,000 "
        f"without an accepted draw in 100, {told['mean_tries']:.2f} draws a record"
    )


def times(ages: Sequence[int], out: Path) -> None:
    """Figure 9: processor time at 50 points of 10,000 records, and what 1,000 records take at that point."""
    batches: list[Table] = [patients(BATCH, ages, seeded(seed)) for seed in range(SAMPLING_POINTS)]
    total, series = 0.0, {"all so far": [], "1,000 records at this speed": []}  # type: ignore[var-annotated]
    for number, table in enumerate(batches, 1):
        start = time.process_time()
        ppir(table, RANGES["T1"], rng=Randomness.from_seed(number), alpha=(0.8, 1.0), ch_max=0.05)
        spent = time.process_time() - start
        total += spent
        series["all so far"].append((number * BATCH, 1e3 * total))
        series["1,000 records at this speed"].append((number * BATCH, 1e6 * spent / BATCH))
    (out / "anonymize-ppir-time.svg").write_text(
        draw([Panel("PPIR, 200 records at a time", series)], "records", "ms", WIDE)
    )
    speeds = [y for _, y in series["1,000 records at this speed"]]
    whole = patients(10_000, ages, seeded(1))
    start = time.process_time()
    ppir(whole, RANGES["T1"], rng=Randomness.from_seed(1), alpha=(0.8, 1.0), ch_max=0.05)
    at_once = time.process_time() - start
    print(
        f"\n10,000 records, 200 at a time: {1e3 * total:.0f} ms; 1,000 take {statistics.mean(speeds[:5]):.1f} ms "
        f"at first and {statistics.mean(speeds[-5:]):.1f} ms at last; all at once: {1e3 * at_once:.0f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adult", type=Path, metavar="FOLDER", help="with adult_45222.csv.gz, for the ages")
    parser.add_argument("--out", type=Path, default=Path(), metavar="FOLDER", help="for the pictures")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    ages = census(given.adult)[0]["age"].to_pylist()
    distributions(ages, given.out)
    leaks(ages)
    times(ages, given.out)


if __name__ == "__main__":
    main()
