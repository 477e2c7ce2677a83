"""Transactions of tables that a program hands over: Arrow's, and data frames of pandas, polars and other libraries."""

from __future__ import annotations

import pyarrow as pa

from link.errors import InputDataError
from mining.data.formats.table_sources import TransactionForm
from mining.data.transactions import Transactions


def transactions_from_arrow(table: pa.Table, id_column: str, item_column: str, where: str) -> Transactions:
    """The transactions of a table in the long form, of lists, or one-hot as mlxtend has them.

    Args:
        table: With a column of ids and one of items; or with one column of lists of items; or with a column of truth
            values, or of 0 and 1, for each item. An index of pandas is no item.
        id_column: Column that numbers transactions.
        item_column: Column of the items.
        where: What sentences call it.

    Raises:
        InputDataError: It has none of these forms, or cells that do not fit its form.
    """
    form = TransactionForm.of(table.schema, id_column, item_column, where)
    if form.kind == "wide":
        index = (table.schema.pandas_metadata or {}).get("index_columns", ())
        form = TransactionForm("wide", tuple(name for name in form.columns if name not in index))
        table = _one_hot(table.select(form.columns), id_column, item_column, where)
    return form.transactions(table.select(form.columns).to_batches(), where)


def _one_hot(table: pa.Table, id_column: str, item_column: str, where: str) -> pa.Table:
    """The table with truth values in place of other numbers 0 and 1, which some libraries write as 0.0 and 1.0."""
    for place, name in enumerate(table.column_names):
        column = table.column(place)
        try:
            numbers = column.cast(pa.int8()).unique().to_pylist()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            numbers = [None]
        if not {0, 1}.issuperset(numbers):
            raise InputDataError(
                f'{where} have neither the columns "{id_column}" and "{item_column}" (others are named by id= and '
                f'item=), nor one column of lists of items, nor columns of 0 and 1 alone: "{name}" holds other values'
            )
        table = table.set_column(place, name, column.cast(pa.bool_()))
    if not table.num_columns:
        raise InputDataError(f"{where} have no column of items; give one of 0 and 1 for each item")
    return table
