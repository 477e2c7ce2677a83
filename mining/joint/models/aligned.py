"""One party's attributes over rows in common order, and counts of rows by conditions that lie at several parties.

A condition is a bit a row at one party: a value of a column, a side of a cut, a digit of a number. A conjunction is
counted as an itemset's support is: the parties' own conjunctions are multiplied row by row by an engine, and the counts
stay shared until they are opened.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crypto.protocols.comparison.two_party import Pairs
from crypto.protocols.sums.pairwise import PairwiseSecrets, agree
from link.disclosure import Declared
from link.errors import ConfigurationError, shareable
from link.journal import Known
from link.session import Session
from link.steps import step
from mining.data.coded_cells import Codes as ShortCodes
from mining.data.items.bitmaps import words
from mining.data.table_rows import TableRows
from mining.data.tables import Table
from mining.joint.models.totals import no_rows, total_rows
from mining.joint.vertical.aligned import Conjunctions, pack_bits
from mining.joint.vertical.batches import set_addends
from mining.joint.vertical.engines.grouped import GroupedProducts
from mining.joint.vertical.engines.products import Addends, Products
from mining.joint.vertical.engines.transfers.products import TransferProducts
from mining.joint.vertical.grouped.groups import Groups, column_holder, column_holders, columns_of_holders
from mining.joint.vertical.grouped.repeated import check_repeated
from mining.joint.vertical.names import open_names
from mining.joint.vertical.parameters import in_job_order
from mining.lattice import Sets
from mining.models.attributes import Attribute, Codes, Numeric, column_of
from mining.models.coded_tables import checked

_AT_ONCE: Final = 1 << 18  # rows


@dataclass(frozen=True, eq=False, slots=True)
class AlignedAttributes:
    """What one party brings into a joint model of columns that lie at several parties.

    Attributes:
        cells: By attribute that this party holds, its rows' codes over the common positions, in the shortest type that
            has room for them; any where it has no row.
        n_positions: Number of positions, equal at all parties.
        presence: Shape (positions,): which positions this party has a row for. None where every position has a row at
            every party.
    """

    cells: Mapping[str, ShortCodes]
    n_positions: int
    presence: NDArray[np.bool_] | None = None

    @classmethod
    def of(
        cls, table: TableRows, attributes: Sequence[Attribute], rows: NDArray[np.int64], *, everywhere: bool
    ) -> AlignedAttributes:
        """A table's columns in common order.

        Args:
            table: The party's table.
            attributes: Those that it holds, as of `held_attributes`.
            rows: By position the row of the table; −1 where this party has none.
            everywhere: Whether no party has such positions.
        """
        here = rows >= 0
        places = np.full(table.n_rows, -1, np.int32)
        places[rows[here]] = np.flatnonzero(here)
        kinds = [_type_of(each) for each in attributes]
        cells = {each.name: np.zeros(len(rows), kind) for each, kind in zip(attributes, kinds, strict=True)}
        seen = table.only([each.name for each in attributes])
        first = 0
        for block in seen.parts(_Coded(tuple(attributes), tuple(kinds))) if attributes else ():
            own = places[first : first + len(block[0])]
            for codes, found in zip(block, cells.values(), strict=True):
                found[own[own >= 0]] = codes[own >= 0]
            first += len(own)
        return cls(cells, len(rows), None if everywhere else here)


@dataclass(frozen=True, slots=True)
class _Coded:
    """The codes of a block's rows, by attribute."""

    attributes: tuple[Attribute, ...]
    kinds: tuple[type[np.signedinteger[Any]], ...]

    def __call__(self, table: Table, _first: int) -> list[ShortCodes]:
        each = zip(self.attributes, self.kinds, strict=True)
        return [attribute.codes(column_of(table, attribute)).astype(kind) for attribute, kind in each]


def held_attributes(table: TableRows, attributes: Sequence[Attribute]) -> list[Attribute]:
    """The attributes of a model that a table has, whose cells were all looked at; perhaps none.

    To be called before rows are aligned: were only common rows looked at, a party with a few ids would learn of these
    people, from whether the job fails, whether they have a value that it does not name.

    Raises:
        InputDataError: A cell is not what its attribute allows.
    """
    held = [attribute for attribute in attributes if attribute.name in table.column_names]
    if held:
        checked(table, tuple(held))
    return held


async def find_holders(
    session: Session, held: Collection[str], attributes: Sequence[Attribute], groups: Groups = ()
) -> dict[str, str]:
    """Every party opens to all which columns of the model it holds, label `columns`; returns by attribute its holder.

    Args:
        session: A lane of its own.
        held: This party's, by name.
        attributes: All that the model takes, public.
        groups: Of parties that hold the same columns of different rows; none: every party holds columns of its own.

    Raises:
        ConfigurationError: As for `one_holder_each`.
        MalformedMessage: A peer sends something else than names.
    """
    names = [attribute.name for attribute in attributes]
    opened = await open_names(session, "columns", [name for name in names if name in held])
    return one_holder_each(names, {party: opened[party] for party in session.parties}, groups)


def one_holder_each(
    names: Sequence[str], columns: Mapping[str, Collection[str]], groups: Groups = ()
) -> dict[str, str]:
    """By column of a model its party, or its group.

    Args:
        names: Of the columns.
        columns: By party, those that it has.
        groups: As for `find_holders`.

    Raises:
        ConfigurationError: A column is at no party, at two parties or groups, or at some parties of a group alone.
    """
    found: dict[str, str] = {}
    holders = columns_of_holders(names, columns, groups)
    for name in names:
        parties = [party for party, held in holders.items() if name in held]
        if len(parties) != 1:
            where = " and ".join(parties) + " both have" if parties else "no party of the job has"
            raise shareable(
                ConfigurationError(f"{where} the column '{name}'; a model takes every column from one party")
            )
        found[name] = parties[0]
    return found


def columns_opening(parties: Sequence[str], attributes: Sequence[Attribute]) -> Declared:
    """The statement's line for `find_holders`."""
    what = "which of the model's columns each party has"
    return Declared("columns", frozenset(parties), what, len(attributes) + 1, "after the alignment")


class Condition(NamedTuple):
    """A bit a row.

    Attributes:
        attribute: The column that it is of.
        holds: For codes of the column, whether it holds.
    """

    attribute: str
    holds: Callable[[Codes], NDArray[np.bool_]]


@dataclass(frozen=True, eq=False, slots=True)
class Conditions:
    """The conditions of a joint model, known to all by number, and this party's bits of its own.

    Attributes:
        conjunctions: Of this party's own.
        n_positions: Number of positions.
        everywhere: Whether every position has a row at every party.
        holders: Of columns: parties, or groups.
        me: The holder that this party is, or is a member of.
        holder: By condition the number of its holder; behind the last stands −1.
        own: By condition its place among this holder's; −1 at those of others, and behind the last.
    """

    conjunctions: Conjunctions
    n_positions: int
    everywhere: bool
    holders: tuple[str, ...]
    me: str
    holder: NDArray[np.int64]
    own: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        session: Session,
        aligned: AlignedAttributes,
        conditions: Sequence[Condition],
        holder_of: Mapping[str, str],
        groups: Groups = (),
    ) -> Conditions:
        """Numbers conditions in their order.

        Args:
            session: Of the parties.
            aligned: This party's attributes.
            conditions: Public.
            holder_of: By attribute, the party or the group that has the column; public.
            groups: As for `find_holders`.
        """
        n = aligned.n_positions
        holders, me = column_holders(groups, session.parties), column_holder(groups, session.me)
        holder = np.array([*(holders.index(holder_of[each.attribute]) for each in conditions), -1], np.int64)
        mine = np.flatnonzero(holder == holders.index(me))
        own = np.full(len(holder), -1, np.int64)
        own[mine] = np.arange(len(mine))
        here = np.ones(n, bool) if aligned.presence is None else aligned.presence
        bitmaps = np.zeros((len(mine), words(n)), np.uint64)
        for place, number in enumerate(mine.tolist()):
            attribute, holds = conditions[number]
            bitmaps[place] = pack_bits(_bits(holds, aligned.cells[attribute]) & here)
        return cls(Conjunctions(bitmaps, pack_bits(here)), n, aligned.presence is None, holders, me, holder, own)

    @property
    def none(self) -> int:
        """Means no condition in a set."""
        return len(self.holder) - 1

    async def addends(self, session: Session, engine: Products, sets: Sets) -> Addends:
        """This party's addends of how many common rows meet all conditions of a set.

        Args:
            session: A lane of its own, equal at all parties.
            engine: Multiplies what lies at several parties.
            sets: Shape (m, k): numbers of conditions, `none` for no condition; public. A set without any is met by the
                rows that all parties have; there is none of those where all rows are everywhere.

        Returns:
            Shape (m,): all parties' add up to the counts, modulo 2^64.
        """
        return await set_addends(
            session,
            engine,
            self.conjunctions,
            sets,
            holders=self.holders,
            me=self.me,
            holder=self.holder,
            own=self.own.__getitem__,
            n_positions=self.n_positions,
            everywhere=self.everywhere,
        )

    async def rows(self, session: Session, engine: Products) -> int | Addends:
        """How many rows all parties have: the number where that is public, else this party's addend of it.

        Args:
            session: A lane of its own, equal at all parties.
            engine: Multiplies what lies at several parties.
        """
        if self.everywhere or not self.n_positions:
            return self.n_positions
        return await self.addends(session, engine, np.full((1, 1), self.none, np.int32))


class Begun(NamedTuple):
    """What a party has when the counts of a model over columns begin.

    Attributes:
        secrets: Pairwise secrets of this session.
        n_rows: How many rows all parties have, at least one.
        engine: Multiplies what lies at several parties, private against all others together.
        conditions: Of the model.
    """

    secrets: PairwiseSecrets
    n_rows: int
    engine: Products
    conditions: Conditions


async def begin(
    session: Session,
    pairs: Pairs,
    aligned: AlignedAttributes,
    columns: Sequence[Attribute],
    conditions: Sequence[Condition],
    groups: Groups = (),
    compute: tuple[str, str] | None = None,
) -> Begun:
    """Agrees on keys, finds out who holds which column, and counts the rows that all have.

    Args:
        session: The model's lane.
        pairs: This party's agreements with all others.
        aligned: This party's attributes over the common rows.
        columns: All columns of the model.
        conditions: Public, in order.
        groups: As for `find_holders`; rows are aligned by union then.
        compute: The two parties that compare whether some id is at two parties of a group; the first two by default.

    Raises:
        ConfigurationError: As for `one_holder_each`.
        InputDataError: No row is common to all parties, or some id is at two parties of a group.
    """
    secrets = await agree(session.lane("keys"))
    holders = await find_holders(session.lane("columns"), aligned.cells, columns, groups)
    of_parties = TransferProducts(secrets, pairs)
    engine = GroupedProducts(of_parties, groups) if groups else of_parties
    numbered = await session.compute(Conditions.of, session, aligned, conditions, holders, groups)
    return Begun(secrets, await common_rows(session, secrets, pairs, engine, numbered, compute), engine, numbered)


async def common_rows(
    session: Session,
    secrets: PairwiseSecrets,
    pairs: Pairs,
    engine: Products,
    numbered: Conditions,
    compute: tuple[str, str] | None,
) -> int:
    """How many rows all holders of columns have; a step of the job, in which no id may be at two parties of a group.

    Args:
        session: The lane of what follows.
        secrets: Pairwise secrets of this session.
        pairs: This party's agreements with all others.
        engine: For the holders of columns.
        numbered: Where this party has rows.
        compute: As for `begin`.

    Raises:
        InputDataError: As for `begin`.
    """

    async def count() -> Known:
        if isinstance(engine, GroupedProducts):
            lane, computing = session.lane("repeated"), in_job_order(session.parties, compute)
            presence = numbered.conjunctions.nothing
            await check_repeated(lane, secrets, pairs, computing, engine, presence, numbered.n_positions)
        rows = await numbered.rows(session.lane("common"), engine)
        return Known(rows if isinstance(rows, int) else await total_rows(session.lane("rows"), secrets, rows))

    n_rows = int((await step(session, "number of common rows", count)).public)
    if not n_rows:
        raise no_rows()
    return n_rows


def code_bytes(attributes: Sequence[Attribute]) -> int:
    """Bytes of a row's codes."""
    return sum(np.dtype(_type_of(each)).itemsize for each in attributes)


def _type_of(attribute: Attribute) -> type[np.signedinteger[Any]]:
    """The shortest type of an attribute's codes."""
    most = attribute.steps if isinstance(attribute, Numeric) else attribute.size
    return next(kind for kind in (np.int8, np.int16, np.int32, np.int64) if most <= np.iinfo(kind).max)


def _bits(holds: Callable[[Codes], NDArray[np.bool_]], cells: ShortCodes) -> NDArray[np.bool_]:
    """A condition's bits, which it finds in codes of full length: some at a time."""
    found = np.empty(len(cells), bool)
    for start in range(0, len(cells), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        found[part] = holds(cells[part].astype(np.int64))
    return found


def equals(place: int, codes: Codes) -> NDArray[np.bool_]:
    """Which codes are that of one value."""
    return np.equal(codes, place)
