"""How many rows have how many items, as what a job has found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.kinds.finding import Finding, SavedFinding
from jobs.kinds.packed_itemsets import digest
from jobs.spec.job import JobSpec
from link.files.json_text import read_json
from protos.v1.control_pb2 import Release
from tests.extensions.basket_sizes.tables import BasketSizesSpec

CSV: Final = "sizes.csv"
PARQUET: Final = "sizes.parquet"


@dataclass(frozen=True)
class Sizes(Finding):
    """How many rows have how many items.

    Attributes:
        rows: Of 0, 1, 2, … items; the last number is of rows with so many or more.
    """

    rows: tuple[int, ...]

    name = signed_as = "sizes"

    @classmethod
    def files(cls, spec: JobSpec) -> frozenset[str]:
        return frozenset({CSV, PARQUET})

    @classmethod
    def differences(cls, saved: SavedFinding, release: Release) -> Iterator[str]:
        try:
            found = cls(tuple(pq.read_table(saved.folder / PARQUET)["rows"].to_pylist()))
        except (OSError, KeyError, pa.ArrowException) as error:
            yield f"{PARQUET} cannot be read ({type(error).__name__}), and {release.party} signed what is in it"
            return
        if digest(found.pack()) != release.result_digest:
            yield f"{PARQUET} does not hold the sizes that {release.party} signed"
        else:
            saved.finding = found

    @classmethod
    def unpack(cls, packed: bytes) -> Sizes:
        """What `pack` made.

        Raises:
            ValueError: It is something else.
        """
        rows = read_json(packed)
        if not isinstance(rows, list) or not all(type(number) is int and number >= 0 for number in rows):
            raise ValueError("these bytes are no sizes of baskets")
        return cls(tuple(rows))

    @property
    def value(self) -> tuple[int, ...]:
        return self.rows

    @property
    def n_rows(self) -> int:
        return sum(self.rows)

    def pack(self) -> bytes:
        return json.dumps(self.rows).encode()

    def canonical(self) -> Sizes:
        return self

    def fits(self, spec: JobSpec) -> bool:
        return isinstance(spec, BasketSizesSpec) and len(self.rows) == spec.sizes.longest + 1

    def tables(self, spec: JobSpec) -> dict[str, Any]:
        return {"sizes": pa.table({"items": list(range(len(self.rows))), "rows": list(self.rows)})}

    def summary(self, spec: JobSpec) -> str:
        return f"{len(self.rows)} sizes of baskets"
