"""What a party tells of its sizes for a plan: all, rounded, or nothing.

Told are numbers of rows, of candidates, of items, of frequent and locally frequent itemsets, and of rules; never a name
and never the count of one. Rounded, such numbers have two significant digits, which moves them by at most five per
cent. Numbers of rows have three, and are tens: all thresholds follow from them, and the lists of unions double in
length at some of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import floor, log10

from crypto.protocols import joint_prf
from crypto.protocols.union_lists import rung
from jobs.plan.calibration import Speed
from jobs.plan.plan import RowsPublic
from mining.joint.local_sizes import LocalSizes, SetEstimate
from mining.joint.vertical.local_columns import LocalColumns
from protos.v1 import plan_pb2 as plan

_DIGITS = 2
_ROW_DIGITS = 3
_LEAST_ROWS = 10  # where there are any


def rounded(count: int, digits: int = _DIGITS) -> int:
    """To so many significant digits."""
    return round(count, min(0, digits - 1 - floor(log10(count)))) if count else 0


def published_rows(n_rows: int, rows_public: RowsPublic) -> int | None:
    """The number of rows as it is told; None where it is not."""
    if rows_public == "hidden":
        return None
    if rows_public == "exact" or not n_rows:
        return n_rows
    return max(_LEAST_ROWS, round(rounded(n_rows, _ROW_DIGITS), -1))


def published_sizes(sizes: LocalSizes, rows_public: RowsPublic) -> plan.LocalSizes:
    """The sizes as they are told; empty where they are not."""
    if rows_public == "hidden":
        return plan.LocalSizes()
    exact = rows_public == "exact"

    def numbers(told: Iterable[int]) -> Iterable[int]:
        return told if exact else map(rounded, told)

    def told(size: SetEstimate) -> plan.SetSize:
        elements = size.elements if exact else rounded(size.elements)
        return plan.SetSize(
            elements=elements, rung=rung(size.elements), blocks=size.blocks, novelty=round(size.novelty, _DIGITS)
        )

    return plan.LocalSizes(
        candidates=numbers(sizes.candidates),
        complete=sizes.complete,
        items=told(sizes.items),
        itemsets=None if sizes.itemsets is None else told(sizes.itemsets),
        closure=None if sizes.closure is None else told(sizes.closure),
        levels=map(told, sizes.levels),
        frequent=numbers(sizes.frequent),
        rules=numbers(sizes.rules),
        mined=sizes.mined,
        held=None if sizes.held is None else told(sizes.held),
        held_rung=0 if sizes.held is None else joint_prf.rung(sizes.held.elements),
    )


def published_columns(sizes: LocalColumns, columns: Sequence[str], rows_public: RowsPublic) -> plan.LocalSizes:
    """What is told of a table.

    Args:
        sizes: What its rows let expect.
        columns: The names of its columns, of which only the number and the longest one's length are told.
        rows_public: How exactly sizes are published.
    """
    exact = rows_public == "exact"

    def numbers(told: Iterable[int]) -> Iterable[int]:
        return told if exact else map(rounded, told)

    (n_items,) = numbers([sizes.items])
    (n_columns,) = numbers([len(columns)])
    return plan.LocalSizes(
        candidates=numbers(sizes.candidates),
        complete=sizes.complete,
        items=plan.SetSize(elements=n_items, rung=rung(sizes.items)),
        columns=plan.ColumnSizes(
            columns=n_columns,
            column_bytes=max((len(name.encode()) for name in columns), default=0),
            item_bytes=sizes.item_bytes,
            lengths=[plan.SupportClasses(itemsets=numbers(classes)) for classes in sizes.by_support],
        ),
    )


def told_speed(speed: Speed) -> plan.Speed:
    """The speed as it is told."""
    return plan.Speed(
        multiply_s=speed.multiply_s,
        embed_s=speed.embed_s,
        byte_s=speed.byte_s,
        frame_byte_s=speed.frame_byte_s,
        frame_s=speed.frame_s,
        candidate_s=speed.candidate_s,
        row_s=speed.row_s,
        row_pairs_s=speed.row_pairs_s,
        transfer_s=speed.transfer_s,
    )
