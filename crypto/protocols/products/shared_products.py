"""Supports of itemsets that span two parties or more, private against all parties but one, by oblivious transfer.

The parties of an itemset, in the order of the job, have bits x₁, …, x_k in a row. What parties 1 to j − 1 share of the
product of theirs modulo 2^w, x₁⋯x_{j−1} = s₁ + … + s_{j−1}, becomes shares of x₁⋯x_j of parties 1 to j: since

    x₁⋯x_j = s₁·x_j + … + s_{j−1}·x_j,

party j lets its bit choose in one transfer with each earlier party i, correlated by s_i: i keeps minus its random word
and j gets that word plus s_i·x_j (`vector_transfers`), all of which it adds up. At the beginning s₁ = x₁. Products
with which several itemsets begin are made once. At the last column every party adds up its words over all rows; the
sums go under the masks of all pairs of parties to two of them (`shared_sum`), who lift them to 64 bits (`lifting`).

Rows go in blocks, one after the other, where the products that are kept of each row would take more than `KEPT_BYTES`;
only sums over all of them leave a party.

The words are the shortest that hold twice the number of rows, so that a support's top bit is 0. Shorter ones over
chunks of rows, as two parties use them among themselves (`ot_matrix`), would show the chunks' counts to the two who get
the result if they collude.

Rounds: those of `vector_transfers` for each party but the first and each block, 1, and those of `lifting`.
Output: additive shares modulo 2^64 at two parties.
Bytes a row and itemset of j columns: j·(j − 1)/2 transfers of ⌈128/k⌉/8 + w/8; of products in common, once.

Adversary: semi-honest, private against up to n − 1 parties, but that the two who get the result can open it together.
Proof (sketch): take an honest party h; all others collude. Transfers with h are secure one by one, so they may be
    replaced by a trusted party that gives the sender a uniform word r and the receiver r + c·x.
    (a) h is party j: from its transfer with i the colluders get i's word alone, uniform whatever h's bit is.
    (b) h is party i, and j > i among them: they get r + s_h·x_j with r uniform and unknown to them, that is, a uniform
        word; h's share is then −r. With every further party h's new share is minus a fresh uniform word.
    (c) What h adds up from (a) and (b) leaves it under masks in common with each other party. The others learn h's sum
        where both who get the result are among them: it is the result minus what their own words add up to.
    So their view is uniform given the result, and can be made from it and their own columns.
Leakage: rows and itemsets, which are public.

Source: Goldreich, Micali and Wigderson, STOC 1987 (products by pairwise transfers); Gilboa, CRYPTO 1999, section 4.1
(in integers); lifting and transfers as in their modules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final, NamedTuple

import numpy as np

from crypto.primitives.columns import Columns, bits_of, check_columns
from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.masks import Words
from crypto.protocols.comparison.lifting import lift_sums
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.products.chains import Chain, Itemset, beginnings, chains, columns_of
from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.sums.secure_sum import shared_sum
from crypto.protocols.transfers.vector_transfers import (
    MAX_WIDTH,
    Batch,
    Bits,
    Keep,
    Segment,
    Word,
    batches,
    in_blocks,
    receive_vectors,
    send_vectors,
)
from link.session import Session
from link.tasks import together

KEPT_BYTES: Final = 64 << 20  # of products of one block that longer ones begin with
LEAST_ROWS: Final = 1 << 17  # of a block that is not the last: their transfers fill some batches
_ROWS_AT_ONCE: Final = 64


class Part(NamedTuple):
    """Products that two parties work on: those of which the later one gives the last column.

    Attributes:
        kept: Whether longer products begin with them, so that every row is kept; else only their sum.
        columns: The later party's columns, one for each group of products.
        groups: By column the products, in ascending order.
        starts: Each group's first place among all.
        work: The transfers.
    """

    kept: bool
    columns: list[int]
    groups: list[list[Chain]]
    starts: list[int]
    work: list[Batch]

    @classmethod
    def of(cls, products: Set[Chain], rows: int, word: Word, *, kept: bool) -> Part:
        """These products over so many rows, in such words."""
        by_column: dict[int, list[Chain]] = {}
        for chain in products:
            by_column.setdefault(chain[-1][1], []).append(chain)
        columns, groups, starts, done = [], [], [], 0
        for column in sorted(by_column):
            every = sorted(by_column[column])
            for first in range(0, len(every), MAX_WIDTH):
                columns.append(column)
                groups.append(every[first : first + MAX_WIDTH])
                starts.append(done)
                done += len(groups[-1])
        return cls(kept, columns, groups, starts, batches(rows, [len(group) for group in groups], word))

    @property
    def chains(self) -> list[Chain]:
        """All products, in the order of the results."""
        return [chain for group in self.groups for chain in group]


def word_for(rows: int) -> Word:
    """The shortest word in which a number up to that of the rows leaves the top bit 0.

    Raises:
        ValueError: There are 2^31 rows or more.
    """
    for word in (np.uint8, np.uint16, np.uint32):
        if rows < 1 << (8 * np.dtype(word).itemsize - 1):
            return word
    raise ValueError(f"columns of {rows} rows are too long for products of shares")


def row_blocks(rows: int, itemsets: Sequence[Chain]) -> list[tuple[int, int]]:
    """Rows that are computed on together: public, each block of as many, beginning at a multiple of 8."""
    if not rows:
        return []
    kept = max(1, len(beginnings(itemsets))) * np.dtype(word_for(rows)).itemsize
    number = -(-rows // max(LEAST_ROWS, KEPT_BYTES // kept))
    length = -(-rows // number // 8) * 8
    return [(start, min(start + length, rows)) for start in range(0, rows, length)]


def products_by_pair(itemsets: Sequence[Chain]) -> dict[tuple[str, str], tuple[list[Chain], list[Chain]]]:
    """By pair of parties, the earlier first, the products that longer ones begin with, and the others of the two."""
    begun = beginnings(itemsets)
    found: dict[tuple[str, str], tuple[list[Chain], list[Chain]]] = {}
    for place, products in enumerate((begun, set(itemsets) - begun)):
        for chain in products:
            *before, (later, _) = chain
            for earlier, _ in before:
                found.setdefault((earlier, later), ([], []))[place].append(chain)
    return found


def widths_of(products: Iterable[Chain]) -> list[int]:
    """How many products each group of a part has."""
    numbers = Counter(chain[-1][1] for chain in products)
    return [
        min(MAX_WIDTH, numbers[column] - first)
        for column in sorted(numbers)
        for first in range(0, numbers[column], MAX_WIDTH)
    ]


def parts_of(itemsets: Sequence[Chain], rows: int, word: Word, earlier: str, later: str) -> list[Part]:
    """What two parties work on in a block, the earlier in the order of the job first: at most two parts."""
    begun, counted = map(set, products_by_pair(itemsets).get((earlier, later), ([], [])))
    parts = [Part.of(begun, rows, word, kept=True), Part.of(counted, rows, word, kept=False)]
    return [part for part in parts if part.work]


async def spanning_products(
    session: Session,
    secrets: PairwiseSecrets,
    pairs: Mapping[str, TwoParty],
    columns: Columns,
    rows: int,
    itemsets: Sequence[Itemset],
    holders: tuple[str, str],
) -> AdditiveShare | None:
    """Shares of the itemsets' supports; every party of the job calls this.

    Args:
        session: The lane to use, fresh for this call.
        secrets: From `pairwise.agree` in this session.
        pairs: From `pairs_of`, or the like: an agreement with every party with which this one has an itemset, and at
            the holders with each other.
        columns: This party's own, packed as in `ot_matrix`.
        rows: Length of the columns, public.
        itemsets: Public: by party the number of its column, of two parties or more each.
        holders: Who gets the shares; in the order of their agreement with each other.

    Returns:
        One number an itemset, in their order; None at a party that is no holder.

    Raises:
        ValueError: An itemset names a column that this party does not have, or fewer than two parties.
        MalformedMessage: A peer's messages have another size: its rows or itemsets differ.
    """
    if len(set(holders)) != 2 or not set(holders) <= set(session.parties):
        raise ValueError(f"the holders of supports are two different parties of the job, not {holders}")
    every = chains(itemsets, session.parties)
    check_columns(columns, rows, np.array(columns_of(every, session.me), np.int64))
    word, total = word_for(rows), np.zeros(len(every), word_for(rows))
    for start, stop in row_blocks(rows, every):
        lane = session.lane(f"from row {start}") if start else session
        shares = _Shares(columns[:, start // 8 : -(-stop // 8)], stop - start, word)
        await _multiply(lane, pairs, every, shares)
        total += shares.counts(every)
    sums = await shared_sum(session.lane("sum"), secrets, total.astype(np.uint64), holders)
    if sums is None:
        return None
    (peer,) = set(holders) - {session.me}
    # Modulo 2^w the two hold shares of the supports, whatever the words of all parties came to beyond.
    return await lift_sums(session.lane("lift"), pairs[peer], sums.values.astype(word)[:, None])


async def _multiply(session: Session, pairs: Mapping[str, TwoParty], every: Sequence[Chain], shares: _Shares) -> None:
    """This party's words of all products over a block of rows."""
    for later in session.parties[1:]:
        earlier = session.parties[: session.parties.index(later)]
        if session.me in earlier:
            for part in parts_of(every, shares.rows, shares.word, session.me, later):
                shares.add(part, await _send(session, pairs[later], part, shares))
        elif session.me == later:
            work = [
                (pairs[peer], part)
                for peer in earlier
                for part in parts_of(every, shares.rows, shares.word, peer, later)
            ]
            results = await together(_receive(session, pair, part, shares) for pair, part in work)
            for (_, part), words in zip(work, results, strict=True):
                shares.add(part, words)


class _Shares:
    """One party's words of all products in which it takes part, over a block of rows.

    Attributes:
        rows: How many.
        word: The type of words.
        columns: This party's own over these rows.
    """

    def __init__(self, columns: Columns, rows: int, word: Word) -> None:
        self.columns, self.rows, self.word = columns, rows, word
        self._kept: dict[Chain, Words] = {}
        self._counted: dict[Chain, Words] = {}

    def add(self, part: Part, words: Words) -> None:
        """Adds a part's words, shape (products, rows) or (products, 1)."""
        into = self._kept if part.kept else self._counted
        for chain, row in zip(part.chains, words, strict=True):
            into[chain] = into[chain] + row if chain in into else row

    def rows_of(self, products: Sequence[Chain], rows: tuple[int, int]) -> Words:
        """This party's words of products, or the bits of its own columns; shape (products, rows)."""
        return np.stack(
            [
                self._kept[chain][slice(*rows)] if len(chain) > 1 else bits_of(self.columns[chain[0][1]], rows)
                for chain in products
            ],
            dtype=self.word,
            casting="safe",
        )

    def counts(self, itemsets: Sequence[Chain]) -> Words:
        """The sums over the rows, shape (itemsets,); zero where this party takes no part."""
        none = np.zeros(1, self.word)
        words = [self._counted.get(chain, self._kept.get(chain, none)) for chain in itemsets]
        return np.array([each.sum(dtype=self.word) for each in words], self.word)


def _taker(part: Part, shares: _Shares) -> tuple[Words, Keep]:
    """Memory for a part's words, and what takes them there."""
    words = np.zeros((len(part.chains), shares.rows if part.kept else 1), shares.word)

    def keep(segment: Segment, first: int, came: Words) -> None:
        place = part.starts[segment.column] + first
        target = words[place : place + came.shape[1]]
        if part.kept:
            target[:, slice(*segment.rows)] = came.T
        else:
            target[:, 0] += _column_sums(came)

    return words, keep


def _column_sums(words: Words) -> Words:
    """Sums modulo 2^w over the first axis; many rows at a time, since numpy is slow where the last axis is short."""
    rows, columns = words.shape
    whole = rows // _ROWS_AT_ONCE * _ROWS_AT_ONCE
    sums = words[:whole].reshape(-1, _ROWS_AT_ONCE * columns).sum(axis=0, dtype=words.dtype)
    total: Words = sums.reshape(-1, columns).sum(axis=0, dtype=words.dtype)
    total += words[whole:].sum(axis=0, dtype=words.dtype)
    return total


async def _send(session: Session, pair: TwoParty, part: Part, shares: _Shares) -> Words:
    """The earlier party's words of a part."""
    lane = _lane(session, session.me, pair.peer, part)
    words, keep = _taker(part, shares)

    def correlations(segment: Segment) -> list[Words]:
        beginnings = [chain[:-1] for chain in part.groups[segment.column]]
        return in_blocks(shares.rows_of(beginnings, segment.rows))

    await send_vectors(lane, pair.peer, await pair.sending(lane), part.work, shares.word, correlations, keep)
    return np.negative(words)


async def _receive(session: Session, pair: TwoParty, part: Part, shares: _Shares) -> Words:
    """The later party's words of a part, from one earlier party."""
    lane = _lane(session, pair.peer, session.me, part)
    words, keep = _taker(part, shares)

    def choices(segment: Segment) -> Bits:
        return bits_of(shares.columns[part.columns[segment.column]], segment.rows)

    await receive_vectors(lane, pair.peer, await pair.receiving(lane), part.work, shares.word, choices, keep)
    return words


def _lane(session: Session, earlier: str, later: str, part: Part) -> Session:
    return session.lane(f"{earlier} to {later} {'rows' if part.kept else 'counts'}")
