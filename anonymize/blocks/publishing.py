"""Makes the folder of a release whose rows lie in blocks: the bytes are those that the same rows in memory give."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from anonymize import csv_lines
from anonymize.blocks.counted_rows import CountedRows
from anonymize.blocks.release import BlockRelease
from anonymize.cells import SUPPRESSED
from anonymize.certificate import Certificate, CertifiedColumn, Hashes, sha256_of
from anonymize.certifying import Sources, sealed, statement_of
from anonymize.claims import claims_of
from anonymize.evidence import disclosable, labels_of_cells, scales_of_cells
from anonymize.release import plain
from anonymize.utility.summary import lifted, of_sizes
from anonymize.verification.losses import loss_of_cells
from anonymize.verification.rows import as_text
from anonymize.verifier import CERTIFICATE, LABELS, MOMENTS, RELEASE_CSV, RELEASE_PARQUET
from link.errors import ResourceError

GROUP_ROWS: Final = 1 << 20  # of a row group, as Arrow has them where a table is written at once
_PIECE_ROWS: Final = 1 << 16

Shown = dict[str, list[str]]


def publish_blocks(
    folder: Path, release: BlockRelease, *, in_order: bool, sources: Sources, scratch: Path
) -> Certificate:
    """Writes a release with its certificate.

    Args:
        folder: Made if it is not there; files of these names in it are replaced.
        release: What is published.
        in_order: Whether rows are sorted by what they show; else they stay in the input's order.
        sources: What is hashed besides the release.
        scratch: A folder for what does not fit memory.

    Returns:
        The certificate, as it was written.

    Raises:
        InputDataError: A source cannot be read, or has changed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in (MOMENTS, LABELS):
        (folder / name).unlink(missing_ok=True)  # an earlier release's
    shown = write_rows(folder, release, in_order=in_order, scratch=scratch)
    labels = labels_of_cells(shown, release.problem.table, release.found.node, release.problem.hierarchies)
    if labels is not None:
        labels.write(folder / LABELS)
    hashes = Hashes(
        release={name: sha256_of(folder / name) for name in (RELEASE_CSV, RELEASE_PARQUET)},
        labels=None if labels is None else sha256_of(folder / LABELS),
        input=None if sources.input is None else sha256_of(sources.input),
        hierarchies={name: sha256_of(path) for name, path in sources.hierarchies.items()},
        configuration=None if sources.configuration is None else sha256_of(sources.configuration),
    )
    certificate = _certificate(release, shown, hashes, sources)
    certificate.write(folder / CERTIFICATE)
    return certificate


def _certificate(release: BlockRelease, shown: Shown, hashes: Hashes, sources: Sources) -> Certificate:
    problem, found = release.problem, release.found
    table = problem.table
    claims = claims_of(problem.requirements, table)
    counts: dict[str, dict[str, int] | None] = {
        column.name: dict(zip(column.texts, column.counts.tolist(), strict=True)) for column in table.sensitive
    }
    if release.suppressed and release.suppression != "keep":
        counts = disclosable(counts, problem.requirements, table, release.suppressed_values)
    texts = {name: _texts(release, name) for name in release.cells}
    metrics = {"gcp": release.mean_loss}
    if found.node is not None:
        stars = {name: dict(cells).get(SUPPRESSED, 0) for name, cells in texts.items()}
        metrics["prec"] = lifted(found.node, problem.hierarchies, table.n_rows, release.published, stars)
    metrics |= of_sizes(release.counted_sizes, release.suppressed, claims.k)
    scales = scales_of_cells(shown, table, found.node, problem.hierarchies)
    recomputed = loss_of_cells(texts, scales, table.n_rows, release.published)
    same = recomputed is not None and np.isclose(recomputed, release.mean_loss, rtol=1e-9, atol=1e-12)
    return sealed(
        problem.hierarchies,
        found.node,
        algorithm=found.algorithm,
        model=claims,
        columns={
            name: CertifiedColumn.model_validate({"role": table.roles.of(name), "kind": problem.rows.kinds[name]})
            for name in table.data.column_names
        },
        rows=table.n_rows,
        published=release.published,
        suppressed=release.suppressed,
        suppression=release.suppression,
        classes=release.n_classes,
        statement=statement_of(release.n_classes, claims),
        statistics=dict(found.statistics),
        groups=None,
        parameters=dict(sources.parameters),
        hashes=hashes,
        sensitive_counts=counts,
        scales=scales if same else None,
        metrics=metrics,
        replacement=None,
    )


def _texts(release: BlockRelease, name: str) -> list[tuple[str, int]]:
    """The published cells of a quasi-identifier as text, and the rows of each."""
    texts = as_text(pa.chunked_array([release.cells[name].values])).to_pylist()
    return [(text, rows) for text, rows in zip(texts, release.rows_of(name).tolist(), strict=True) if rows]


def write_rows(folder: Path, release: BlockRelease, *, in_order: bool, scratch: Path) -> Shown:
    """Writes `release.csv` and `release.parquet`.

    Args:
        folder: Exists.
        release: What is published.
        in_order: Whether rows are sorted by what they show.
        scratch: A folder for what does not fit memory.

    Returns:
        By quasi-identifier its distinct cells as text, in the order of their first rows.

    Raises:
        ResourceError: The disk is full.
    """
    shown: dict[str, dict[str, None]] = {name: {} for name in release.cells}
    schema = _schema(release)
    rows = _sorted(release, scratch) if in_order else ((plain(block), None) for block in release.rows())
    try:
        with (
            (folder / RELEASE_CSV).open("wb") as file,
            pq.ParquetWriter(folder / RELEASE_PARQUET, schema, compression="zstd") as parquet,
        ):
            file.write(csv_lines.header(schema.names).encode())
            groups = _RowGroups(parquet, schema)
            for table, counts in rows:
                for name, texts in shown.items():
                    texts |= dict.fromkeys(as_text(table.column(name).unique()).to_pylist())
                for piece, repeats in _pieces(table, counts):
                    line = csv_lines.lines(piece)
                    file.write(_bytes(line if repeats is None else line.take(repeats)))
                    groups.add(piece if repeats is None else piece.take(repeats))
            groups.end()
    except OSError as error:
        raise ResourceError(f"The release cannot be written: {error.strerror or error}.") from error
    return {name: list(texts) for name, texts in shown.items()}


def _sorted(
    release: BlockRelease, scratch: Path
) -> Iterator[tuple[pa.Table, np.ndarray[tuple[int], np.dtype[np.int64]]]]:
    counted = CountedRows(scratch)
    for block in release.rows():
        counted.add(block)
    return counted.sorted()


def _schema(release: BlockRelease) -> pa.Schema:
    """Of the published rows."""
    given = release.problem.table.data.schema
    types = [
        release.cells[name].values.type if name in release.cells else given.field(name).type
        for name in release.column_names
    ]
    return plain(pa.table([pa.array([], each) for each in types], release.column_names)).schema


def _pieces(
    table: pa.Table, counts: np.ndarray[tuple[int], np.dtype[np.int64]] | None
) -> Iterator[tuple[pa.Table, pa.Array | None]]:
    """Few rows at a time, and which of them are written in turn, of rows that stand for several."""
    if counts is None:
        for start in range(0, table.num_rows, _PIECE_ROWS):
            yield table.slice(start, _PIECE_ROWS), None
        return
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    for start in range(0, total, _PIECE_ROWS):
        stop = min(start + _PIECE_ROWS, total)
        first = int(np.searchsorted(ends, start, side="right"))
        last = int(np.searchsorted(ends, stop, side="left")) + 1
        bounds = np.clip(np.concatenate([[start], ends[first:last]]), start, stop)
        yield table.slice(first, last - first), pa.array(np.repeat(np.arange(last - first), np.diff(bounds)))


def _bytes(lines: pa.Array) -> memoryview:
    """All lines, one after the other."""
    _, offsets, data = lines.buffers()
    bounds = memoryview(offsets).cast("i")
    return memoryview(data)[bounds[lines.offset] : bounds[lines.offset + len(lines)]]


class _RowGroups:
    """Row groups of one size, each in one piece, since pages end where chunks do."""

    def __init__(self, writer: pq.ParquetWriter, schema: pa.Schema) -> None:
        self._writer, self._schema = writer, schema
        self._held: list[pa.Table] = []
        self._rows = 0
        self._written = False

    def add(self, rows: pa.Table) -> None:
        """Takes at most a row group of rows."""
        self._held.append(rows)
        self._rows += rows.num_rows
        if self._rows >= GROUP_ROWS:
            self._write(GROUP_ROWS)

    def end(self) -> None:
        """Writes what is left; a file has one row group at least."""
        if self._rows or not self._written:
            self._write(self._rows)

    def _write(self, rows: int) -> None:
        held = pa.concat_tables(self._held) if self._held else self._schema.empty_table()
        self._writer.write_table(held.slice(0, rows).combine_chunks())
        self._held = [held.slice(rows)] if held.num_rows > rows else []
        self._rows, self._written = held.num_rows - rows, True
