"""Metrics of a certificate, recomputed from the published cells."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from anonymize.certificate import Certificate, Scale
from anonymize.verification.findings import Finding
from anonymize.verification.rows import SUPPRESSED, EquivalenceClass, distinct

_RELATIVE = 1e-9
_ITEM = re.compile(r'"(?:[^"]|"")*"|[^,"]+')  # an end or a member, in quotes where it holds a comma
_INTERVAL = re.compile(rf"\[({_ITEM.pattern}), ({_ITEM.pattern})[\])]")


def metrics(certificate: Certificate, table: pa.Table, classes: Sequence[EquivalenceClass]) -> Iterator[Finding]:
    """Every metric that published cells determine.

    Args:
        certificate: What is claimed.
        table: All published rows, blanked ones too, as text.
        classes: The classes of the rows that are not suppressed.
    """
    sizes = [each.size for each in classes]
    n, s = certificate.rows, certificate.suppressed
    recomputed: dict[str, float | None] = {"dm": sum(size * size for size in sizes) + s * n}
    if sizes:
        mean = sum(sizes) / len(sizes)
        recomputed |= {"aecs": mean, "smallest_class": min(sizes), "largest_class": max(sizes)}
        recomputed["c_avg"] = mean / certificate.model.k if certificate.model.k else None
    if certificate.node is not None and certificate.heights is not None:
        recomputed["prec"] = _precision(certificate, table)
        wrong = [
            name for name, level in certificate.node.items() if not 0 <= level <= certificate.heights.get(name, -1)
        ]
        yield Finding("levels", "those of the hierarchies", ", ".join(wrong) or "those of the hierarchies", not wrong)
    if certificate.scales is not None:
        recomputed["gcp"] = generalisation_loss(table, certificate.scales, certificate.rows)
    for name, claimed in certificate.metrics.items():
        found = recomputed.get(name)
        if found is None:
            yield Finding(f"metric {name}", f"{claimed:.9g}", "it cannot be recomputed from what is published", None)
        else:
            close = math.isclose(claimed, found, rel_tol=_RELATIVE, abs_tol=_RELATIVE)
            yield Finding(f"metric {name}", f"{claimed:.9g}", f"{found:.9g}", close)


def _precision(certificate: Certificate, table: pa.Table) -> float | None:
    """Prec: a cell has lost level/height, a suppressed one all."""
    node, heights = certificate.node or {}, certificate.heights or {}
    if node.keys() != heights.keys() or not node.keys() <= set(table.column_names) or not node or not certificate.rows:
        return None
    lost = float((certificate.rows - table.num_rows) * len(node))
    for name, level in node.items():
        for (cell,), rows in distinct(table, [name]):
            lost += rows * (1.0 if cell == SUPPRESSED else level / heights[name] if heights[name] else 0.0)
    return 1 - lost / (certificate.rows * len(node))


def generalisation_loss(table: pa.Table, scales: Mapping[str, Scale], rows: int) -> float | None:
    """GCP of published cells: the mean loss over the quasi-identifiers of all input rows.

    Args:
        table: All published rows as text.
        scales: Of the quasi-identifiers.
        rows: Of the input; those that are left out have lost every cell.

    Returns:
        None where a scale cannot measure a cell, or there are no cells.
    """
    if not scales or not rows or not scales.keys() <= set(table.column_names):
        return None
    cells = {name: [(cell, n) for (cell,), n in distinct(table, [name])] for name in scales}
    return loss_of_cells(cells, scales, rows, table.num_rows)


def loss_of_cells(
    cells: Mapping[str, Sequence[tuple[str, int]]], scales: Mapping[str, Scale], rows: int, published: int
) -> float | None:
    """`generalisation_loss` of distinct cells.

    Args:
        cells: By quasi-identifier, its distinct cells and the published rows of each.
        scales: Of the quasi-identifiers, at least one.
        rows: Of the input, at least one.
        published: Published rows.
    """
    lost = 0.0
    for name, scale in scales.items():
        losses = [(cell_loss(cell, scale), n) for cell, n in cells[name]]
        if any(loss is None for loss, _ in losses):
            return None
        lost += sum(loss * n for loss, n in losses if loss is not None) + rows - published
    return lost / (rows * len(scales))


def cell_loss(cell: str, scale: Scale) -> float | None:
    """NCP of a published cell; None where the scale cannot measure it."""
    if cell in scale.labels:
        return (scale.labels[cell] - 1) / (scale.total - 1) if scale.total and scale.total > 1 else 0.0
    if cell == SUPPRESSED:
        return 1.0
    interval = _INTERVAL.fullmatch(cell)
    if interval and scale.span is not None:
        ends = _position(_plain(interval[1]), scale), _position(_plain(interval[2]), scale)
        if ends[0] is None or ends[1] is None:
            return None
        return (ends[1] - ends[0]) / scale.span if scale.span else 0.0
    if cell.startswith("{") and cell.endswith("}") and scale.total is not None:
        return (len(_ITEM.findall(cell[1:-1])) - 1) / (scale.total - 1) if scale.total > 1 else 0.0
    return 0.0


def _plain(item: str) -> str:
    return item[1:-1].replace('""', '"') if item.startswith('"') else item


def _position(text: str, scale: Scale) -> float | None:
    """Where an end of an interval lies: its rank, its number, or its day."""
    if scale.order is not None:
        return float(scale.order.index(text)) if text in scale.order else None
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return float(datetime.date.fromisoformat(text).toordinal())
    except ValueError:
        return None
