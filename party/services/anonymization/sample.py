"""Some rows of a release beside their originals, for the people of the node: where these stand, and no copy of them."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from anonymize.release import Release
from anonymize.tables import Table
from crypto.primitives.randomness import Randomness
from link.errors import InputDataError

FILE: Final = "sample.json"
MOST: Final = 20
SALT_BYTES: Final = 32

Cells = list[list[str]]


class Sample(BaseModel):
    """Published rows, drawn uniformly.

    Attributes:
        of: Rows of the source.
        columns: Those that are published and in the source.
        places: Where the originals stand in the source, from 0.
        after: By published row, its cells.
        salt: In hexadecimal; without it the digest would let others try what the originals hold.
        digest: Of the originals, by which they are known again.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    of: int
    columns: list[str]
    places: list[int]
    after: Cells
    salt: str = Field(pattern=r"^[0-9a-f]{64}$")
    digest: str = Field(pattern=r"^[0-9a-f]{64}$")

    def before(self, data: pa.Table) -> Cells:
        """The cells of the originals.

        Args:
            data: All rows of the source.

        Raises:
            InputDataError: They are others than when the release was made.
        """
        is_there = data.num_rows == self.of and all(0 <= place < self.of for place in self.places)
        if is_there and set(self.columns) <= set(data.column_names):
            found = _cells(data.take(pa.array(self.places, pa.int64())), self.columns)
            if _digest(bytes.fromhex(self.salt), found) == self.digest:
                return found
        raise InputDataError(
            "the dataset has changed since the release was made, so its rows no longer stand where they stood"
        )


def sample_of(table: Table, of: int, release: Release, rng: Randomness) -> Sample | None:
    """A sample of a release; None of one whose rows have no originals.

    Args:
        table: The rows that were anonymised.
        of: Rows of the source, of which some may have been dropped.
        release: The outcome.
        rng: From which the sample is drawn.
    """
    if release.rows is None or not len(release.rows):
        return None
    chosen = rng.permutation(len(release.rows))[:MOST]
    originals = release.rows[chosen]
    columns = [name for name in release.table.column_names if name in table.data.column_names]
    before = _cells(table.data.take(pa.array(originals)), columns)
    salt = rng.bytes(SALT_BYTES)
    return Sample(
        of=of,
        columns=columns,
        places=table.kept[originals].tolist(),
        after=_cells(release.table.take(pa.array(chosen)), columns),
        salt=salt.hex(),
        digest=_digest(salt, before),
    )


def _cells(data: pa.Table, columns: list[str]) -> Cells:
    by_column = [[_text(cell) for cell in data.column(name).to_pylist()] for name in columns]
    return [list(row) for row in zip(*by_column, strict=True)]


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell)


def _digest(salt: bytes, cells: Cells) -> str:
    return hashlib.sha256(salt + json.dumps(cells, ensure_ascii=True).encode()).hexdigest()
