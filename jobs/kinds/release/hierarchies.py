"""The hierarchies of a job file, read in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anonymize.hierarchies import builders
from anonymize.hierarchies.files import from_csv, from_json, rows_of
from anonymize.hierarchies.hierarchy import Hierarchy
from jobs.anonymization.hierarchy_spec import BinsEntry, FileEntry, IntervalsEntry
from jobs.spec.toml import validate
from jobs.spec.values import plain_number
from link.errors import ComineError, ConfigurationError


def with_hierarchies(contents: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The contents of a job file, with its hierarchies read in: all parties see them, and the digest covers them.

    Args:
        contents: Of the file, as TOML has them.
        folder: Where it lies.

    Raises:
        ConfigurationError: A hierarchy cannot be read.
    """
    section = contents.get("anonymize")
    if not isinstance(section, dict):
        return dict(contents)
    given = section.get("hierarchies")
    if not isinstance(given, dict) or not any(isinstance(entry, str | dict) for entry in given.values()):
        return dict(contents)
    found = {
        name: _read(name, entry, folder) if isinstance(entry, str | dict) else entry for name, entry in given.items()
    }
    return {**contents, "anonymize": {**section, "hierarchies": found}}


def _read(name: str, entry: Any, folder: Path) -> list[list[str]]:
    """A hierarchy as rows, from a file, from intervals of whole numbers or from bins."""
    return [list(row) for row in rows_of(_hierarchy(name, entry, folder))]


def _hierarchy(name: str, entry: Any, folder: Path) -> Hierarchy:
    where = f"[anonymize.hierarchies] {name}"
    builder = "file" if isinstance(entry, str) or "file" in entry else entry.get("builder")
    try:
        if builder == "file":
            file = validate(FileEntry, {"file": entry} if isinstance(entry, str) else entry, where)
            path = folder / file.file
            if path.suffix == ".json":
                return from_json(path, name=name, add_top=file.add_top)
            return from_csv(path, file.separator or ",", name=name, add_top=file.add_top)
        if builder == "bins":
            binned = validate(BinsEntry, entry, where)
            return builders.bins(binned.bounds(), binned.groups, name=name)
        if builder == "intervals":
            built = validate(IntervalsEntry, entry, where)
            if built.range is not None:
                low, high = built.range
                widths = list(map(plain_number, built.widths))
                return builders.intervals(range(low, high + 1), widths, plain_number(built.origin), name=name)
    except ComineError as error:
        raise ConfigurationError(f"{where}: {error.message.removeprefix(f'{where}: ')}") from None
    raise ConfigurationError(
        f"{where}: give the path of a CSV or JSON file, intervals with a range, or bins; other builders need the data, "
        "which nobody has in one place"
    )
