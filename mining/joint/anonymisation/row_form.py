"""The released rows of all parties, and how a row is written on its way to those who learn them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.sealed import Rows
from mining.joint.anonymisation.coding import CodedRows
from mining.joint.anonymisation.parameters import Carried, JointAnonymisation

HEAD: Final = np.dtype([("real", "u1"), ("site", "u1"), ("cell", "<u8")])  # before the cells of a row


@dataclass(frozen=True, eq=False)
class Assembled:
    """The released rows of all parties, in ascending order of their bytes.

    Attributes:
        cells: Class of each row, shape (n,).
        sites: Place of the party of each row among those of the job, shape (n,); None where that is hidden.
        carried: By column that is published as it is, the cells.
    """

    cells: NDArray[np.int64]
    sites: NDArray[np.int64] | None
    carried: Mapping[str, list[str]]


@dataclass(frozen=True)
class Form:
    """How a row is written: a head, and of each cell its length and its bytes, or its place among public values.

    Attributes:
        carried: The columns that are published as they are.
        widths: Bytes of each carried column.
    """

    carried: tuple[Carried, ...]
    widths: tuple[int, ...]

    @classmethod
    def of(cls, task: JointAnonymisation) -> Form:
        """As the job's columns ask for it."""
        return cls(task.carried, tuple(4 if each.values is not None else 4 + each.most_bytes for each in task.carried))

    @property
    def size(self) -> int:
        """Bytes of a row."""
        return HEAD.itemsize + sum(self.widths)

    def pack(self, rows: CodedRows, cells: NDArray[np.int64], chosen: NDArray[np.int64], site: int) -> Rows:
        """Some rows of this party, ready to be sealed."""
        head = np.zeros(len(chosen), HEAD)
        head["real"], head["site"], head["cell"] = 1, site, cells[chosen]
        parts = [head.view(np.uint8).reshape(len(chosen), HEAD.itemsize)]
        for each in self.carried:
            if each.values is not None:
                codes = rows.codes[each.name][chosen].astype("<u4")
                parts.append(codes.view(np.uint8).reshape(len(chosen), 4))
                continue
            column = rows.carried[each.name]
            written = _texts([*column.values.to_pylist(), ""], each.most_bytes)  # the last is for empty cells
            parts.append(written[column.codes[chosen]])
        return np.concatenate(parts, axis=1)

    def sorted(self, rows: Rows) -> Rows:
        """In ascending order of bytes."""
        return rows[np.lexsort(rows.T[::-1])] if len(rows) else rows

    def unpack(self, rows: Rows, parties: int, *, shown: bool) -> Assembled:
        """What rows say.

        Raises:
            ValueError: They are none.
        """
        head = np.ascontiguousarray(rows[:, : HEAD.itemsize]).view(HEAD).reshape(-1)
        if (head["real"] != 1).any() or (head["site"] >= (parties if shown else 1)).any():
            raise ValueError("dummies, or rows of nobody")
        start, carried = HEAD.itemsize, dict[str, list[str]]()
        for each, width in zip(self.carried, self.widths, strict=True):
            part = np.ascontiguousarray(rows[:, start : start + width])
            start += width
            numbers = np.ascontiguousarray(part[:, :4]).view("<u4").reshape(-1).tolist()
            if each.values is not None:
                carried[each.name] = [each.values[number] for number in numbers]
                continue
            if any(number > each.most_bytes for number in numbers):
                raise ValueError("a cell is too long")
            carried[each.name] = _cells(part)
        sites = head["site"].astype(np.int64) if shown else None
        return Assembled(head["cell"].astype(np.int64), sites, carried)


def _cells(rows: Rows) -> list[str]:
    """What `_texts` wrote; equal texts are one object, so that each takes its room once."""
    whole = rows.view(np.dtype((np.void, rows.shape[1]))).reshape(-1)
    distinct, places = np.unique(whole, return_inverse=True)
    written = [each.tobytes() for each in distinct]
    texts = [each[4 : 4 + int.from_bytes(each[:4], "little")].decode() for each in written]
    return [texts[place] for place in places.reshape(-1).tolist()]


def _texts(texts: list[str], most: int) -> Rows:
    """Texts as rows: length, then bytes, then zeros."""
    raw = [text.encode() for text in texts]
    rows = b"".join(len(each).to_bytes(4, "little") + each.ljust(most, b"\0") for each in raw)
    return np.frombuffer(rows, np.uint8).reshape(len(raw), 4 + most)
