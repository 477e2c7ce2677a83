"""Signs that a simulation is not what is meant: data that were misread, and a count in the place of a share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from jobs.data import Data, data_kind
from jobs.kinds.registry import kind_of
from jobs.spec.job import JobSpec
from mining.data.hints import misread
from mining.data.transactions import Transactions

_HANDED_OVER: Final = "rows"  # which no file has as its format
_PER_CENT: Final = 100  # counts up to it may be meant as such
_FEW: Final = 100  # rows for each of a count: below a hundredth of the rows, few want it


@dataclass(frozen=True, slots=True)
class Read:
    """How the data of a party were read.

    Attributes:
        source: The file; empty where a program handed over the rows.
        format: As of `mining.data.loading`.
        separator: As there.
        id_column: As there.
        item: The column of items.
        kind: As in `[[dataset]]`.
    """

    source: str
    format: str
    separator: str | None
    id_column: str
    item: str
    kind: str = "transactions"


def simulation_hints(
    spec: JobSpec,
    data: Mapping[str, Data],
    files: Mapping[str, str],
    data_format: str,
    separator: str | None,
    ids: Sequence[str],
    item: str,
) -> Iterator[str]:
    """One sentence for each sign; it names no item.

    Args:
        spec: The job.
        data: By party. Rows in blocks are not looked at.
        files: By party the file that they are of; rows of the other parties were handed over by a program.
        data_format: Of the files.
        separator: Of the files.
        ids: Columns of ids.
        item: The column of items.
    """
    takes = kind_of(spec).data
    for party, given in data.items():
        if data_kind(given) != takes:
            continue  # which the job refuses
        if isinstance(given, Transactions):
            source = files.get(party, "")
            read = Read(source, data_format if source else _HANDED_OVER, separator, ids[0], item)
            yield from (f"the data of {party}: {hint.sentence}" for hint in misread(given, read))
        elif not given.n_rows:
            yield f"the data of {party}: there is no row; check the source"
    if spec.itemsets_ is not None and takes == "transactions":
        yield from count_hints(spec.itemsets.min_support_, sum(given.n_rows for given in data.values()))


def count_hints(wanted: int | Decimal | None, n_rows: int) -> Iterator[str]:
    """A low count of many rows, or one that no itemset can reach, where a share may be meant.

    Args:
        wanted: The job's min_support.
        n_rows: Of all parties.
    """
    if isinstance(wanted, int) and wanted <= _PER_CENT and not n_rows < _FEW * wanted <= _FEW * n_rows:
        meant = f"{wanted} % is {wanted / _PER_CENT:g}"
        yield f"min_support = {wanted} is a count, here of {n_rows:,} transactions; {meant}, if that is meant"
