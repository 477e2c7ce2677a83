"""What helps others find a fault of a coordinator; see `jobs.support`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coordinator.jobs.records.store import JobFolder, Store
from jobs.federation import Federation
from jobs.support import begun, counted, size
from link.errors import ComineError


def support_bundle(path: Path) -> dict[str, Any]:
    """What may be shown to others of the coordinator of a `federation.toml`, as `comine.support/1`.

    Raises:
        ConfigurationError: The file, or the folder of its jobs, cannot be read.
    """
    federation = Federation.load(path)
    folders = [] if federation.coordinator is None else Store.of(federation).jobs()
    state = path.absolute().parent if federation.coordinator is None else federation.coordinator.state_dir
    return {
        **begun("coordinator", federation, state),
        "jobs": counted(map(_end, folders)),
        "state_bytes": {"jobs": size(state)},
    }


def _end(folder: JobFolder) -> tuple[str, str, str]:
    """Task, state, and the code of what ended it early."""
    try:
        record = folder.record()
    except ComineError as error:
        return "unreadable", "unreadable", error.code
    problem = record.job.problem
    return record.spec.job.task, record.job.state.value, "" if problem is None else problem.code
