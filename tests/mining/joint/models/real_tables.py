"""The reference tables, coded for models; their bounds and domains are taken from the tables themselves."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from mining.data.formats.table_readers import table_from_csv
from mining.data.tables import Table
from mining.models.attributes import Attribute, Categorical, Intervals, LabelledRows, Numeric
from mining.models.naive_bayes import NaiveBayesParameters

ADULT_NUMBERS = {
    "age": Numeric("age", Decimal(0), Decimal(100), 100),
    "education-num": Numeric("education-num", Decimal(0), Decimal(20), 20),
    "hours-per-week": Numeric("hours-per-week", Decimal(0), Decimal(100), 100),
}
ADULT_TEXTS = ("workclass", "marital-status", "occupation", "relationship", "race", "sex")


def table(path: Path, separator: str = ",", ids: Sequence[str] = ()) -> Table:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return table_from_csv(data, separator, ids, path)


def domain(of: Table, name: str) -> Categorical:
    (column,) = (each for each in of.columns if each.name == name)
    return Categorical(name, tuple(column.values.to_pylist()))


def adult(folder: Path, name: str) -> tuple[NaiveBayesParameters, LabelledRows]:
    found = table(folder / "adult" / name)
    attributes: tuple[Attribute, ...] = (*(domain(found, each) for each in ADULT_TEXTS), *ADULT_NUMBERS.values())
    task = NaiveBayesParameters(domain(found, "income"), attributes)
    return task, LabelledRows.of(found, task.target, attributes)


def cut(name: str, cuts: Sequence[int]) -> Intervals:
    return Intervals(name, tuple(map(Decimal, cuts)))
