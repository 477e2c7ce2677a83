"""The reference baskets, found as the tests find them, and their split among parties."""

from __future__ import annotations

import gzip
import math
import os
import random
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Case:
    """A data set and a threshold.

    Attributes:
        data: Stem of the file.
        support: Minimum support as a fraction of the rows.
    """

    data: str
    support: Decimal

    @property
    def name(self) -> str:
        """As in the tables."""
        return f"{self.data} {float(self.support):.1%}"

    @property
    def path(self) -> Path:
        """Of the basket file."""
        return folder() / f"{self.data}.dat.gz"


CASES = tuple(
    Case(data, Decimal(support))
    for data, support in (
        ("groceries", "0.01"),
        ("groceries", "0.001"),
        ("mushroom", "0.2"),
        ("retail", "0.005"),
        ("retail", "0.001"),
        ("T10I4D100K", "0.002"),
        ("chess", "0.8"),
        ("kosarak36k", "0.005"),
    )
)
JOB_CASES = tuple(case for case in CASES if case.data not in ("chess", "kosarak36k") and case.name != "groceries 1.0%")
QUICK = (Case("groceries", Decimal("0.01")),)


def folder() -> Path:
    """Folder of the transactions: `COMINE_REFERENCE_DATA`/transactions, or beside the checkout."""
    given = os.environ.get("COMINE_REFERENCE_DATA")
    return (Path(given) if given else _ROOT.parent / "shared" / "data") / "transactions"


def available(cases: tuple[Case, ...]) -> list[Case]:
    """The cases whose data are here."""
    return [case for case in cases if case.path.is_file()]


def lines(case: Case) -> list[str]:
    """The non-blank lines of a case's file."""
    with gzip.open(case.path, "rt", encoding="utf-8") as file:
        return [line for line in file if line.strip()]


def minimum_count(case: Case, rows: int) -> int:
    """⌈support · rows⌉."""
    return math.ceil(Fraction(case.support) * rows)


def deal(rows: list[str], parties: tuple[str, ...], into: Path) -> dict[str, Path]:
    """Deals rows evenly to parties, at random under a fixed seed, and writes each party's file."""
    shuffled = rows[:]
    random.Random(1).shuffle(shuffled)
    files = {name: into / f"{name}.dat" for name in parties}
    for number, path in enumerate(files.values()):
        path.write_text("".join(shuffled[number :: len(parties)]), encoding="utf-8")
    return files
