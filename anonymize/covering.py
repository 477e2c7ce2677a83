"""Which values a published cell may cover."""

from __future__ import annotations

import datetime

import numpy as np
from numpy.typing import NDArray

from anonymize.cells import SUPPRESSED, Label, Members, parse
from anonymize.columns import Column, number_of
from anonymize.hierarchies.hierarchy import Hierarchy
from link.errors import InputDataError


def covered(text: str, column: Column, hierarchy: Hierarchy | None = None) -> NDArray[np.bool_]:
    """Which values a published cell may cover.

    A text that is a value of the column as well as a label covers all that either means.

    Args:
        text: The cell.
        column: With the values that are asked about.
        hierarchy: Whose labels the column's cells may bear.

    Returns:
        Shape (values of the domain,).

    Raises:
        InputDataError: The cell is neither a value, an interval, a set, a label of the hierarchy nor `*`.
    """
    if text == SUPPRESSED:
        return np.ones(column.size, bool)
    texts = np.array(column.texts, object)
    found = np.asarray(texts == text, bool)
    known = bool(found.any())
    if hierarchy is not None:
        leaves = hierarchy.align(column)
        for labels, codes in zip(hierarchy.labels, hierarchy.maps, strict=True):
            if text in labels:
                known = True
                found |= codes[leaves] == labels.index(text)
    if known:
        return found
    cell = parse(text)
    if isinstance(cell, Members):
        return np.isin(texts, cell.values)
    if isinstance(cell, Label) and column.kind in ("numeric", "date"):
        _place(text, column)  # a value of the kind that the column does not hold
        return found
    if isinstance(cell, Label) or not column.is_ordered:
        raise InputDataError(f'The cell "{text}" of column "{column.name}" is no value and no label of its hierarchy.')
    numbers, low, high = column.numbers, _place(cell.low, column), _place(cell.high, column)
    return (numbers >= low) & ((numbers < high) if cell.half_open else (numbers <= high))


def _place(text: str, column: Column) -> float:
    """A value on the scale of the column's numbers."""
    try:
        if column.kind == "numeric":
            return float(number_of(text))
        if column.kind == "date":
            return float(datetime.date.fromisoformat(text).toordinal())
        return float(column.numbers[column.texts.index(text)])
    except ValueError:
        raise InputDataError(f'The cell value "{text}" is no {column.kind} value of column "{column.name}".') from None
