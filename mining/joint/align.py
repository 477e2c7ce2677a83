"""Which rows of parties that hold tables about the same people belong together: a task of its own.

`intersection` and `union` give every party the positions of its own rows, in an order that is the same at all parties;
`intersection` and `cardinality` reveal how many rows all parties have. No column but those of the ids is used, and no
column is named.

Steps, rounds, adversary, collusion and leakage are those of `crypto.protocols.alignment.alignment`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crypto.primitives.scratch_file import ScratchLimits
from crypto.primitives.shares.replicated import Holders3
from crypto.protocols.alignment import alignment, shown_points
from crypto.protocols.alignment import disclosure as alignment_disclosure
from crypto.protocols.alignment.common_rows import Rows
from crypto.protocols.alignment.disclosure import Mode
from crypto.protocols.alignment.list_limits import IN_MEMORY
from crypto.protocols.comparison.two_party import Pairs
from crypto.protocols.sums.pairwise import PairwiseSecrets, agree
from link.disclosure import Declared, Learned
from link.journal import Known
from link.session import Session
from link.steps import step
from mining.data.row_ids import AS_THEY_ARE, IdNormalisation
from mining.data.table_rows import TableRows
from mining.data.tables import Table
from mining.joint.collusion import NOBODY_ELSE

POSITION: Final = "position"
AT_ONCE: Final = 1 << 20  # rows whose ids are looked up
# under which the protocol opens what it finds
LABELS: Final[Mapping[Mode, str]] = {"intersection": "intersection", "cardinality": "cardinality", "union": "positions"}


@dataclass(frozen=True, slots=True)
class RowAlignment:
    """What all parties agree on before rows are aligned.

    Attributes:
        merger: The party that compares.
        mode: What is disclosed of which rows belong together; see `crypto.protocols.alignment.alignment`.
        normalisation: What is done to ids before they are compared.
        bound: The most rows that any party may have, public; None: size classes are announced.
        three: Who check an intersection where parties may deviate.
    """

    merger: str
    mode: Mode = "intersection"
    normalisation: IdNormalisation = AS_THEY_ARE
    bound: int | None = None
    three: Holders3 | None = None


@dataclass(frozen=True, eq=False, slots=True)
class AlignedRows:
    """What one party learns.

    Attributes:
        n_common: Rows that all parties have; None after a union, which does not reveal it.
        rows: Shape (positions,): the number of this party's row at each position, −1 where it has none. None after a
            cardinality.
    """

    n_common: int | None
    rows: NDArray[np.int64] | None


@dataclass(frozen=True, slots=True)
class Means:
    """What a party aligns its rows with.

    Attributes:
        secrets: From `pairwise.agree` in this session.
        pairs: From `two_party.pairs_of` in this session. A cardinality and a union use them, and what follows them may.
        limits: What lists of ids may take at this party.
    """

    secrets: PairwiseSecrets
    pairs: Pairs
    limits: ScratchLimits = IN_MEMORY


async def align(
    session: Session,
    pairs: Pairs,
    table: TableRows,
    task: RowAlignment,
    limits: ScratchLimits = IN_MEMORY,
) -> AlignedRows:
    """Runs this party's part.

    Args:
        session: A lane of the job's session.
        pairs: As of `Means`.
        table: This party's table, of which the ids are used.
        task: The public parameters, equal at all parties.
        limits: As of `Means`.

    Raises:
        ConfigurationError: This party has more rows than the bound allows.
        InputDataError: Ids are empty or occur twice.
        MalformedMessage: A peer's messages are not as they must be.
        ProtocolViolation: What came out cannot be an alignment of this party's rows, or a peer has kept another result
            of an earlier attempt.
    """
    ids = await session.compute(table.row_ids, task.normalisation)
    means, lane = Means(await agree(session.lane("keys")), pairs, limits), session.lane("rows")
    session.progress("alignment", 0, 1)
    if task.mode == "cardinality":
        found = AlignedRows(await _counted(lane, means, ids, task), None)
    else:
        rows = await placed(lane, means, ids, task)
        found = AlignedRows(None if task.mode == "union" else len(rows), rows)
    session.progress("alignment", 1, 1)
    return found


async def placed(lane: Session, means: Means, ids: Sequence[bytes], task: RowAlignment) -> Rows:
    """Which of this party's rows is at each position; a step, of which this party keeps what it has found.

    Args:
        lane: Of its own.
        means: Of this party.
        ids: Of this party's rows.
        task: An intersection or a union.

    Returns:
        As `AlignedRows.rows`.
    """
    return await (_united if task.mode == "union" else _intersected)(lane, means, ids, task)


async def _counted(lane: Session, means: Means, ids: Sequence[bytes], task: RowAlignment) -> int:
    """How many rows all parties have."""

    async def take() -> Known:
        found = await alignment.cardinality(
            lane,
            means.secrets,
            means.pairs,
            ids,
            merger=task.merger,
            bound=task.bound,
            label=LABELS["cardinality"],
            limits=means.limits,
        )
        return Known(found)

    return int((await step(lane, "cardinality", take)).public)


async def _intersected(lane: Session, means: Means, ids: Sequence[bytes], task: RowAlignment) -> Rows:
    """The rows that all parties have, in common order: kept is which of this party's rows those are."""
    aligned = list[Rows]()

    async def take() -> Known:
        rows = await alignment.intersection(
            lane, means.secrets, ids, merger=task.merger, bound=task.bound, limits=means.limits, three=task.three
        )
        aligned.append(rows)
        common = np.zeros(len(ids), np.bool_)
        common[rows] = True
        return Known(len(rows), own=np.packbits(common))

    known = await step(lane, "intersection", take)
    if aligned:
        return aligned[0]
    common = np.unpackbits(known.own, count=len(ids)).view(np.bool_)
    return await alignment.in_agreed_order(lane, ids, common, means.limits)


async def _united(lane: Session, means: Means, ids: Sequence[bytes], task: RowAlignment) -> Rows:
    """The positions that the parties' rows have in a union, which are drawn."""

    async def take() -> Known:
        rows = await alignment.union(
            lane, means.secrets, means.pairs, ids, merger=task.merger, bound=task.bound, limits=means.limits
        )
        return Known(len(rows), own=rows.astype(np.int32 if len(ids) < 1 << 31 else np.int64))

    return np.asarray((await step(lane, "union", take, drawn=True)).own, np.int64)


def positions_of(table: TableRows, rows: NDArray[np.int64]) -> pa.Table:
    """A party's aligned rows by their ids, for its own use.

    Args:
        table: The party's table.
        rows: As in `AlignedRows`.

    Returns:
        The columns of the ids as they stand in the table, and `position`, counted from 0, in ascending order. Where a
        column of the ids has that name, underscores before `position` set them apart.
    """
    places = np.flatnonzero(rows >= 0)
    name = POSITION
    while name in table.id_columns:
        name = f"_{name}"
    seen, pieces = table.only((), ids=True), list[pa.Table]()
    for start in range(0, max(len(places), 1), AT_ONCE):
        some = places[start : start + AT_ONCE]
        pieces.append(pa.table([*_ids_of(seen, rows[some]), pa.array(some)], [*table.id_columns, name]))
    return pa.concat_tables(pieces)


def _ids_of(table: TableRows, rows: NDArray[np.int64]) -> list[pa.Array]:
    """The ids of some rows, column by column."""
    order = np.argsort(rows)
    back = np.empty(len(rows), np.int64)
    back[order] = np.arange(len(rows))
    found = zip(*table.parts(_Taken(rows[order])), strict=True)
    return [pa.concat_arrays(cells).take(pa.array(back)) for cells in found]


def openings(task: RowAlignment, parties: Sequence[str]) -> tuple[Declared, ...]:
    """Every label under which something may be opened, with its recipients and the most values."""
    found = alignment_disclosure.declared(task.mode, parties, task.merger, task.bound, LABELS[task.mode])
    return (*found, *([] if task.three is None else [shown_points.declared(parties, LABELS[task.mode])]))


def learned(task: RowAlignment, parties: Sequence[str]) -> tuple[Learned, ...]:
    """Who learns what, in words."""
    return tuple(alignment_disclosure.leakage(task.mode, parties, task.bound))


def collusion(parties: Sequence[str]) -> str:
    """Which parties may work together without learning more, in words."""
    if len(parties) == 2:
        return "none is needed: each of the two parties is alone"
    return f"no {len(parties) - 1} parties together learn more of rows than each of them alone"


def worst(parties: Sequence[str]) -> str:
    """The worst that colluders could find out, in plain words."""
    return NOBODY_ELSE if len(parties) == 2 else collusion(parties)


@dataclass(frozen=True, eq=False, slots=True)
class _Taken:
    """The ids of those of a block's rows that are among some, which ascend."""

    rows: NDArray[np.int64]

    def __call__(self, table: Table, first: int) -> list[pa.Array]:
        start, stop = np.searchsorted(self.rows, (first, first + table.n_rows))
        numbers = pa.array(self.rows[start:stop] - first)
        return [cells.take(numbers) for cells in table.ids]
