"""Where a result may be written: a new or empty folder, or one that holds an earlier result and nothing else."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final

from link.errors import ConfigurationError, ResourceError

ESTIMATES_FILE: Final = "estimates.json"  # the very bytes that the parties signed, of a job that gives estimates

RELEASE_PARQUET: Final = "release.parquet"
MANIFEST: Final = "manifest.json"  # of a folder that comine wrote; see `jobs.results.manifest`
JOINT_RELEASE: Final = "release.json"  # the very bytes that the parties signed, of a job that anonymises

FILES: Final = frozenset(
    {
        *("release.csv", RELEASE_PARQUET, "certificate.json", JOINT_RELEASE),
        *("itemsets.csv", "itemsets.parquet", "rules.csv", "rules.parquet", "model.json", ESTIMATES_FILE),
        *("result.json", "report.html", MANIFEST),
    }
)

PARTIES: Final = "parties"  # of a simulated alignment: a folder for each party with what its node would keep
ALIGNMENT: Final = "alignment.parquet"


def check_result_folder(out: Path, holds_earlier: Callable[[Path], bool] | None = None) -> None:
    """Refuses a folder that could not become a result folder, before any work is done for it.

    Args:
        out: The folder.
        holds_earlier: Whether a folder holds an earlier result, and so may be replaced; by default one of a job.

    Raises:
        ConfigurationError: It is a file, or holds something other than an earlier result.
        ResourceError: It cannot be created.
    """
    target = out.resolve()
    writing(target, lambda: check_destination(target, out, holds_earlier))
    writing(target, lambda: _probe(target))


def check_destination(target: Path, named: Path, holds_earlier: Callable[[Path], bool] | None = None) -> None:
    """Refuses a path at which something stands that is not an earlier result; `named` is what the user calls it.

    Raises:
        ConfigurationError: It is a file, or holds something other than an earlier result.
    """
    if not target.exists():
        return
    if not target.is_dir():
        raise ConfigurationError(f"{named} is a file; name a folder for the result")
    if any(target.iterdir()) and not (holds_earlier or _holds_job_result)(target):
        raise ConfigurationError(
            f"{named} holds files that are not an earlier result of comine; name a new or empty folder"
        )


def _holds_job_result(folder: Path) -> bool:
    present = {path.name for path in folder.iterdir()}
    return "result.json" in present and present <= FILES | {PARTIES} and _of_parties(folder / PARTIES)


def _of_parties(folder: Path) -> bool:
    """Whether a folder holds nothing but alignments of parties, or is not there."""
    return all(path.is_dir() or path.name == ALIGNMENT for path in folder.rglob("*")) if folder.is_dir() else True


def beside(target: Path, purpose: str) -> Path:
    """A fresh hidden name in the same folder, so that renaming one to the other is a single step."""
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.{purpose}")


def writing(target: Path, action: Callable[[], object]) -> None:
    """Runs an action on the file system.

    Raises:
        ResourceError: The system refused it.
    """
    try:
        action()
    except OSError as error:
        reason = str(error) if error.errno is None else os.strerror(error.errno)  # pyarrow's own words are longer
        raise ResourceError(
            f"the result folder {target} cannot be written: {reason}; nothing was left behind"
        ) from None


def _probe(target: Path) -> None:
    """Finds out whether a folder can be made beside the target."""
    existing = next(parent for parent in target.parents if parent.exists())
    draft = beside(existing / target.name, "probe")
    draft.mkdir()
    draft.rmdir()
