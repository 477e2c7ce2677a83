"""The folders of a collection: one of its estimates, and one that exports all that its node keeps."""

from __future__ import annotations

import csv
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO, Final

from jobs.collections.page import report
from jobs.collections.reading import Reading, as_data
from jobs.documents.written_json import write_json
from jobs.results.destination import MANIFEST
from jobs.results.folder import write_whole
from jobs.results.manifest import seal
from link.errors import LimitExceeded, MalformedMessage
from link.files import spreadsheet
from link.pki.identity import Identity

ESTIMATES: Final = "estimates.csv"

MOST_FILES: Final = 10_000
_OURS: Final = frozenset({ESTIMATES, "result.json", "report.html", MANIFEST})
_DESCRIPTION: Final = "collection.json"  # which the node writes into every export


def write_reading(out: Path, reading: Reading, signer: Identity) -> None:
    """Writes `estimates.csv`, `result.json`, `report.html` and their manifest, which `signer` signs.

    An earlier folder of these is replaced in one step.

    Raises:
        ConfigurationError: `out` is a file, or holds something else.
        ResourceError: The disk is full, or the folder cannot be written.
    """
    write_whole(out, lambda draft: _fill(draft, reading, signer), holds_reading)


def holds_reading(folder: Path) -> bool:
    """Whether a folder holds earlier estimates and nothing else."""
    present = {path.name for path in folder.iterdir()}
    return "result.json" in present and present <= _OURS


def holds_export(folder: Path) -> bool:
    """Whether a folder holds an earlier export and nothing else."""
    present = {path.name for path in folder.iterdir()}
    return _DESCRIPTION in present and all(
        name in (_DESCRIPTION, "report.html", MANIFEST) or name.endswith((".csv", ".state")) for name in present
    )


def _fill(draft: Path, reading: Reading, signer: Identity) -> None:
    draft.mkdir(parents=True)
    write_estimates(draft / ESTIMATES, reading)
    write_json(draft / "result.json", as_data(reading))
    (draft / "report.html").write_text(report(reading), encoding="utf-8")
    seal(draft, signer)


def write_estimates(path: Path, reading: Reading) -> None:
    """Writes the rows as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        write_rows(file, reading)


def write_rows(file: IO[str], reading: Reading) -> None:
    """Writes a head and one line a value as CSV."""
    processed = [] if reading.processed is None else ["post_processed"]
    spreadsheet.write_rows(file, [["value", "estimate", "variance", "low", "high", *processed]])
    if reading.processed is None:
        spreadsheet.write_rows(file, reading.rows)
    else:
        rows = ((*row, count) for row, count in zip(reading.rows, reading.processed, strict=True))
        spreadsheet.write_rows(file, rows)


async def save_export(draft: Path, pieces: AsyncIterator[tuple[str, bytes]]) -> list[str]:
    """Writes the files of an export as they come.

    Args:
        draft: The folder, which is empty.
        pieces: Plain names and what comes next in these files.

    Returns:
        The names of the files.

    Raises:
        LimitExceeded: The node sends more files than an export can have.
        MalformedMessage: It sends CSV that is none.
    """
    names: dict[str, None] = {}
    async for name, data in pieces:
        names[name] = None
        if len(names) > MOST_FILES:
            raise LimitExceeded(f"the node sent more than {MOST_FILES:,} files of one export")
        with (draft / name).open("ab") as file:
            file.write(data)
    for name in names:
        if name.endswith(".csv"):
            _rewrite(draft / name)
    return list(names)


def _rewrite(path: Path) -> None:
    """Writes CSV of a node again, since a spreadsheet must not run what a node that is no friend wrote."""
    sent = path.with_name(f"{path.name}.sent")
    path.rename(sent)
    try:
        with sent.open(encoding="utf-8", newline="") as read, path.open("w", encoding="utf-8", newline="") as file:
            spreadsheet.write_rows(
                file, (list(map(spreadsheet.as_named, row)) for row in csv.reader(read, strict=True))
            )
    except (csv.Error, UnicodeDecodeError):
        raise MalformedMessage(f"the node sent a file {path.name} that is no CSV in UTF-8") from None
    finally:
        sent.unlink()
