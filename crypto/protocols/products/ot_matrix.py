"""Products of two parties' private columns by oblivious transfer: in how many rows both of a pair are set.

For a list of pairs (i, j) of columns, A of the first holder and B of the second, the result is Σ_t A[t, i]·B[t, j].

    1. The party with fewer columns in the pairs chooses (the second where both have as many). Each of its bits chooses
       in one transfer, correlated by the other's bits in that row of all columns with which its column is paired
       (`vector_transfers`); the words are bytes.
    2. Each party adds up its words over chunks of at most 127 rows (`chunk_counts`): shares modulo 2^8 of counts.
    3. The chunks' counts are lifted to 64 bits and added up (`lifting`).

Against words that hold the whole count, bytes take half to a third of the traffic and of the work; lifting adds an
eighth.

Rounds: those of `vector_transfers` and of `lifting`: 4 for small inputs.
Output: additive shares modulo 2^64 at both holders, exact for up to 2^64 rows.
Bytes: a row costs ⌈128/k⌉/8 for each of the chooser's columns and about 1.1 for each pair.
Adversary: semi-honest, private against either holder: what each gets is under masks of transfers, uniform to it.
Leakage: the number of rows and the pairs, which are public.

Source: Gilboa, CRYPTO 1999, section 4.1; Asharov, Lindell, Schneider and Zohner, CCS 2013, section 5; Mohassel and
Zhang, IEEE S&P 2017, section IV-B.2; lifting as in its module.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.columns import Columns, bits_of, check_columns
from crypto.primitives.shares.additive import AdditiveShare
from crypto.protocols.comparison.lifting import lift_sums
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.products.chunk_counts import ChunkCounts
from crypto.protocols.transfers.vector_transfers import (
    MAX_WIDTH,
    Batch,
    Bits,
    Segment,
    batches,
    in_blocks,
    receive_vectors,
    send_vectors,
)
from link.session import Session

WORD: Final = np.uint8

Pairs = NDArray[np.int64]
"""Shape (pairs, 2): a column of the first holder and one of the second."""


@dataclass(frozen=True, slots=True)
class Arrangement:
    """In which order pairs are computed: public, and the same at both parties.

    Attributes:
        second_chooses: Whether the second holder is the receiver of the transfers.
        order: The pairs by the chooser's column, then by the other's.
        chosen: The chooser's columns, one for each group of pairs.
        partners: Of each group the other's columns.
        starts: Where each group begins in the order.
        rows: Length of the columns.
    """

    second_chooses: bool
    order: NDArray[np.int64]
    chosen: list[int]
    partners: list[NDArray[np.int64]]
    starts: list[int]
    rows: int

    @property
    def widths(self) -> tuple[int, ...]:
        """How many pairs each group has."""
        return tuple(map(len, self.partners))

    @property
    def work(self) -> list[Batch]:
        """The transfers."""
        return batches(self.rows, self.widths, WORD)

    @classmethod
    def of(cls, rows: int, pairs: Pairs) -> Arrangement:
        """The arrangement of these pairs of columns of so many rows."""
        distinct = [len(np.unique(side)) for side in pairs.T]
        second_chooses = distinct[1] <= distinct[0]
        chooser, partner = (pairs[:, 1], pairs[:, 0]) if second_chooses else (pairs[:, 0], pairs[:, 1])
        order = np.lexsort((partner, chooser))
        column, other = chooser[order], partner[order]
        edges = np.flatnonzero(np.diff(column, prepend=-1, append=-1)).tolist() if len(pairs) else []
        starts, stops = [], []
        for start, stop in pairwise(edges):
            for first in range(start, stop, MAX_WIDTH):
                starts.append(first)
                stops.append(min(first + MAX_WIDTH, stop))
        groups = [other[start:stop] for start, stop in zip(starts, stops, strict=True)]
        chosen = [int(column[start]) for start in starts]
        return cls(second_chooses, order, chosen, groups, starts, rows)


def all_pairs(first: int, second: int) -> Pairs:
    """All pairs of so many columns of the first holder and of the second, the second's running fastest."""
    return np.stack(np.divmod(np.arange(first * second), max(second, 1)), axis=1)


async def pair_products(
    session: Session, parties: TwoParty, columns: Columns, rows: int, pairs: Pairs
) -> AdditiveShare:
    """Shares of how many rows have both columns of a pair set; both holders call this with the same rows and pairs.

    Args:
        session: The lane to use, fresh for this call.
        parties: This party's half of the agreement with the other.
        columns: This party's own.
        rows: Length of the columns, public.
        pairs: Columns of the first holder and of the second, public.

    Returns:
        One number a pair, in their order.

    Raises:
        ValueError: A pair names a column that this party does not have, or the columns are too short.
        MalformedMessage: The peer's messages have another size: its rows or pairs differ.
    """
    check_columns(columns, rows, pairs[:, 0 if parties.is_first else 1])
    plan = Arrangement.of(rows, pairs)
    work = plan.work
    counts = ChunkCounts(rows, plan.starts, len(pairs))
    lane = session.lane("transfers")
    if work and plan.second_chooses == parties.is_first:
        sender = await parties.sending(lane)
        await send_vectors(lane, parties.peer, sender, work, WORD, _Correlations(plan, columns), counts.keep)
        np.negative(counts.words, out=counts.words)
    elif work:
        receiver = await parties.receiving(lane)

        def choices(segment: Segment) -> Bits:
            return bits_of(columns[plan.chosen[segment.column]], segment.rows)

        await receive_vectors(lane, parties.peer, receiver, work, WORD, choices, counts.keep)
    lifted = await lift_sums(session.lane("lift"), parties, counts.words)
    return lifted[np.argsort(plan.order)]


class _Correlations:
    """The sender's bits of a segment, ready to ride on transfers; groups with the same partners follow each other."""

    def __init__(self, plan: Arrangement, columns: Columns) -> None:
        self._plan, self._columns = plan, columns
        self._last: tuple[tuple[int, int], NDArray[np.int64], list[Bits]] | None = None

    def __call__(self, segment: Segment) -> list[Bits]:
        partners = self._plan.partners[segment.column]
        last = self._last
        if last is None or last[0] != segment.rows or not np.array_equal(last[1], partners):
            blocks = in_blocks(bits_of(self._columns[partners], segment.rows))
            self._last = last = (segment.rows, partners, blocks)
        return last[2]
