"""Replaced identities: how far each published record is from its original, which only the original shows.

Definitions (Kang and Meng 2018): λ = 1 − |v − x|/|x| within [0, 1], by a scale where x is 0; for dates by the days that
the column spans; α = Π ζ λ over all replaced columns; β is the projection of the virtual on the original numbers by the
length of these, or its symmetric form; accepted are records with α within bounds and |1 − β| not above its own.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anonymize.certificate import Certificate, Replacement
from anonymize.verification.findings import Finding

Floats = NDArray[np.float64]

_ROUNDING = 1e-9


def replaced(certificate: Certificate, text: pa.Table, source: pa.Table | None) -> Iterator[Finding]:
    """Checks replaced identities; nothing where the release has none.

    Args:
        certificate: With the parameters of the replacement.
        text: The published rows.
        source: The original as text; None where the verifier does not have it.
    """
    claim = certificate.replacement
    if claim is None:
        return
    if source is None:
        yield Finding("replaced identities", "within their ranges and thresholds", "only the original shows that", None)
        return
    if claim.omitted is None:
        why = "the rows are sorted, so none is beside its original"
        yield Finding("replaced identities", "within their ranges and thresholds", why, None)
        return
    kept = np.setdiff1d(np.arange(source.num_rows), claim.omitted)
    fits = len(kept) == text.num_rows and set(certificate.columns) <= set(source.column_names)
    yield Finding("replaced rows", f"{text.num_rows} with their originals", f"{len(kept)} originals", fits)
    if not fits:
        return
    paired = source.take(pa.array(kept))
    for name, column in certificate.columns.items():
        if column.role in ("sensitive", "insensitive"):
            same = paired.column(name).combine_chunks().equals(text.column(name).combine_chunks())
            yield Finding(f"column {name}", "as in the original, row by row", "so" if same else "not so", same)
    kinds = {name: certificate.columns[name].kind for name in claim.ranges}
    measured = [name for name, kind in kinds.items() if kind in ("numeric", "date")]
    try:
        x, v = ({name: _numbers(table, name, kinds[name]) for name in measured} for table in (paired, text))
    except ValueError:
        yield Finding("replaced identities", "numbers and dates", "a replaced column holds something else", False)
        return
    for name in measured:
        far = int((np.abs(v[name] - x[name]) > claim.ranges[name] * (1 + _ROUNDING) + _ROUNDING).sum())
        yield Finding(f"range of {name}", f"no value moved by more than {claim.ranges[name]:g}", f"{far} did", not far)
    if len(measured) < len(kinds):
        why = "columns of other kinds than numbers and dates need their hierarchies"
        yield Finding("thresholds of replacement", f"at most {claim.unmet} rows outside", why, None)
        return
    whole = {name: _numbers(source, name, "date") for name in measured if kinds[name] == "date"}
    spans = {name: float(np.ptp(days)) or 1.0 for name, days in whole.items() if len(days)}
    outside = int((~_accepted(claim, x, v, spans)).sum())
    found = f"{outside} rows outside"
    yield Finding("thresholds of replacement", f"at most {claim.unmet} rows outside", found, outside <= claim.unmet)


def _numbers(table: pa.Table, name: str, kind: str) -> Floats:
    cells = table.column(name).to_pylist()
    if kind == "date":
        return np.array([datetime.date.fromisoformat(cell[:10]).toordinal() for cell in cells], np.float64)
    return np.array(cells, np.float64)


def _accepted(
    claim: Replacement, x: dict[str, Floats], v: dict[str, Floats], spans: dict[str, float]
) -> NDArray[np.bool_]:
    """Shape (rows,): whose similarities are within the thresholds, rounding allowed for."""
    rows = len(next(iter(x.values()))) if x else 0
    alpha, dot, own, other = np.ones(rows), np.zeros(rows), np.zeros(rows), np.zeros(rows)
    for name, values in x.items():
        moved = np.abs(v[name] - values)
        size = np.full(rows, spans[name]) if name in spans else np.abs(values)
        size = np.where(size > 0, size, claim.scales.get(name, claim.ranges[name]))
        with np.errstate(divide="ignore", invalid="ignore"):
            similarity = np.where(moved > 0, np.clip(1 - moved / size, 0, 1), 1.0)
        alpha *= claim.influences.get(name, 1.0) * similarity
        if name not in spans:
            weight = claim.weights.get(name, 1.0) ** 2
            dot, own, other = dot + weight * values * v[name], own + weight * values**2, other + weight * v[name] ** 2
    length = np.maximum(own, other) if claim.beta == "symmetric" else own
    beta = np.where(length > 0, dot / np.where(length > 0, length, 1), np.where(other > 0, 0.0, 1.0))
    if len(spans) == len(x):  # no numbers, no vector
        beta = np.ones(rows)
    near = (alpha >= claim.alpha_min - _ROUNDING) & (alpha <= claim.alpha_max + _ROUNDING)
    accepted: NDArray[np.bool_] = near & (np.abs(1 - beta) <= claim.ch_max + _ROUNDING)
    return accepted
