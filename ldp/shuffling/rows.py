"""Reports as rows of one size, one after another: what can be sealed, permuted and counted report by report."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.sealed import Rows
from ldp.mechanism import Mechanism
from ldp.reports import Reports


def rows_of(reports: Reports) -> Rows:
    """Each report as a row: its fields one after another, little-endian; shape (n, `mechanism.report_bytes`)."""
    parts = []
    for field in reports.fields:
        little = np.ascontiguousarray(field).astype(field.dtype.newbyteorder("<"))
        width = little.itemsize * math.prod(little.shape[1:])
        parts.append(np.frombuffer(little.tobytes(), np.uint8).reshape(len(reports), width))
    return np.concatenate(parts, axis=1)


def reports_in(rows: Rows, mechanism: Mechanism[Any]) -> tuple[Reports, NDArray[np.bool_]]:
    """The reports in rows that anybody may have made.

    Args:
        rows: Shape (n, `mechanism.report_bytes`).
        mechanism: Whose reports these are to be.

    Returns:
        Those that honest clients can send, in order; and which rows these are, shape (n,).
    """
    fields, start = [], 0
    for field in mechanism.layout:
        cut = np.ascontiguousarray(rows[:, start : start + field.nbytes])
        little = np.dtype(field.dtype).newbyteorder("<")
        fields.append(cut.view(little).reshape(field.shape(len(rows))).astype(field.dtype, copy=False))
        start += field.nbytes
    reports = Reports(mechanism.fingerprint, tuple(fields))
    valid = np.ones(len(rows), np.bool_)
    _mark(reports, mechanism, valid, 0)
    return (reports, valid) if valid.all() else (reports[valid], valid)


def _mark(reports: Reports, mechanism: Mechanism[Any], valid: NDArray[np.bool_], start: int) -> None:
    """Marks reports that cannot be, half by half: nearly always all can be."""
    if len(reports) == 0 or mechanism._valid(reports):
        return
    if len(reports) == 1:
        valid[start] = False
        return
    middle = len(reports) // 2
    _mark(reports[:middle], mechanism, valid, start)
    _mark(reports[middle:], mechanism, valid, start + middle)
