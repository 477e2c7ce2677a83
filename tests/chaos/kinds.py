"""A small job of every kind, and the files from which nodes read its data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from jobs.data import Data
from jobs.kinds.registry import kind_of, read_spec
from jobs.spec.job import JobSpec
from mining.data.tables import Column, Table
from mining.data.transactions import Transactions
from tests.jobs.kinds.test_kinds import JOBS

PARTIES: Final = ("north", "south", "east")
DEADLINE: Final = "120s"
_SHORTER: Final[Mapping[str, Mapping[str, Any]]] = {
    "supports": {"itemsets": {"min_support": "0.5"}},
    "frequent": {"itemsets": {"min_support": "0.5"}},
    "vertical": {"itemsets": {"min_support": "0.3"}},
    "grouped": {"itemsets": {"min_support": "0.3"}},
    "columns-parties-may-deviate": {"itemsets": {"max_length": 2}},
}
"""What is changed in jobs of other tests, by name: fewer levels of a search, each a step like the others."""
_NARROWER: Final = ("release", "release-of-column-groups")
_LEFT_OUT: Final = "sex"
"""The quasi-identifier that these releases do without: each has a hierarchy with levels to try, like the others."""
_LONG: Final = ("grouped", "release-of-column-groups")
_MIDDLING: Final = ("alignment", "columns-parties-may-deviate", "model-of-columns", "release", "vertical")


@dataclass(frozen=True)
class SmallJob:
    """A job that all nodes have the data for.

    Attributes:
        name: Of its kind, and of its dataset.
        spec: The job.
        data: By party.
    """

    name: str
    spec: JobSpec
    data: Mapping[str, Data]

    @cached_property
    def exact(self) -> bool:
        """Whether its result hangs on the data alone."""
        return kind_of(self.spec).charge(self.spec).epsilon is None and not kind_of(self.spec).estimates

    def dataset(self, party: str) -> str:
        """The table of a node's file for its data; empty where the party has none."""
        if party not in self.data:
            return ""
        data = self.data[party]
        if isinstance(data, Transactions):
            form = 'kind = "transactions"\nformat = "basket"\n'
        else:
            assert isinstance(data, Table)
            form = f'kind = "table"\nformat = "csv"\nid = "{data.id_columns[0] if data.id_columns else "id"}"\n'
        return f'[[dataset]]\nname = "{self.name}"\nsource = "{self.file(party)}"\n{form}'

    def file(self, party: str) -> str:
        """The name of the file of a party's data."""
        return f"{self.name}-{party}.csv"

    def write(self, folder: Path) -> None:
        """Writes the files of all parties."""
        for party, data in self.data.items():
            path = folder / self.file(party)
            if isinstance(data, Transactions):
                pieces = np.split(data.indices, data.offsets[1:-1])
                path.write_text("".join(" ".join(data.items[item] for item in row) + "\n" for row in pieces))
            else:
                assert isinstance(data, Table)
                ids = dict(zip(data.id_columns, data.ids, strict=True)) or {"id": np.arange(data.n_rows).astype(str)}
                cells = {column.name: pc.fill_null(column.values.take(_taken(column)), "") for column in data.columns}
                pyarrow.csv.write_csv(pa.table({**ids, **cells}), path)


def _taken(column: Column) -> pa.Array:
    return pa.array(column.codes, mask=column.codes < 0)


def small_jobs() -> dict[str, SmallJob]:
    """By name."""
    found = {}
    for title, made in JOBS.items():
        spec, data = made()
        name = title.replace(",", "").replace(" ", "-")
        contents = spec.model_dump(mode="json", by_alias=True)
        contents["job"] |= {"dataset": name, "deadline": DEADLINE}
        for table, changes in _SHORTER.get(name, {}).items():
            contents[table] |= changes
        if name in _NARROWER:
            contents["anonymize"]["quasi_identifiers"].remove(_LEFT_OUT)
            contents["anonymize"]["hierarchies"].pop(_LEFT_OUT)
        found[name] = SmallJob(name, read_spec(contents, "chaos"), data)
    return found


def share(name: str) -> int:
    """How often seeds draw a job, beside the others: the less often, the longer it takes to compute."""
    return 1 if name in _LONG else 3 if name in _MIDDLING else 6
