"""Condensed groups: sizes, moments, and whether the published records can have been drawn from them.

Records are drawn as mean + Σ u_j e_j with u_j uniform within ±√(3 λ_j), λ_j and e_j being the eigenvalues and
eigenvectors of the group's covariance (Aggarwal and Yu 2004). So every record satisfies
(x − m)ᵀ C⁻¹ (x − m) = Σ u_j²/λ_j ≤ 3 d, whatever eigenvectors were taken where eigenvalues are equal, and does not
leave the plane on which the group lies.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anonymize.certificate import Certificate, Groups, sha256_of
from anonymize.verification.findings import Finding
from anonymize.verification.moments import GroupMoments
from link.errors import InputDataError

Floats = NDArray[np.float64]

_ROUNDING = 1e-6


def condensed(certificate: Certificate, text: pa.Table, moments: Path) -> Iterator[Finding]:
    """Checks condensed groups; nothing where the release has none.

    Args:
        certificate: With the groups.
        text: The published rows.
        moments: The file of the moments, which need not be there.
    """
    groups = certificate.groups
    if groups is None:
        return
    k, sizes = certificate.model.k, groups.sizes
    least = min(sizes, default=0)
    if k is not None:
        yield Finding("records of each condensed group", f"{k} or more", f"{least} at least", least >= k)
    kept = certificate.rows - certificate.suppressed
    yield Finding("records of all groups", str(kept), str(sum(sizes)), kept == sum(sizes))
    drawn = groups.factor * sum(sizes)
    yield Finding("records drawn from groups", str(drawn), str(text.num_rows), drawn == text.num_rows)
    if not moments.exists():
        yield Finding("moments of the groups", "in a file of their own", f"{moments.name} is not in the folder", None)
        return
    found = sha256_of(moments)
    yield Finding(f"SHA-256 of {moments.name}", groups.moments, found, found == groups.moments)
    try:
        read = GroupMoments.read(moments)
    except InputDataError as error:
        yield Finding("moments of the groups", "a readable file", error.message, False)
        return
    yield from _drawn(certificate, groups, read, text)


def _drawn(certificate: Certificate, groups: Groups, moments: GroupMoments, text: pa.Table) -> Iterator[Finding]:
    """Whether the moments are some of records, and the published records can have been drawn from them."""
    sizes, d = groups.sizes, len(groups.columns)
    fits = len(sizes) == len(moments.sums) == len(moments.products) and d > 0 and min(sizes, default=0) > 0
    fits = fits and all(len(fs) == d for fs in moments.sums) and len(moments.origins) == len(moments.units) == d
    fits = fits and all(len(sc) == d and all(len(row) == d for row in sc) for sc in moments.products)
    yield Finding("moments of the groups", f"of {len(sizes)} groups and {d} columns", "so" if fits else "not so", fits)
    if not fits:
        return
    means = np.array(moments.sums) / np.array(sizes)[:, None]
    squares = np.array(moments.products) / np.array(sizes)[:, None, None]
    covariances = squares - means[:, :, None] * means[:, None, :]
    symmetric = bool(np.allclose(squares, squares.transpose(0, 2, 1)))
    noise = _ROUNDING * np.trace(squares, axis1=1, axis2=2)
    spread, axes = np.linalg.eigh((covariances + covariances.transpose(0, 2, 1)) / 2)
    sound = symmetric and bool((spread[:, 0] >= -noise).all())
    yield Finding("covariances of the groups", "symmetric, no negative variance", "so" if sound else "not so", sound)
    if sound:
        yield _records(certificate, groups, moments, text, _Groups(means, np.maximum(spread, 0), axes, noise))


class _Groups:
    """Where the records of each group can lie."""

    def __init__(self, means: Floats, spread: Floats, axes: Floats, noise: Floats) -> None:
        self._means, self._spread, self._axes = means, spread, axes
        self._noise = noise
        # How far a record can be from the mean along the first column.
        self._reach = (np.abs(axes[:, 0, :]) * np.sqrt(3 * spread)).sum(axis=1) + np.sqrt(3 * noise)

    def outside(self, records: Floats) -> int:
        """How many records no group can have put where they are."""
        records = records[np.argsort(records[:, 0])]
        met = np.zeros(len(records), np.bool_)
        first = self._means[:, 0]
        begin = np.searchsorted(records[:, 0], first - self._reach)
        end = np.searchsorted(records[:, 0], first + self._reach, side="right")
        for group, (low, high) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
            rows = low + np.flatnonzero(~met[low:high])
            along = (records[rows] - self._means[group]) @ self._axes[group]
            met[rows] = self._within(along, self._spread[group], float(self._noise[group]))
        return int((~met).sum())

    def _within(self, along: Floats, spread: Floats, noise: float) -> NDArray[np.bool_]:
        flat = spread <= noise
        on_plane = (along[:, flat] ** 2 <= 12 * noise).all(axis=1)
        distance = (along[:, ~flat] ** 2 / spread[~flat]).sum(axis=1)
        within: NDArray[np.bool_] = on_plane & (distance <= 3 * int((~flat).sum()) * (1 + _ROUNDING))
        return within


def _records(
    certificate: Certificate, groups: Groups, moments: GroupMoments, text: pa.Table, reach: _Groups
) -> Finding:
    """Whether every published record is within reach of some group."""
    check, expected = "published records", "where some group can have put them"
    kinds = {certificate.columns[name].kind if name in certificate.columns else "absent" for name in groups.columns}
    if kinds != {"numeric"}:
        return Finding(check, expected, "dates and ranks were rounded, so that is not exact", None)
    try:
        records = np.array([text.column(name).to_pylist() for name in groups.columns], np.float64).T
    except (KeyError, ValueError):
        return Finding(check, expected, "a condensed column is not there or holds text", False)
    outside = reach.outside((records - np.array(moments.origins)) / np.array(moments.units))
    return Finding(check, expected, f"{outside} of {len(records)} records are elsewhere", not outside)
