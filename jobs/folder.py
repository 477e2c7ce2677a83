"""The result folder: itemsets, rules, `result.json` and `report.html`, written whole or not at all."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow.parquet as pq

from jobs.document import document
from jobs.report import report
from jobs.tables import csv_chunks
from link.errors import ConfigurationError, ResourceError

if TYPE_CHECKING:
    from jobs.findings import Result

FILES: Final = frozenset(
    {"itemsets.csv", "itemsets.parquet", "rules.csv", "rules.parquet", "result.json", "report.html"}
)


def check_result_folder(out: Path) -> None:
    """Refuses a folder that could not become a result folder, before any work is done for it.

    Raises:
        ConfigurationError: It is a file, or holds something other than an earlier result.
        ResourceError: It cannot be created.
    """
    target = out.resolve()
    _writing(target, lambda: _check_target(target, out))
    _writing(target, lambda: _probe(target))


def write_result_folder(out: Path, result: Result) -> None:
    """Writes a result folder; an earlier one in its place is replaced in one step.

    Args:
        out: The folder; it and its parents are created.
        result: What to write.

    Raises:
        ConfigurationError: `out` is a file, or holds something other than an earlier result.
        ResourceError: The disk is full, or the folder cannot be written.
    """
    target = out.resolve()
    draft = _beside(target, "new")
    try:
        _writing(target, lambda: _check_target(target, out))
        _writing(target, lambda: _fill(draft, result))
        _writing(target, lambda: _replace(draft, target))
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _fill(draft: Path, result: Result) -> None:
    draft.mkdir(parents=True)
    for name, table in (("itemsets", result.itemsets_table), ("rules", result.rules_table)):
        if table is not None:
            with (draft / f"{name}.csv").open("wb") as file:
                file.writelines(csv_chunks(table))
            pq.write_table(table, draft / f"{name}.parquet", compression="zstd")
    contents = json.dumps(document(result), indent=2, ensure_ascii=False)
    (draft / "result.json").write_text(contents + "\n", encoding="utf-8")
    (draft / "report.html").write_text(report(result), encoding="utf-8")


def _check_target(target: Path, named: Path) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise ConfigurationError(f"{named} is a file; name a folder for the result")
    present = {path.name for path in target.iterdir()}
    if present and not ("result.json" in present and present <= FILES):
        raise ConfigurationError(
            f"{named} holds files that are not an earlier result of comine; name a new or empty folder"
        )


def _probe(target: Path) -> None:
    """Finds out whether a folder can be made beside the target."""
    existing = next(parent for parent in target.parents if parent.exists())
    draft = _beside(existing / target.name, "probe")
    draft.mkdir()
    draft.rmdir()


def _replace(draft: Path, target: Path) -> None:
    if not (target.exists() and any(target.iterdir())):
        draft.rename(target)  # takes the place of an empty folder
        return
    earlier = _beside(target, "old")
    target.rename(earlier)
    try:
        draft.rename(target)
    except OSError:
        earlier.rename(target)
        raise
    shutil.rmtree(earlier, ignore_errors=True)


def _beside(target: Path, purpose: str) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.{purpose}")


def _writing(target: Path, action: Callable[[], Any]) -> None:
    try:
        action()
    except OSError as error:
        reason = error.strerror or str(error)
        raise ResourceError(
            f"the result folder {target} cannot be written: {reason}; nothing was left behind"
        ) from None
