"""The tables of a result as programs hold them: pandas data frames, Arrow's tables, and frames as mlxtend has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from link.errors import ConfigurationError

if TYPE_CHECKING:
    import pandas

FrameForm = Literal["pandas", "arrow", "mlxtend"]

_FORMS: Final = ("pandas", "arrow", "mlxtend")
_OF_MLXTEND: Final = {  # what it calls our columns, in its order
    "antecedent": "antecedents",
    "consequent": "consequents",
    "antecedent_count": "antecedent support",
    "consequent_count": "consequent support",
    "support": "support",
    "itemset": "itemsets",
    "zhang": "zhangs_metric",
}
_NOT_OF_MLXTEND: Final = frozenset({"length", "count"})


def frame_of(table: pa.Table, form: FrameForm | None, n_rows: int) -> pandas.DataFrame | pa.Table:
    """A table of itemsets or rules in the form that is asked for.

    Args:
        table: As `Result.tables` has it.
        form: Which; None: that of pandas where it is installed, else Arrow's.
        n_rows: Of which the counts are.

    Raises:
        ConfigurationError: There is no such form, or it needs pandas, which is not installed.
    """
    if form not in (None, *_FORMS):
        raise ConfigurationError(f"there is no form '{form}' of a table; there are {', '.join(_FORMS)}")
    if form == "arrow":
        return table
    try:
        import pandas
    except ImportError:
        if form is None:
            return table
        raise ConfigurationError(
            f'the form "{form}" is a data frame of pandas, which is not installed; install comine[pandas], or ask for '
            '"arrow"'
        ) from None
    return pandas.DataFrame(_as_mlxtend(table, n_rows) if form == "mlxtend" else _columns(table))


def _columns(table: pa.Table) -> Mapping[str, object]:
    return {
        field.name: column.to_pylist() if pa.types.is_list(field.type) else column.to_numpy()
        for field, column in zip(table.schema, table.columns, strict=True)
    }


def _as_mlxtend(table: pa.Table, n_rows: int) -> Mapping[str, object]:
    """Items as frozensets, and shares in place of counts."""
    names = [name for name in _OF_MLXTEND if name in table.column_names]
    names += [name for name in table.column_names if name not in (*names, *_NOT_OF_MLXTEND)]
    found = dict[str, object]()
    for name in names:
        column = table[name]
        called = _OF_MLXTEND.get(name, name)
        if pa.types.is_list(column.type):
            found[called] = [frozenset(items) for items in column.to_pylist()]
        elif name.endswith("_count"):
            found[called] = pc.divide(column.cast(pa.float64()), float(n_rows)).to_numpy()
        else:
            found[called] = column.to_numpy()
    return found
