"""Supports of itemsets that span parties, by replicated sharing: rows in which all columns of an itemset are set.

    1. Every party shares the columns that occur, as words of 32 bits, with three computing parties (`replicated`).
    2. Products of the columns with which longer itemsets begin are made element by element, each once (`multiply`).
    3. Beginnings times last columns are matrix products, of which each holder adds up its parts over all rows.
    4. The parts that belong to itemsets are shared anew and become shares of two of the holders, modulo 2^64.

Rows go in blocks, two at a time; an owner waits with a block until its last but one has been taken in, so that memory
stays bounded.

Rounds: 1 + m a block for itemsets of up to m + 2 columns and 1 between blocks, for half of the blocks; then 1 for the
    result, and those of `lifting`.
Output: additive shares modulo 2^64 at two of the holders.
Adversary, leakage, source: as `replicated`; the itemsets are public.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.columns import Columns, bits_of, check_columns
from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.masks import Words
from crypto.primitives.shares.replicated import Holders3, ReplicatedShare
from crypto.primitives.shares.ring_matrix import row_blocks
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.products.chains import Chain, Factor, Itemset, chains, columns_of, heads
from crypto.protocols.products.replicated import Input, check_holders, multiply, reshare, to_additive
from crypto.protocols.sums.pairwise import PairwiseSecrets
from link.session import Session
from link.tasks import together
from protos.v1.products_pb2 import BlockTaken

WORD: Final = np.uint32
STREAMS: Final = 2  # one computes while the other waits for messages

Positions = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Group:
    """Itemsets whose counts are entries of one matrix product.

    Attributes:
        length: How many columns the beginnings have.
        beginnings: Their places among all of that length.
        lasts: Places of the last columns among all columns.
        itemsets: Whose counts these are: their numbers,
        entries: and where in the product they are.
    """

    length: int
    beginnings: Positions
    lasts: Positions
    itemsets: Positions
    entries: tuple[Positions, Positions]


@dataclass(frozen=True, slots=True)
class Layout:
    """What is multiplied, in which order: public, and the same at all parties.

    Attributes:
        used: By owner, in the order of the job, its columns that occur.
        steps: For beginnings of 2, 3, … columns: places of what is one shorter, and of the column that is added.
        groups: The counts.
        number: How many itemsets.
        width: How many columns and beginnings there are.
    """

    used: dict[str, list[int]]
    steps: list[tuple[Positions, Positions]]
    groups: list[Group]
    number: int
    width: int

    @classmethod
    def of(cls, itemsets: list[Chain], parties: tuple[str, ...]) -> Layout:
        """The layout for these itemsets."""
        used = {party: columns for party in parties if (columns := columns_of(itemsets, party))}
        factors = [(party, column) for party, columns in used.items() for column in columns]
        column_at: dict[Factor, int] = {factor: place for place, factor in enumerate(factors)}
        lengths: list[list[Chain]] = [[(factor,) for factor in factors], *heads(itemsets)]
        at = [{chain: place for place, chain in enumerate(each)} for each in lengths]
        steps = [
            (
                _positions(at[shorter][chain[:-1]] for chain in each),
                _positions(column_at[chain[-1]] for chain in each),
            )
            for shorter, each in enumerate(lengths[1:])
        ]
        groups = []
        for length, party in sorted({(len(chain) - 1, chain[-1][0]) for chain in itemsets}):
            members = [n for n, chain in enumerate(itemsets) if (len(chain) - 1, chain[-1][0]) == (length, party)]
            begun = [at[length - 1][itemsets[n][:-1]] for n in members]
            ended = [column_at[itemsets[n][-1]] for n in members]
            beginnings, i = np.unique(np.array(begun, np.int64), return_inverse=True)
            lasts, j = np.unique(np.array(ended, np.int64), return_inverse=True)
            groups.append(Group(length, beginnings, lasts, np.array(members, np.int64), (i, j)))
        return cls(used, steps, groups, len(itemsets), sum(map(len, lengths)))


def _positions(places: Iterable[int]) -> Positions:
    return np.array(list(places), np.int64)


async def spanning_counts(
    session: Session,
    secrets: PairwiseSecrets,
    holders: Holders3,
    parties: TwoParty | None,
    columns: Columns,
    rows: int,
    itemsets: list[Itemset],
) -> AdditiveShare | None:
    """Shares of the itemsets' supports; every party of the job calls this.

    Args:
        session: The lane to use, fresh for this call.
        secrets: From `pairwise.agree` in this session.
        holders: Three parties of the job, in the same order at all.
        parties: At two of the holders their agreement with each other; None at all other parties.
        columns: This party's own, packed as in `ot_matrix`.
        rows: Length of the columns, public; below 2^31.
        itemsets: Public: by party the number of its column, of two parties or more each.

    Returns:
        One number an itemset, in their order; None at a party that is none of the two.

    Raises:
        ValueError: An itemset names a column that this party does not have, or fewer than two parties.
        MalformedMessage: A peer's messages have another size: its rows or itemsets differ.
    """
    check_holders(session, holders)
    layout = Layout.of(chains(itemsets, session.parties), session.parties)
    own = np.array(layout.used.get(session.me, []), np.int64)
    check_columns(columns, rows, own)
    parts = [np.zeros((len(group.beginnings), len(group.lasts)), WORD) for group in layout.groups]
    blocks = row_blocks(rows, layout.width)

    async def stream(lane: Session, mine: list[tuple[int, int]]) -> None:
        ways = {owner: Input(lane, holders, owner, WORD) for owner in layout.used}
        for number, block in enumerate(mine):
            bits = bits_of(columns[own], block).astype(WORD)
            shared = await _share_block(ways, layout, session.me, bits)
            if shared is not None:
                for part, more in zip(parts, await _count_block(lane, secrets, layout, shared), strict=True):
                    part += more
            if number + 1 < len(mine):
                await _taken(lane, holders, list(layout.used))

    await together(stream(session.lane(f"{n}"), blocks[n::STREAMS]) for n in range(min(STREAMS, len(blocks))))
    if session.me not in holders:
        return None
    counts = np.zeros((layout.number, 1), WORD)
    for group, part in zip(layout.groups, parts, strict=True):
        counts[group.itemsets, 0] = part[group.entries]
    shared_counts = await reshare(session.lane("counts"), secrets, holders, counts)
    return None if parties is None else await to_additive(session.lane("lift"), parties, shared_counts)


async def _share_block(ways: dict[str, Input], layout: Layout, me: str, bits: Words) -> ReplicatedShare | None:
    """This party's share of all columns that occur; None where it is no holder."""
    sent = {me: await ways[me].send(bits)} if me in ways else {}
    shares = []
    for owner, way in ways.items():
        shape = (len(layout.used[owner]), bits.shape[1])
        share = way.share(sent[owner] if owner in sent else await way.take(shape), shape)
        if share is not None:
            shares.append(share)
    return ReplicatedShare.stacked(shares) if shares else None


async def _count_block(
    lane: Session, secrets: PairwiseSecrets, layout: Layout, columns: ReplicatedShare
) -> list[Words]:
    """This holder's parts of every group's product over a block of rows."""
    by_length = [columns]
    for shorter, added in layout.steps:
        by_length.append(await multiply(lane, secrets, by_length[-1][shorter], columns[added]))

    def products() -> list[Words]:
        return [
            by_length[group.length - 1][group.beginnings].local_matrix_product(columns[group.lasts])
            for group in layout.groups
        ]

    return await lane.compute(products)


async def _taken(lane: Session, holders: Holders3, owners: list[str]) -> None:
    """Every holder acknowledges a block to every owner; owners wait for that."""
    if lane.me in holders:
        for owner in owners:
            if owner != lane.me:
                await lane.send(owner, BlockTaken())
    if lane.me in owners:
        for holder in holders:
            if holder != lane.me:
                await lane.recv(holder, BlockTaken)
