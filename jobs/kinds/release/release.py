"""A release that several parties made together, and its bytes, which every learner signs."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from link.files.json_text import read_json
from mining.joint.anonymisation.parameters import ORIGIN_COLUMN, JointAnonymisation

if TYPE_CHECKING:
    from mining.joint.anonymisation.anonymise import JointRelease

SCHEMA: Final = "comine.joint-release/1"


@dataclass(frozen=True, eq=False)
class Anonymized:
    """A release of the rows of all parties.

    Attributes:
        n_rows: Rows that were anonymised.
        node: Level of each quasi-identifier, by name; empty where regions were cut.
        spans: Where regions were cut, by quasi-identifier that is shown by intervals, from its first to its last value.
        statistics: Work of the search.
        totals: By column of t-closeness, how many of all rows have each value that occurs.
        table: The released rows as text: quasi-identifiers, sensitive and insensitive columns; whose they are, where
            that is shown.
    """

    n_rows: int
    node: Mapping[str, int]
    spans: Mapping[str, float]
    statistics: Mapping[str, int]
    totals: Mapping[str, Mapping[str, int]]
    table: pa.Table

    @classmethod
    def of(cls, task: JointAnonymisation, found: JointRelease, parties: tuple[str, ...]) -> Anonymized:
        """The release from what the protocol has found at a learner."""
        assert found.rows is not None
        columns: dict[str, Any] = dict(_generalised(task, found, found.rows.cells))
        columns |= {name: pa.array(cells, pa.string()) for name, cells in found.rows.carried.items()}
        if found.rows.sites is not None:
            columns[ORIGIN_COLUMN] = _taken(parties, found.rows.sites)
        node, spans = dict[str, int](), dict[str, float]()
        if found.node is not None:
            node = {each.name: int(level) for each, level in zip(task.quasi_identifiers, found.node, strict=True)}
        if found.boxes is not None:
            measured = zip(found.boxes.axes, found.boxes.spans, strict=True)
            spans = {axis.name: span for axis, span in measured if not axis.is_tree}
        return cls(found.n_rows, node, spans, dict(found.statistics), found.totals, pa.table(columns))

    def pack(self) -> bytes:
        """The canonical bytes: equal for equal releases."""
        columns = {}
        for name, column in zip(self.table.column_names, self.table.columns, strict=True):
            values, codes = _in_order(column)
            columns[name] = {"values": values, "codes": base64.b64encode(codes.astype("<u4").tobytes()).decode()}
        contents = {
            "schema": SCHEMA,
            "n_rows": self.n_rows,
            "published": self.table.num_rows,
            "node": dict(self.node),
            "spans": dict(self.spans),
            "statistics": dict(self.statistics),
            "totals": {name: dict(counts) for name, counts in self.totals.items()},
            "order": self.table.column_names,
            "columns": columns,
        }
        return json.dumps(contents, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()

    @classmethod
    def unpack(cls, packed: bytes) -> Anonymized:
        """What `pack` made.

        Raises:
            ValueError: It is something else.
        """
        try:
            contents = read_json(packed)
            table = pa.table(
                {name: _column(contents["columns"][name], contents["published"]) for name in contents["order"]}
            )
            node = {name: contents["node"][name] for name in contents["order"] if name in contents["node"]}
            spans = {name: float(span) for name, span in dict(contents["spans"]).items()}
            found = cls(
                int(contents["n_rows"]), node, spans, dict(contents["statistics"]), dict(contents["totals"]), table
            )
            same = found.pack() == packed
        except (KeyError, TypeError, AttributeError, IndexError, pa.ArrowException) as error:
            raise ValueError(f"these bytes are no joint release ({type(error).__name__})") from None
        if not same:
            raise ValueError("these bytes are no joint release in canonical form")
        return found

    def fits(self, task: JointAnonymisation) -> bool:
        """Whether it is a release of the kind that a job asks for."""
        expected = [*(each.name for each in task.quasi_identifiers), *(each.name for each in task.carried)]
        if task.origin == "shown":
            expected.append(ORIGIN_COLUMN)
        levels = {each.name: each.hierarchy.height for each in task.quasi_identifiers}
        if task.algorithm == "mondrian":
            return not self.node and self.table.column_names == expected and self.table.num_rows == self.n_rows
        known = self.node.keys() == levels.keys() and all(0 <= self.node[name] <= levels[name] for name in levels)
        return known and self.table.column_names == expected and self.table.num_rows <= self.n_rows


def _generalised(task: JointAnonymisation, found: JointRelease, cells: NDArray[np.int64]) -> dict[str, pa.Array]:
    """By quasi-identifier what each row shows.

    Args:
        task: The public parameters.
        found: What the protocol has found.
        cells: Class of each row, shape (n,).
    """
    if found.boxes is not None:
        columns = {}
        for place, axis in enumerate(found.boxes.axes):
            texts = axis.texts(found.boxes.low[:, place], found.boxes.high[:, place])
            columns[axis.name] = _taken(tuple(texts), cells)
        return columns
    assert found.node is not None
    shown = {}
    for each, level in reversed(list(zip(task.quasi_identifiers, found.node, strict=True))):
        labels = each.hierarchy.labels[level]
        cells, numbers = np.divmod(cells, len(labels))
        shown[each.name] = _taken(labels, numbers)
    return {each.name: shown[each.name] for each in task.quasi_identifiers}


def _taken(texts: tuple[str, ...], codes: NDArray[np.int64]) -> pa.Array:
    return pa.array(texts, pa.string()).take(pa.array(codes))


def _in_order(column: pa.ChunkedArray) -> tuple[list[str], NDArray[np.int64]]:
    """The distinct texts of a column in ascending order, and the place of each cell among them."""
    encoded = column.combine_chunks().dictionary_encode()
    texts: list[str] = encoded.dictionary.to_pylist()
    order = sorted(range(len(texts)), key=texts.__getitem__)
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return [texts[each] for each in order], places[encoded.indices.to_numpy()]


def _column(written: Mapping[str, Any], rows: int) -> pa.Array:
    """Cells from their distinct values and codes."""
    codes = np.frombuffer(base64.b64decode(written["codes"], validate=True), "<u4")
    if len(codes) != rows:
        raise ValueError("columns differ in length")
    return pa.array(written["values"], pa.string()).take(pa.array(codes))
