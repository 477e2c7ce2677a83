"""The experiments of "Data anonymity method based on sensitive hierarchical information entropy" (Shi et al., 2024).

`python -m examples.anonymization.sensitive_levels [--adult FOLDER] [--out FOLDER] [--repetitions N]`

Takes two minutes and more on one core; with one repetition in place of ten, a tenth of that.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np

from anonymize import Hierarchy, Randomness, Release, Table, gpkc, maa_slie
from anonymize.clustering.maa_slie import Leftover, Term
from examples.anonymization.charts import Panel, draw
from examples.anonymization.patients import as_table, census, levels, seeded

RECORDS = 3_000
SETTINGS = ((2, 8), (2, 12), (3, 8))  # H, k
VALUES = (2, 3, 4, 5)  # p
VARIANTS: tuple[tuple[tuple[float, float], Term, Leftover], ...] = (
    ((0.5, 0.5), "reciprocal", "psi"),
    ((0.1, 0.9), "reciprocal", "psi"),
    ((0.9, 0.1), "reciprocal", "psi"),
    ((0.5, 0.5), "bounded", "psi"),
    ((0.5, 0.5), "reciprocal", "infoloss"),
)
Trees = dict[str, Hierarchy]
Algorithm = Callable[[Table, Trees, int, int, int, Randomness], Release]


def _slie(table: Table, trees: Trees, h: int, p: int, k: int, rng: Randomness) -> Release:
    return maa_slie(table, k, p, levels(h), rng=rng, hierarchies=trees)


def _gpkc(table: Table, trees: Trees, h: int, p: int, k: int, rng: Randomness) -> Release:
    return gpkc(table, k, p, levels=levels(h), rng=rng, hierarchies=trees)


ALGORITHMS: dict[str, Algorithm] = {
    "(H,p,k)-MAA-SLIE": _slie,
    "(H,p,k)-GPKC": _gpkc,
    "(p,k)-MAA-SLIE": lambda table, trees, _, p, k, rng: _slie(table, trees, 1, p, k, rng),
    "(p,k)-GPKC": lambda table, trees, _, p, k, rng: _gpkc(table, trees, 1, p, k, rng),
}
MEASURES = {"epp": "entropy privacy protection (EPP)", "r_il": "information loss rate (R_IL)", "seconds": "CPU seconds"}
Found = dict[tuple[str, int, int, int, str], list[float]]


def run(folder: Path | None, repetitions: int) -> Found:
    """Every algorithm at every setting, on a new sample of records each time."""
    data, trees = census(folder)
    found: Found = defaultdict(list)
    runs, begun = len(SETTINGS) * len(VALUES) * len(ALGORITHMS), time.monotonic()
    print(f"{repetitions} repetitions of {runs} runs; how long it takes is told after the first one", flush=True)
    for repetition in range(repetitions):
        rows = sorted(seeded(repetition).sample(range(data.num_rows), min(RECORDS, data.num_rows)))
        table = as_table(data.take(rows))
        for h, k in SETTINGS:
            for p in VALUES:
                for name, algorithm in ALGORITHMS.items():
                    start = time.process_time()
                    release = algorithm(table, trees, h, p, k, Randomness.from_seed(repetition))
                    seconds = time.process_time() - start
                    for measure, value in (*release.statistics.items(), ("seconds", seconds)):
                        found[name, h, k, p, measure].append(float(value))
        done, spent = repetition + 1, time.monotonic() - begun
        left = spent / done * (repetitions * (1 + len(VARIANTS) / runs) - done)
        print(
            f"repetition {done} of {repetitions} done after {spent:.0f} s; in all some {left:.0f} s to go", flush=True
        )
    return found


def report(found: Found, out: Path) -> None:
    """Tables to read, and a picture of each measure."""
    for measure, label in MEASURES.items():
        panels = []
        for h, k in SETTINGS:
            numbers = {name: [found[name, h, k, p, measure] for p in VALUES] for name in ALGORITHMS}
            series = {
                n: [(p, statistics.mean(v)) for p, v in zip(VALUES, by, strict=True)] for n, by in numbers.items()
            }
            spread = {name: [statistics.pstdev(v) for v in by] for name, by in numbers.items()}
            panels.append(Panel(f"H = {h}, k = {k}", series, spread, floor=0.4 if measure == "epp" else 0.0))
        (out / f"anonymize-slie-{measure.replace('_', '-')}.svg").write_text(draw(panels, "p", label))
        print(f"\n{label}\n\n| H, k | algorithm | " + " | ".join(f"p = {p}" for p in VALUES) + " |")
        print("|---|---|" + "---:|" * len(VALUES))
        for h, k in SETTINGS:
            for name in ALGORITHMS:
                cells = [found[name, h, k, p, measure] for p in VALUES]
                shown = [f"{statistics.mean(v):.4f} ± {statistics.pstdev(v):.4f}" for v in cells]
                print(f"| {h}, {k} | {name} | " + " | ".join(shown) + " |")
    largest = {name: int(max(np.max(found[name, 2, 8, p, "largest"]) for p in VALUES)) for name in ALGORITHMS}
    print(f"\nlargest class at k = 8, H = 2: {largest}")


def variants(folder: Path | None, repetitions: int) -> None:
    """What other readings of the index change, at k = 8, H = 2, p = 2."""
    data, trees = census(folder)
    print(
        "\n| weights of PSI | term of the loss | leftovers | EPP | R_IL | largest class |\n|---|---|---|---:|---:|---:|"
    )
    for weights, term, leftover in VARIANTS:
        found = []
        for repetition in range(repetitions):
            rows = sorted(seeded(repetition).sample(range(data.num_rows), min(RECORDS, data.num_rows)))
            rng = Randomness.from_seed(repetition)
            release = maa_slie(
                as_table(data.take(rows)),
                8,
                2,
                levels(2),
                rng=rng,
                hierarchies=trees,
                psi_weights=weights,
                term=term,
                leftover=leftover,
            )
            found.append([release.statistics[measure] for measure in ("epp", "r_il", "largest")])
        epp, r_il, largest = zip(*found, strict=True)
        print(
            f"| {weights[0]:g}, {weights[1]:g} | {term} | {leftover} | {statistics.mean(epp):.4f} | "
            f"{statistics.mean(r_il):.4f} | {max(largest)} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adult", type=Path, metavar="FOLDER", help="with adult_45222.csv.gz and its hierarchies")
    parser.add_argument("--out", type=Path, default=Path(), metavar="FOLDER", help="for the pictures")
    parser.add_argument("--repetitions", type=int, default=10, metavar="N", help="of each setting; 10 unless given")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    report(run(given.adult, given.repetitions), given.out)
    variants(given.adult, given.repetitions)


if __name__ == "__main__":
    main()
