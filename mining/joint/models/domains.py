"""Public domains of columns of texts, where the job does not give them: the values that occur at some party.

`united` is for parties that hold rows: a union by prefixes of all values, so that nobody learns whose they are.
`opened` is for parties that hold columns: each opens the values of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.union.prefix_disclosure import declared, leakage
from crypto.protocols.union.prefix_union import prefix_union
from crypto.protocols.union.size_classes import SETS
from link.disclosure import Declared, Learned
from link.errors import ProtocolViolation
from link.session import Session
from mining.data.tables import Table
from mining.joint.item_names import decoded, encoded
from mining.joint.models.totals import no_rows
from mining.joint.vertical.names import open_names
from mining.limits import MAX_ITEM_BYTES
from mining.models.attributes import Categorical

MAX_VALUES: Final = 1 << 20  # of all columns together, for the statement

_LABEL: Final = "domains"


async def united(
    session: Session,
    secrets: PairwiseSecrets,
    pairs: Mapping[str, TwoParty],
    table: Table,
    names: Sequence[str],
    *,
    bound: int | None = None,
) -> tuple[Categorical, ...]:
    """The values that occur at any party, column by column, in ascending order of UTF-8 bytes.

    Args:
        session: A lane of its own.
        secrets: Pairwise secrets of this session.
        pairs: From `shared_or.pairs_of` in this session.
        table: This party's rows; perhaps none.
        names: The columns, public.
        bound: The most values that any party may have.

    Raises:
        ConfigurationError: Some party has more values than the bound allows, or a value is too long.
        InputDataError: A column has no value at any party.
        ProtocolViolation: What came out is no union of values of these columns.
    """
    own = encoded(_values(table, names))
    union = await prefix_union(
        session, secrets, pairs, own, bound=bound, label=_LABEL, max_element_bytes=MAX_ITEM_BYTES
    )
    return _by_column(session, decoded(union), names)


async def opened(session: Session, table: Table, names: Sequence[str]) -> tuple[Categorical, ...]:
    """The values of columns each of which is at one party, as `united`.

    Args:
        session: A lane of its own.
        table: This party's columns.
        names: The columns of all parties, public.

    Raises:
        InputDataError: A value is too long, or a column has none at any party.
        MalformedMessage: A peer sends something else than names.
        ProtocolViolation: A peer sends values of other columns.
    """
    by_party = await open_names(session, _LABEL, sorted(_values(table, names)))
    return _by_column(session, sorted({value for values in by_party.values() for value in values}), names)


def openings(parties: tuple[str, ...], *, vertical: bool, bound: int | None = None) -> list[Declared]:
    """The statement's lines for what is opened.

    Args:
        parties: Of the job.
        vertical: Whether parties hold columns; rows otherwise.
        bound: Of `united`.
    """
    if vertical:
        what = "the values of each party's columns of the model"
        return [Declared(_LABEL, frozenset(parties), what, MAX_VALUES + 1, "before the first counts")]
    most = MAX_VALUES if bound is None else len(parties) * SETS.rounded(bound)
    return declared(parties, most, MAX_ITEM_BYTES, _LABEL)


def learned(parties: tuple[str, ...], *, vertical: bool, bound: int | None = None) -> list[Learned]:
    """Who learns what, in words; arguments as for `openings`."""
    if vertical:
        return [Learned(parties, "membership", "which values occur in each party's columns of the model").main()]
    whose = "and of each that a party does not have itself, that the other does" if len(parties) == 2 else "not at whom"
    lines = [Learned(parties, "membership", f"which values occur in the columns of the model, {whose}").main()]
    found = leakage(parties, bound=bound)
    return [*lines, *(line.of("the union of values") for line in found)]


def _values(table: Table, names: Sequence[str]) -> set[str]:
    """Column and value of each that occurs; the column's name has no equals sign."""
    found: set[str] = set()
    for column in table.columns:
        if column.name in names:
            texts = [*column.values.to_pylist(), ""]  # the last one is for cells that are empty
            found.update(f"{column.name}={texts[code]}" for code in set(column.codes.tolist()))
    return found


def _by_column(session: Session, values: Iterable[str], names: Sequence[str]) -> tuple[Categorical, ...]:
    domains: dict[str, list[str]] = {name: [] for name in names}
    for each in values:
        name, equals, value = each.partition("=")
        if not equals or name not in domains:
            raise ProtocolViolation(
                "the values that were opened are of other columns than those of the model; check all nodes",
                party=session.others[0] if len(session.others) == 1 else None,
            )
        domains[name].append(value)
    if not all(domains.values()):
        raise no_rows()
    return tuple(Categorical(name, tuple(found)) for name, found in domains.items())
