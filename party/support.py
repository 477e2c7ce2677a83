"""What helps others find a fault of a node; see `jobs.support`."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from jobs.support import begun, counted, metrics, size
from link.errors import ComineError
from party.config import AUDIT_LOG, PartyConfig
from party.node.health import check
from party.policy.consent import spec_of
from party.state.node_database import FILE
from party.state.store import Record, Store
from protos.v1.control_pb2 import JobState

_FILES: Final = (FILE, AUDIT_LOG, "frequency.db", "shuffler.db", "queries.db", "releases.db", "results", "released")


def support_bundle(path: Path) -> dict[str, Any]:
    """What may be shown to others of the node of a `party.toml`, as `comine.support/1`.

    Raises:
        ConfigurationError: The file, or the node's database, cannot be read.
    """
    config = PartyConfig.load(path)
    state = config.party.state_dir
    return {
        **begun("node", config, state),
        "ready": _is_ready(path),
        "metrics": None if config.metrics is None else metrics(config.metrics),
        "jobs": _jobs(state / FILE) if (state / FILE).exists() else [],
        "audit_events": _audit_events(state / AUDIT_LOG),
        "state_bytes": {name: size(state / name) for name in _FILES},
    }


def _is_ready(path: Path) -> bool:
    try:
        asyncio.run(check(path))
    except ComineError:
        return False
    return True


def _jobs(database: Path) -> list[dict[str, Any]]:
    store = Store.open_beside(database, database)
    try:
        return counted(map(_end, store.all()))
    finally:
        store.close()


def _end(record: Record) -> tuple[str, str, str]:
    """Task, state, and the code of what ended it early."""
    try:
        task = spec_of(record).job.task
    except ComineError:
        task = "unreadable"
    return task, JobState.Name(record.state).lower(), record.error_code


def _audit_events(log: Path) -> Mapping[str, int]:
    events: Counter[str] = Counter()
    if log.exists():
        with log.open(encoding="utf-8", errors="replace") as lines:
            for each in lines:
                try:
                    events[str(json.loads(each)["event"])] += 1
                except (ValueError, KeyError, TypeError):
                    events["unreadable"] += 1
    return dict(sorted(events.items()))
