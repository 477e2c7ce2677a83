"""Truthfulness: whether every published row covers an original row of its own.

A published row covers an original one if each of its quasi-identifiers covers the other's value and all other
cells are the same. The release is true if all its rows can be given different original rows so, which is a question of
matching; it is asked of distinct tuples and the numbers of their rows.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anonymize.certificate import Certificate
from anonymize.verification.covers import Covers, covers, reads_as_value
from anonymize.verification.findings import Finding
from anonymize.verification.matching import alone, covering
from anonymize.verification.rows import SUPPRESSED, Key, distinct, key_of

LabelledValues = Mapping[str, Mapping[str, Sequence[str]]]
"""By quasi-identifier and label, the original values that it covers."""

_CENTRED = ("mdav", "maa-slie", "gpkc", "mondrian")  # algorithms that can publish centres of classes
_SHOWN = 3


@dataclass(frozen=True, eq=False)
class _Tuples:
    """Distinct rows.

    Attributes:
        codes: Shape (tuples, quasi-identifiers): the number of each cell among the cells of its column.
        rows: Shape (tuples,): how many rows each is.
        by_fixed: By the cells of all other columns, the tuples that have them.
    """

    codes: NDArray[np.int64]
    rows: NDArray[np.int64]
    by_fixed: Mapping[tuple[Key, ...], Sequence[int]]

    @classmethod
    def of(cls, table: pa.Table, known: Mapping[str, Sequence[str]], fixed: Mapping[str, str]) -> _Tuples:
        """Counts rows.

        Args:
            table: All cells as text.
            known: By quasi-identifier, its distinct cells.
            fixed: The other columns and their kinds.
        """
        numbers = [{text: number for number, text in enumerate(texts)} for texts in known.values()]
        codes: list[list[int]] = []
        rows: list[int] = []
        by_fixed = defaultdict[tuple[Key, ...], list[int]](list)
        for cells, count in distinct(table, [*known, *fixed]):
            by_fixed[tuple(map(key_of, cells[len(known) :], fixed.values()))].append(len(rows))
            codes.append([place[cell] for place, cell in zip(numbers, cells[: len(known)], strict=True)])
            rows.append(count)
        return cls(np.array(codes, np.int64).reshape(len(rows), len(known)), np.array(rows, np.int64), by_fixed)


def truthful_rows(
    certificate: Certificate, release: pa.Table, original: pa.Table, labels: LabelledValues | None
) -> Iterator[Finding]:
    """Checks a release with classes.

    Args:
        certificate: What is claimed.
        release: The published rows that are not blanked, as text.
        original: The rows that were anonymised, as text, with all columns that are claimed.
        labels: What labels mean; None where that is not known.
    """
    quasi = [name for name, column in certificate.columns.items() if column.role == "quasi_identifiers"]
    centres = quasi if _is_centred(certificate, release, quasi) else []
    for name in centres:
        yield _centres(certificate, name, release, original)
    read = {
        name: covers(
            release.column(name).unique().to_pylist(),
            original.column(name).unique().to_pylist(),
            certificate.columns[name].kind,
            (certificate.scales or {}).get(name),
            None if labels is None else labels.get(name, {}),
        )
        for name in quasi
        if name not in centres
    }
    lost = _alone(certificate, release, original, read)
    found = "they do" if not lost else f"{lost} rows cover no original row that is not taken"
    yield Finding("rows that cover original ones", "each for one of its own", found, not lost)
    opaque = [f'"{cell}" of {name}' for name, each in read.items() for cell in each.opaque]
    if opaque:
        more = f" and {len(opaque) - _SHOWN} more" if len(opaque) > _SHOWN else ""
        why = f"labels.json is not there, so nothing shows what {', '.join(opaque[:_SHOWN])}{more} covers"
        yield Finding("labels", "what each covers", why, None)
    elif _is_full_domain(certificate, release, quasi):
        yield _whole_classes(release, original, read)


def _alone(certificate: Certificate, release: pa.Table, original: pa.Table, read: Mapping[str, Covers]) -> int:
    """Published rows that are left without an original row of their own."""
    fixed = {
        name: column.kind
        for name, column in certificate.columns.items()
        if column.role in ("sensitive", "insensitive") and not column.added and name in release.column_names
    }
    ours = _Tuples.of(release, {name: each.cells for name, each in read.items()}, fixed)
    theirs = _Tuples.of(original, {name: each.values for name, each in read.items()}, fixed)
    pairs, lost = [each.pairs for each in read.values()], 0
    for key, published in ours.by_fixed.items():
        given = np.array(theirs.by_fixed.get(key, ()), np.int64)
        edges = covering(pairs, ours.codes[published], theirs.codes[given])
        lost += alone(edges, ours.rows[published], theirs.rows[given])
    return lost


def _whole_classes(release: pa.Table, original: pa.Table, read: Mapping[str, Covers]) -> Finding:
    """Whether no row was taken out of a published class: full-domain recoding suppresses whole classes."""
    ours = _Tuples.of(release, {name: each.cells for name, each in read.items()}, {})
    theirs = _Tuples.of(original, {name: each.values for name, each in read.items()}, {})
    hidden = np.ones(len(ours.rows), np.bool_)
    for column, each in enumerate(read.values()):
        hidden &= np.array([cell == SUPPRESSED for cell in each.cells], np.bool_)[ours.codes[:, column]]
    _, right = covering([each.pairs for each in read.values()], ours.codes[~hidden], theirs.codes)
    belonging, shown = int(theirs.rows[np.unique(right)].sum()), int(ours.rows[~hidden].sum())
    found = f"{shown} are published, {belonging} original rows belong to these classes"
    return Finding("rows of published classes", "all original rows of each", found, shown == belonging)


def _is_full_domain(certificate: Certificate, release: pa.Table, quasi: Sequence[str]) -> bool:
    """Whether each column has one level in all rows but those that lost all their cells."""
    node, heights = certificate.node or {}, certificate.heights or {}
    below = [place for place, name in enumerate(quasi) if node.get(name) != heights.get(name)]
    if not node or not below:  # without a column below its top, a suppressed row looks like any other
        return False
    tuples = [cells for cells, _ in distinct(release, quasi) if set(cells) != {SUPPRESSED}]
    return not any(cells[place] == SUPPRESSED for cells in tuples for place in below)


def _is_centred(certificate: Certificate, release: pa.Table, quasi: Sequence[str]) -> bool:
    """Whether the published quasi-identifiers are the centres of classes."""
    if certificate.scales is not None or certificate.algorithm not in _CENTRED:
        return False
    return all(reads_as_value(cell) for name in quasi for cell in release.column(name).unique().to_pylist())


def _centres(certificate: Certificate, name: str, release: pa.Table, original: pa.Table) -> Finding:
    """What the original says of centres: means of numbers add up to what the numbers do."""
    check = f"centres of {name}"
    if certificate.columns[name].kind != "numeric":
        return Finding(check, "those of their classes", "a centre does not show whose values it replaces", None)
    try:
        ours, theirs = (np.array(table.column(name).to_pylist(), np.float64) for table in (release, original))
    except ValueError:
        return Finding(check, "means of numbers", "something else", False)
    size = float(np.abs(theirs).sum())
    same = math.isclose(float(ours.sum()), float(theirs.sum()), rel_tol=0, abs_tol=1e-9 * size)
    return Finding(check, "add up to the original's numbers", "they do" if same else "they do not", same)
