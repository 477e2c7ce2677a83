"""Anonymises Adult with anjana, or measures its models with pycanon: `anonymizers.py TOOL FOLDER`.

Runs in the environment of the peers and knows nothing of ours. Prints one JSON object: processor time in seconds; of
anjana also classes, suppressed rows, and GCP by the leaves of the same hierarchies.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd

COLUMNS = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "salary-class"]
K = 5


def hierarchies(folder: Path) -> dict[str, dict[int, np.ndarray]]:
    found = {}
    for name in COLUMNS:
        with (folder / f"adult_hierarchy_{name}.csv").open(encoding="utf-8") as file:
            rows = list(csv.reader(file, delimiter=";"))
        found[name] = {level: np.array([row[level] for row in rows]) for level in range(len(rows[0]))}
    return found


def gcp(released: pd.DataFrame, levels: dict[str, dict[int, np.ndarray]], rows: int) -> float:
    lost = 0.0
    for name in COLUMNS:
        leaves = len(levels[name][0])
        loss = dict.fromkeys(levels[name][0], 0.0)
        for level in range(1, len(levels[name])):
            labels, counts = np.unique(levels[name][level], return_counts=True)
            loss |= {label: (count - 1) / (leaves - 1) for label, count in zip(labels, counts, strict=True)}
        lost += float(released[name].map(loss).sum())
    suppressed = rows - len(released)
    return lost / (rows * len(COLUMNS)) + suppressed / rows


def anjana(folder: Path, percent: float) -> dict[str, float]:
    from anjana.anonymity import k_anonymity

    data, levels = pd.read_csv(folder / "adult.csv", sep=";", dtype=str), hierarchies(folder)
    began = time.process_time()
    released = k_anonymity(data.copy(), [], COLUMNS, K, percent, levels)
    seconds = time.process_time() - began
    return {
        "seconds": seconds,
        "classes": released.groupby(COLUMNS).ngroups,
        "suppressed": len(data) - len(released),
        "gcp": gcp(released, levels, len(data)),
    }


def pycanon(folder: Path) -> dict[str, float]:
    from pycanon import anonymity

    data, found = pd.read_csv(folder / "adult.csv", sep=";", dtype=str), {}
    for name, call in (
        ("k", lambda: anonymity.k_anonymity(data, COLUMNS)),
        ("l", lambda: anonymity.l_diversity(data, COLUMNS, ["occupation"])),
        ("t", lambda: anonymity.t_closeness(data, COLUMNS, ["occupation"])),
    ):
        began = time.process_time()
        call()
        found[name] = time.process_time() - began
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", choices=["anjana", "pycanon"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--suppressed", type=float, default=0)
    given = parser.parse_args()
    print(json.dumps(anjana(given.folder, given.suppressed) if given.tool == "anjana" else pycanon(given.folder)))


if __name__ == "__main__":
    main()
