"""Joining the parties' parts of the released rows in an order that says nothing, at the collector.

    1. every party writes its part of every common row: its part of the row's class, and its columns that are published
       as they are; one shared sum leaves whole rows shared between the collector and the shuffler
    2. the shuffler puts the shared rows in an order of its own (`shared_permutation`)
    3. where rows may be suppressed, whether each is released has been looked up before, as a shared bit
       (`shared_lookup`), and goes with it; the collector permutes the rows as well, so that nobody knows the order, and
       these bits are opened to both. Parties of column groups have rows at some positions, and the sum at a position
       is a whole row where a party of each group has one: that is compared on shares (`equal_to`), and is part of the
       bit, which goes with every row then
    4. the shuffler opens its shares of the released rows to the collector, who puts the rows in ascending order of
       bytes, checks that every class has the size that it must have, and opens them to the other learners, who check
       the same, and that their own parts of these rows are parts of rows that they have, unless others of their group
       have some

Rounds:     1, those of one permutation or of a look-up and two, and 2 or 3; with groups also those of `equal_to`.
Output:     the released rows, to the learners.
Adversary:  semi-honest. The shuffler sees no row that is not its own; the collector sees released rows without their
            places; of a suppressed row nobody sees anything, and nobody learns which row it is.
Collusion:  collector and shuffler together read all parties' parts of all rows.
Leakage:    how many rows are suppressed; to learners what the release and their own columns reveal.
Source:     Mohassel and Sadeghian, EUROCRYPT 2013 (permute and share); Laur, Willemson and Zhang, "Round-Efficient
            Oblivious Database Manipulation", ISC 2011 (shuffling by each holder in turn).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import unpack_bits
from crypto.primitives.sealed import Rows
from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.masks import Words
from crypto.primitives.shares.xor import XorShare
from crypto.protocols.comparison.comparison import equal_to
from crypto.protocols.comparison.shared_lookup import look_up
from crypto.protocols.comparison.shared_permutation import permute
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.sums.secure_sum import shared_sum, word_for
from link.errors import MalformedMessage
from link.session import Session
from mining.joint.anonymisation.conditions.bits import all_of
from mining.joint.anonymisation.parameters import Found
from mining.joint.anonymisation.release_check import check_contained, differs
from mining.joint.anonymisation.row_form import Assembled, Form
from mining.joint.anonymisation.vertical.columns import HeldColumns, part_of
from mining.joint.hybrid.openings import open_document, receive_document
from mining.joint.vertical.grouped.groups import Groups, column_holders, holder_members
from mining.joint.vertical.parameters import in_job_order

_WORD_BYTES = 4


async def assemble(
    session: Session,
    secrets: PairwiseSecrets,
    pairs: Mapping[str, TwoParty],
    held: HeldColumns,
    found: Found,
    allowed: int,
    groups: Groups = (),
) -> Assembled | None:
    """Joins the parties' parts of the released rows.

    Args:
        session: A lane of its own.
        secrets: Pairwise secrets of this session.
        pairs: By peer this party's half of an agreement with it.
        held: This party's columns.
        found: The node and its released classes.
        allowed: How many rows may be suppressed.
        groups: Of parties that hold the same columns of different rows; none: every party holds columns of its own.

    Returns:
        The released rows, in ascending order of their bytes, to a learner; None to anybody else.

    Raises:
        ProtocolViolation: What came out are no rows of the released classes, or none of those that this learner has.
        MalformedMessage: The collector opened something else than rows.
    """
    names = column_holders(groups, session.parties)
    forms = Forms.of(names, held)
    cells = await session.compute(_own_cells, held, found)
    own = await session.compute(forms.pack, held, cells)
    collector, shuffler = held.task.collector, held.task.shuffler
    holders = in_job_order(session.parties, (collector, shuffler))
    shared = await shared_sum(session.lane("rows"), secrets, own.reshape(-1), holders)
    index = None
    if allowed:  # which is public
        index = await shared_sum(session.lane("classes"), secrets, cells.astype(np.uint32), holders)
    present = None
    if held.presence is not None:
        here = held.presence.astype(word_for(len(names)))
        present = await shared_sum(session.lane("presence"), secrets, here, holders)
    rows = None
    if session.me in holders and shared is not None:
        pair = pairs[shuffler if session.me == collector else collector]
        kept = await _kept(session, pair, index, found.released, present, len(names))
        rows = await _shuffled(session, pair, held, forms, shared, kept)
    document = None
    if rows is not None:  # at the collector
        document = rows
        await open_document(session.lane("release"), "release", document.tobytes(), len(document), held.task.learners)
    elif session.me in held.task.learners:
        most = held.n_rows * forms.row_bytes
        came = await receive_document(session.lane("release"), collector, "release", most_bytes=most, most=held.n_rows)
        if len(came) % forms.row_bytes:
            raise MalformedMessage(f"{collector} opened no rows; check that node", party=collector)
        document = np.frombuffer(came, np.uint8).reshape(-1, forms.row_bytes)
    if document is None:
        return None
    whole = _read(held, found, forms, document, allowed)
    written = own.astype("<u4").view(np.uint8)
    if len(holder_members(groups, held.me)) == 1:
        parts = forms.part(document, held.me), forms.part(written, held.me)
        await session.compute(check_contained, held.task, *parts)
    return whole


async def _kept(
    session: Session,
    pair: TwoParty,
    index: AdditiveShare | None,
    released: NDArray[np.bool_],
    present: AdditiveShare | None,
    holders: int,
) -> XorShare | None:
    """Shares of whether each position is a released row; None where all are.

    Args:
        session: The lane of the assembly.
        pair: This party's half of the agreement between collector and shuffler.
        index: The class of each row, where some may be suppressed.
        released: Which classes are released.
        present: With groups, how many of them have a row at each position.
        holders: How many groups there are.
    """
    bits = list[XorShare]()
    if index is not None:
        bits.append(await look_up(session.lane("look up"), pair, index, released))
    if present is not None:
        bits.append(await equal_to(session.lane("common"), pair, present, holders, holders.bit_length()))
    return await all_of(session.lane("kept"), pair, bits) if bits else None


async def _shuffled(
    session: Session,
    pair: TwoParty,
    held: HeldColumns,
    forms: Forms,
    rows: AdditiveShare,
    kept: XorShare | None,
) -> Rows | None:
    """The released rows in an order that says nothing, to the collector; None to the shuffler."""
    collector, shuffler, width = held.task.collector, held.task.shuffler, forms.words
    owners = [shuffler]
    if kept is not None:
        # Shares of bits add up to these modulo 2; what else their sum holds is not opened.
        bits = unpack_bits(kept.planes, kept.number)[0].astype(np.uint32)
        joined = np.concatenate([rows.values.reshape(-1, width), bits[:, None]], axis=1)
        rows, width = AdditiveShare(joined.reshape(-1), rows.holder, rows.holders), width + 1
        owners.append(collector)
    for owner in owners:
        order = None
        if owner == session.me:
            order = session.randomness("order").permutation(held.n_positions).astype(np.int64)
        rows = await permute(session.lane(f"order of {owner}"), pair, rows, width, owner, order)
    values = rows.values.reshape(-1, width)
    if kept is not None:
        values = np.ascontiguousarray(values[await _open_released(session, pair, values[:, -1]), :-1])
    lane = session.lane("joined")
    if session.me == shuffler:
        await lane.open("joined rows", values, (collector,))
        return None
    theirs = await lane.receive_opened(shuffler, "joined rows", np.uint32, values.shape)
    return forms.bytes_of(values + theirs)


async def _open_released(session: Session, pair: TwoParty, shares: Words) -> NDArray[np.bool_]:
    """Opens to both which places of the secret order are released."""
    lane = session.lane("released")
    own = (shares & np.uint32(1)).astype(np.uint8)
    await lane.open("released rows", own, (pair.peer,))
    theirs = await lane.receive_opened(pair.peer, "released rows", np.uint8, own.shape)
    if (theirs > 1).any():
        raise MalformedMessage(f"{pair.peer} opened bits that are neither 0 nor 1; check that node", party=pair.peer)
    return np.asarray(own ^ theirs, np.bool_)


@dataclass(frozen=True)
class Forms:
    """How a joined row is written: the parts of the holders of columns one after another, in words.

    Attributes:
        forms: By holder, a party or a group, how its part is written.
    """

    forms: Mapping[str, Form]

    @classmethod
    def of(cls, holders: Sequence[str], held: HeldColumns) -> Forms:
        """The forms of all holders, each from what its parties declared."""
        return cls({holder: Form.of(part_of(held.task, held.holders, holder)) for holder in holders})

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return sum(form.size for form in self.forms.values())

    @property
    def words(self) -> int:
        """Words of a row."""
        return -(-self.row_bytes // _WORD_BYTES)

    def pack(self, held: HeldColumns, cells: NDArray[np.int64]) -> Words:
        """This party's part of all rows and zeros elsewhere, shape (positions, words)."""
        rows = np.zeros((held.n_positions, self.words * _WORD_BYTES), np.uint8)
        start, form = self._start(held.me), self.forms[held.me]
        here = np.arange(held.n_positions) if held.presence is None else np.flatnonzero(held.presence)
        rows[here, start : start + form.size] = form.pack(held.rows, cells, here, 0)
        return rows.view("<u4").astype(np.uint32)

    def bytes_of(self, words: Words) -> Rows:
        """Rows of bytes in ascending order, which says nothing of where they were."""
        rows = np.ascontiguousarray(words.astype("<u4").view(np.uint8)[:, : self.row_bytes])
        return rows[np.lexsort(rows.T[::-1])] if len(rows) else rows

    def unpack(self, rows: Rows, carried: Sequence[str]) -> Assembled:
        """What rows say.

        Raises:
            ValueError: They are none.
        """
        cells, found = np.zeros(len(rows), np.int64), dict[str, list[str]]()
        for holder, form in self.forms.items():
            part = form.unpack(np.ascontiguousarray(self.part(rows, holder)), 1, shown=False)
            cells += part.cells
            found.update(part.carried)
        return Assembled(cells, None, {name: found[name] for name in carried})

    def part(self, rows: Rows, holder: str) -> Rows:
        """A holder's part of rows."""
        start = self._start(holder)
        return rows[:, start : start + self.forms[holder].size]

    def _start(self, holder: str) -> int:
        before = list(self.forms)[: list(self.forms).index(holder)]
        return sum(self.forms[each].size for each in before)


def _own_cells(held: HeldColumns, found: Found) -> NDArray[np.int64]:
    """This party's part of each row's class: the classes' numbers are the sums of all parties' parts."""
    cells, task = np.zeros(held.n_positions, np.int64), held.task
    for place, leaves in zip(held.places(held.me), held.rows.leaves, strict=True):
        stride = task.cells({other: found.node[other] for other in range(place + 1, len(found.node))})
        cells += stride * task.hierarchies[place].maps[found.node[place]][leaves].astype(np.int64)
    return cells if held.presence is None else np.where(held.presence, cells, 0)


def _read(held: HeldColumns, found: Found, forms: Forms, document: Rows, allowed: int) -> Assembled:
    """The rows, held against what was decided."""
    collector, size = held.task.collector, len(found.released)
    try:
        whole = forms.unpack(document, [each.name for each in held.task.carried])
    except (ValueError, IndexError):
        raise MalformedMessage(
            f"{collector} opened rows that cannot be read; check that node", party=collector
        ) from None
    inside = not len(whole.cells) or 0 <= whole.cells.min() <= whole.cells.max() < size
    sizes = np.bincount(whole.cells, minlength=size) if inside else np.zeros(size, np.int64)
    agreed = inside and bool(((sizes > 0) == found.released).all())
    lost = held.n_rows - len(whole.cells)
    if not agreed or (sizes[found.released] < held.task.k).any() or not 0 <= lost <= allowed:
        raise differs(held.task)
    return whole
