"""Dot products by Paillier encryption, call after call: a column is encrypted once, and serves all calls that name it.

As `paillier_dot` with doubled shares, where the pairs of several calls have columns of the key's holder in common.
Columns have public names; two of one name have the same bits.

    1. The key's holder sends encryptions of the columns that are new, in groups that share plaintexts, and its key
       before the first. The evaluator keeps the ciphertexts.
    2. Of each group the evaluator forms the products with those of its columns that are paired with one of the group,
       as in `paillier_dot`. It joins as many as fit into one ciphertext, c₀·c₁^(2^s)·c₂^(2^2s)…, with s
       the bits of a product's blocks; adds masks over all of it, and makes it fresh with a uniform n-th residue. The
       key's holder decrypts, and cuts apart what was joined.

Rounds: as `paillier_dot`. Output: doubled shares of the pairs.
Bytes, for keys of b bits: b/4 a ciphertext, of which the key's holder sends ⌈N/ρ⌉ for each new group, and the evaluator
    one for as many products as fit. `KeptColumns` says how many that are, from public numbers alone.

Adversary: as `paillier_dot`. A kept ciphertext reveals to the evaluator no more than it did when it came: it knows from
    the names which pairs have a column in common, and what it computes from one ciphertext twice it could have computed
    twice in one call. Every reply is under masks and a residue of its own, so the key's holder sees in each call what
    it would see if all had been encrypted anew: masked numbers within 2^-40 of a distribution without the products for
    each mask of a reply.
Collusion: two parties; the two together have everything.
Leakage: the number of rows, the pairs, and which columns have the same name: all public. The *time* in which the
    evaluator answers, as in `paillier_dot`.

Source: as `paillier_dot`. Joining ciphertexts is slot packing as in Goethals et al., section 5, after the products.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from gmpy2 import mpz, powmod
from numpy.typing import NDArray

from crypto.primitives.columns import Columns, check_columns
from crypto.primitives.paillier.keys import PrivateKey
from crypto.primitives.paillier.pool import ZeroPool
from crypto.primitives.paillier.public_key import PublicKey
from crypto.primitives.paillier.slots import SlotLayout
from crypto.primitives.paillier.workers import Workers
from crypto.primitives.shares.additive import AdditiveShare
from crypto.protocols.comparison.two_party import beside
from crypto.protocols.paillier.arrangement import REPLY_WORK, Arrangement, doubled_layout, in_pieces, joined
from crypto.protocols.paillier.dot import DoubledShare
from crypto.protocols.paillier.rows import (
    decrypt_replies,
    multiply_rows,
    receive_key,
    receive_rows,
    send_replies,
    send_rows,
    uniform_zeros,
)
from crypto.protocols.products.ot_matrix import Pairs
from link.session import Session
from protos.v1.paillier_pb2 import PaillierKey

Names = Sequence[Hashable]
"""What the key holder's columns of a call are called, by number."""

MOST_KEPT_BYTES: Final = 512 << 20  # of ciphertexts; groups beyond them serve one call
_CALLS: Final = 4  # like its first one, for which a group is laid out that serves several
_JOINED_BITS: Final = 150  # by which a ciphertext is moved in the time of an encryption


# -- what both know ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Part:
    """What a call needs of one group of the key holder's columns.

    Attributes:
        names: Of the group's columns, slot by slot; None of a group that serves this call alone.
        new: Whether it is encrypted in this call.
        chosen: Which of the pairs.
        arrangement: Of these pairs. Of a group that is kept the holder's columns are not among the used.
    """

    names: tuple[Hashable, ...] | None
    new: bool
    chosen: NDArray[np.int64]
    arrangement: Arrangement

    @property
    def joins(self) -> int:
        """Products in a reply, at most."""
        return self.arrangement.layout.plaintext_bits // self.bits

    @property
    def bits(self) -> int:
        """Of one product, all its blocks."""
        layout = self.arrangement.layout
        return layout.rows * layout.block_bits

    @property
    def requests(self) -> int:
        """Ciphertexts that the key's holder sends."""
        return self.arrangement.requests if self.new else 0

    @property
    def replies(self) -> int:
        """Ciphertexts that the evaluator sends."""
        return -(-self.arrangement.replies // self.joins)

    @property
    def joined_bits(self) -> int:
        """By how many bits ciphertexts are moved, all together."""
        return (self.arrangement.replies - self.replies) * self.bits

    @property
    def foreseen(self) -> int:
        """Work of both, in encryptions and multiplications aside, if as many like calls come as expected."""
        calls = 1 if self.names is None else _CALLS
        return self.requests + calls * (self.replies * REPLY_WORK + self.joined_bits // _JOINED_BITS)


class KeptColumns:
    """Which columns of one key's holder an evaluator has under encryption: public, and the same at both.

    Attributes:
        rows: Length of all columns.
        key_bits: Size of the key.
        calls: How many there have been; the key comes with the first.
    """

    def __init__(self, rows: int, key_bits: int) -> None:
        """None yet."""
        self.rows, self.key_bits, self.calls = rows, key_bits, 0
        self._groups: list[tuple[tuple[Hashable, ...], SlotLayout]] = []
        self._slots: dict[Hashable, tuple[int, int]] = {}
        self._bytes = 0

    def parts(self, pairs: Pairs, names: Names | None) -> list[Part]:
        """What a call needs: first of the groups that are kept, in their order, then of new ones.

        Args:
            pairs: A column of the key's holder and one of the evaluator each, at least one.
            names: Of the key holder's columns; None: those of this call are named by no other.

        Raises:
            ValueError: There are no pairs, or so many rows that not even one column fits.
        """
        if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
            raise ValueError("products are of pairs of columns, at least one")
        used, of_pair = np.unique(pairs[:, 0], return_inverse=True)
        places = [None if names is None else self._slots.get(names[number]) for number in used.tolist()]
        group = np.array([-1 if place is None else place[0] for place in places])
        slot = np.array([0 if place is None else place[1] for place in places])
        parts = []
        nothing = np.zeros(0, np.int64)
        for number in np.unique(group[group >= 0]).tolist():
            kept, layout = self._groups[number]
            chosen = np.flatnonzero(group[of_pair] == number)
            parts.append(Part(kept, False, chosen, self._arrangement(pairs, chosen, nothing, slot[of_pair], layout)))
        for members in self._cut(np.flatnonzero(group < 0)):
            slot[members] = np.arange(len(members))
            chosen = np.flatnonzero(np.isin(of_pair, members))
            parts.append(self._new(pairs, chosen, used[members], slot[of_pair], names))
        return parts

    def keep(self, parts: Sequence[Part]) -> list[Part]:
        """Records a call's new groups, and returns which of them are kept."""
        self.calls += 1
        kept = []
        for part in parts:
            size = part.requests * part.arrangement.ciphertext_bytes
            if part.new and part.names is not None and self._bytes + size <= MOST_KEPT_BYTES:
                self._bytes += size
                for slot, name in enumerate(part.names):
                    self._slots[name] = len(self._groups), slot
                self._groups.append((part.names, part.arrangement.layout))
                kept.append(part)
        return kept

    def _cut(self, places: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """New columns, cut into as few groups as there are plaintexts for, of nearly equal size."""
        if not len(places):
            return []
        return np.array_split(places, doubled_layout(len(places), self.rows, self.key_bits)[1])

    def _new(
        self,
        pairs: Pairs,
        chosen: NDArray[np.int64],
        held: NDArray[np.int64],
        slots: NDArray[np.int64],
        names: Names | None,
    ) -> Part:
        """A new group, with as many rows to a plaintext as take the least work."""
        widest, _ = doubled_layout(len(held), self.rows, self.key_bits)
        named = None if names is None else tuple(names[number] for number in held.tolist())

        def laid_out(rows: int) -> Part:
            arrangement = self._arrangement(pairs, chosen, held, slots, replace(widest, rows=rows))
            return Part(named, True, chosen, arrangement)

        return min(map(laid_out, range(1, widest.rows + 1)), key=lambda part: part.foreseen)

    def _arrangement(
        self,
        pairs: Pairs,
        chosen: NDArray[np.int64],
        held: NDArray[np.int64],
        slots: NDArray[np.int64],
        layout: SlotLayout,
    ) -> Arrangement:
        second, of_second = np.unique(pairs[chosen, 1], return_inverse=True)
        return Arrangement(self.rows, (held, second), (slots[chosen], of_second), 2, layout, 1, self.key_bits // 4)


# -- the key's holder --------------------------------------------------------------------------------------------------
async def hold_kept(
    session: Session,
    evaluator: str,
    key: PrivateKey,
    pool: ZeroPool,
    kept: KeptColumns,
    columns: Columns,
    pairs: Pairs,
    names: Names | None,
    *,
    workers: Workers | None = None,
) -> DoubledShare:
    """The key holder's doubled shares, one a pair.

    Args:
        session: The lane to use, fresh for this call.
        evaluator: The other party.
        key: This party's key, the same in all calls.
        pool: Encryptions of zero under it; what is missing is made on the spot.
        kept: What the evaluator has, from the calls before this one.
        columns: This party's own.
        pairs: A column of the key's holder and one of the evaluator each, at least one; public.
        names: What this party's columns are called; public. None: no other call names those of this one.
        workers: Where encryptions of zero are made; the session's own by default.

    Raises:
        ValueError: A pair names a column that this party does not have, the columns are too short, or there are more
            rows than slots can count.
        MalformedMessage: The evaluator's reply is not as it must be.
    """
    check_columns(columns, kept.rows, pairs[:, 0])
    if pool.key != key.public or key.public.bits != kept.key_bits:
        raise TypeError("encryptions of zero are taken from a pool under the key itself, of the agreed size")
    parts, first = kept.parts(pairs, names), not kept.calls
    if first:
        await session.send(evaluator, PaillierKey(modulus=key.public.to_bytes()))  # -> 1
    for part in parts:
        if part.new:
            await send_rows(session, evaluator, part.arrangement, key, pool, columns, workers or session)  # -> 1
    kept.keep(parts)
    plaintexts = iter(await decrypt_replies(session, evaluator, key, sum(part.replies for part in parts)))  # <- 2
    masked = np.zeros(len(pairs), np.uint64)
    for part in parts:
        replies = [next(plaintexts) for _ in range(part.replies)]
        products = _cut_apart(replies, part.bits, part.joins, part.arrangement.replies)
        masked[part.chosen] = part.arrangement.of_pairs(part.arrangement.layout.unpack(products))
    return DoubledShare(kept.rows, AdditiveShare(masked, session.me, (session.me, evaluator)))


# -- the evaluator -----------------------------------------------------------------------------------------------------
class KeptRows:
    """What an evaluator has of one key's holder: its key, and the ciphertexts of the groups that are kept."""

    def __init__(self, columns: KeptColumns) -> None:
        """Nothing yet."""
        self.columns = columns
        self.key: PublicKey | None = None
        self.of_group: dict[tuple[Hashable, ...], list[bytes]] = {}


async def evaluate_kept(
    session: Session,
    holder: str,
    kept: KeptRows,
    columns: Columns,
    pairs: Pairs,
    names: Names | None,
    *,
    workers: Workers | None = None,
) -> DoubledShare:
    """The evaluator's doubled shares, one a pair.

    Args:
        session: The lane to use, fresh for this call.
        holder: The key's holder.
        kept: What this party has, from the calls before this one.
        columns: This party's own.
        pairs: As at the holder.
        names: As at the holder.
        workers: Where ciphertexts are multiplied: several processes use several cores; the session's own by default.

    Raises:
        ValueError: As for `hold_kept`.
        MalformedMessage: The holder's key is none of the agreed size, or its rows are no ciphertexts under it.
    """
    rows = kept.columns.rows
    check_columns(columns, rows, pairs[:, 1])
    parts = kept.columns.parts(pairs, names)
    if kept.key is None:
        kept.key = await receive_key(session, holder, kept.columns.key_bits)  # <- 1
    key = kept.key
    stays = set(map(id, kept.columns.keep(parts)))

    async def products() -> list[mpz]:
        found: list[mpz] = []
        for part in parts:
            data = _rows_of(session, holder, kept, part, keep=id(part) in stays)  # <- 1
            arguments = (part.arrangement, columns, key, data, workers or session)
            partial = await multiply_rows(session, holder, *arguments, checked=not part.new)
            pieces = [partial[piece] for piece in in_pieces(len(partial), part.joins)]
            found += await session.map(_Join(key, part.bits), pieces)
        return found

    number = sum(part.replies for part in parts)
    sums, zeros = await beside(products(), uniform_zeros(session, key, number))
    random, words, masks = session.randomness("masks"), np.zeros(len(pairs), np.uint64), list[mpz]()
    for part in parts:
        drawn, slots = part.arrangement.layout.masks(part.arrangement.sums, random)
        words[part.chosen] = part.arrangement.of_pairs(slots)
        masks += [_beside(drawn[piece], part.bits) for piece in in_pieces(len(drawn), part.joins)]
    await send_replies(session, holder, key, sums, zeros, masks)  # -> 2
    return DoubledShare(rows, AdditiveShare(np.negative(words), session.me, (holder, session.me)))


async def _rows_of(session: Session, holder: str, kept: KeptRows, part: Part, *, keep: bool) -> AsyncIterator[bytes]:
    """A group's ciphertexts: from the holder, or as they have been kept."""
    if not part.new:
        assert part.names is not None
        for data in kept.of_group[part.names]:
            yield data
        return
    taken = list[bytes]()
    async for data in receive_rows(session, holder, part.arrangement):
        if keep:
            taken.append(data)
        yield data
    if keep and part.names is not None:
        kept.of_group[part.names] = taken


# -- several products in a plaintext -----------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Join:
    """Makes the ciphertext of the plaintexts of several, each so many bits above the one before."""

    key: PublicKey
    bits: int

    def __call__(self, products: Sequence[mpz]) -> mpz:
        *others, found = products
        for product in reversed(others):
            found = powmod(found, mpz(1) << self.bits, self.key.n_squared) * product % self.key.n_squared
        return found


def _beside(plaintexts: Sequence[mpz], bits: int) -> mpz:
    """What `_Join` has for these plaintexts."""
    return sum((plaintext << place * bits for place, plaintext in enumerate(plaintexts)), mpz(0))


def _cut_apart(plaintexts: Sequence[mpz], bits: int, joins: int, number: int) -> list[mpz]:
    """So many products from the plaintexts of replies, each of which holds `joins` of them."""
    keep = (mpz(1) << bits) - 1
    return joined([[plaintext >> place * bits & keep for place in range(joins)] for plaintext in plaintexts])[:number]
