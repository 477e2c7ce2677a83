"""One party's rows brought into the order that all parties use, and conjunctions of its items over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.hashing import encode_labels
from crypto.protocols.replicated.broadcasts import compare_heard
from link.session import Session
from mining.data.items.bitmaps import Bitmaps, words
from mining.data.items.item_blocks import item_blocks
from mining.data.items.item_columns import ItemRows, check_columns, item_columns
from mining.data.table_rows import TableRows
from mining.data.tables import Table
from mining.joint.align import Means, placed
from mining.joint.vertical.grouped.groups import check_group_columns
from mining.joint.vertical.names import open_names
from mining.joint.vertical.parameters import VerticalMining
from mining.thresholds import minimum_count

_BLOCK_BYTES = 64 << 20


@dataclass(frozen=True, eq=False, repr=False)
class Aligned:
    """What one party brings into a vertical job.

    Attributes:
        columns: Its items over the common positions, in the order that all parties use.
        presence: Shape (words,): which positions this party has a row for. None where every position has a row at
            every party.
    """

    columns: ItemRows
    presence: NDArray[np.uint64] | None

    @property
    def n_positions(self) -> int:
        """Number of positions, equal at all parties."""
        return self.columns.n_rows


async def align(session: Session, means: Means, table: TableRows, task: VerticalMining) -> Aligned:
    """Brings this party's rows into the common order.

    Args:
        session: A lane of its own.
        means: Of this party.
        table: This party's table.
        task: The public parameters.

    Raises:
        ConfigurationError: Two parties have a column of one name, nobody has one that the job names, the parties of a
            group have different columns, or this party has more rows than the bound allows.
        InputDataError: Ids are empty or occur twice.
        MalformedMessage: A peer's messages are not as they must be.
        ProtocolViolation: What came out cannot be the intersection with this party's rows, or a peer has kept another
            result of an earlier attempt.
    """
    lane = session.lane("columns")
    names = await open_names(lane, "columns", table.column_names)
    if task.is_verified:
        heard = {party: encode_labels(*of) for party, of in names.items()}
        await compare_heard(lane.lane("compare"), heard, "the names of its columns")
    if task.groups:
        check_group_columns(names, task.groups, task.itemisation.numeric)
    else:
        check_columns(names, task.itemisation.numeric)
    ids = await session.compute(table.row_ids, task.normalisation)
    session.progress("alignment", 0, 1)
    rows = await placed(session, means, ids, task.alignment)
    presence = pack_bits(rows >= 0) if task.mode == "union" else None
    session.progress("alignment", 1, 1)
    return Aligned(await session.compute(_items, table, task, rows), presence)


def _items(table: TableRows, task: VerticalMining, rows: NDArray[np.int64]) -> ItemRows:
    """The items of the rows in common order; those of a table in blocks without such as cannot be frequent."""
    if isinstance(table, Table):
        return item_columns(table, task.itemisation, rows)
    return item_blocks(table, task.itemisation, rows, 1 if task.groups else _least(task, len(rows)))


def _least(task: VerticalMining, n_positions: int) -> int:
    """No item of fewer rows of a party is frequent."""
    if isinstance(task.min_support, int):
        return task.min_support
    return minimum_count(task.min_support, n_positions) if task.mode == "intersection" else 1


@dataclass(frozen=True, eq=False, repr=False)
class Conjunctions:
    """Bitmaps of some of a party's items.

    Attributes:
        bitmaps: Shape (items, words).
        nothing: Shape (words,): the conjunction of no items, which is where the party has rows.
    """

    bitmaps: Bitmaps
    nothing: NDArray[np.uint64]

    @classmethod
    def of(cls, aligned: Aligned, numbers: NDArray[np.int64]) -> Conjunctions:
        """For these of the party's items."""
        presence = aligned.presence
        nothing = pack_bits(np.ones(aligned.n_positions, bool)) if presence is None else presence
        return cls(aligned.columns.select(numbers).bitmaps(), nothing)

    @classmethod
    def of_group(cls, aligned: Aligned, numbers: NDArray[np.int64]) -> Conjunctions:
        """For items of this party's group, in any order; −1 for one that the party does not have."""
        held = np.flatnonzero(numbers >= 0)
        order = held[np.argsort(numbers[held])]
        own = cls.of(aligned, numbers[order])
        bitmaps = np.zeros((len(numbers), own.bitmaps.shape[1]), np.uint64)
        bitmaps[order] = own.bitmaps
        return cls(bitmaps, own.nothing)

    def __call__(self, members: NDArray[np.int64]) -> Bitmaps:
        """Which positions have a row that holds all items of a set.

        Args:
            members: Shape (m, k): numbers of items; −1 means no item.

        Returns:
            Shape (m, words).
        """
        table = np.concatenate([self.bitmaps, self.nothing[None]])  # −1 is its last row
        width = table.shape[1]
        found = np.empty((len(members), width), np.uint64)
        step = max(1, _BLOCK_BYTES // max(1, 8 * width))
        for start in range(0, len(members), step):
            part, rows = found[start : start + step], members[start : start + step]
            np.take(table, rows[:, 0], axis=0, out=part, mode="wrap")
            for place in range(1, members.shape[1]):
                part &= table[rows[:, place]]
        return found


def pack_bits(bits: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Shape (words,), the first position's bit lowest."""
    packed = np.zeros(words(len(bits)) * 8, np.uint8)
    some = np.packbits(bits, bitorder="little")
    packed[: len(some)] = some
    return packed.view(np.uint64)
