"""What helps others find a fault of a node: versions, settings, counts and sizes, by allow-lists.

No name of an organisation, a dataset, a column or a file, no query, address or item, no sentence of an error, and
nothing of rows is in it: of settings numbers, choices and whether something is set; of jobs how many ended in which
way.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import re
import resource
import shutil
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Mapping
from importlib.metadata import requires, version
from pathlib import Path
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families

from jobs.metrics_section import MetricsSection
from link.errors import ComineError
from link.version import WIRE_VERSION, software_version
from party.config import AUDIT_LOG, PartyConfig
from party.node.health import check
from party.policy.consent import spec_of
from party.state.node_database import FILE
from party.state.store import Store
from protos.v1.control_pb2 import JobState

SCHEMA: Final = "comine.support/1"
_CHOICES: Final = frozenset({"kind", "format", "engine", "approve", "keep_jobs", "max_jobs_period", "period"})
_OF_DATA: Final = frozenset({"publish", "hiding", "queries", "anonymization", "columns"})  # names and numbers of data
_FILES: Final = (FILE, AUDIT_LOG, "frequency.db", "shuffler.db", "queries.db", "releases.db", "results", "released")
_PACKAGE: Final = re.compile(r"[\w.-]+")  # begins a requirement
_ANSWER_S: Final = 5.0


def support_bundle(path: Path) -> dict[str, Any]:
    """What may be shown to others of the node of a `party.toml`, as `comine.support/1`.

    Raises:
        ConfigurationError: The file, or the node's database, cannot be read.
    """
    config = PartyConfig.load(path)
    state = config.party.state_dir
    return {
        "schema": SCHEMA,
        "software": _software(),
        "machine": _machine(state),
        "settings": _shape(config.model_dump(mode="json", exclude_unset=True)),
        "ready": _is_ready(path),
        "metrics": None if config.metrics is None else _metrics(config.metrics),
        "jobs": _jobs(state / FILE) if (state / FILE).exists() else [],
        "audit_events": _audit_events(state / AUDIT_LOG),
        "state_bytes": {name: _size(state / name) for name in _FILES},
    }


def _software() -> dict[str, Any]:
    needed = [text for text in requires("comine") or () if "extra ==" not in text]
    return {
        "comine": software_version(),
        "wire": WIRE_VERSION,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "packages": {name: version(name) for name in sorted(_PACKAGE.findall(text)[0] for text in needed)},
    }


def _machine(state: Path) -> dict[str, Any]:
    return {
        "processors": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "descriptors": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        "state_free_bytes": shutil.disk_usage(state).free if state.exists() else None,
    }


def _shape(value: Any, key: str = "") -> Any:
    """Settings without what could name something: texts, and tables about data, are only "set"."""
    match value:
        case _ if key in _OF_DATA:
            return "set"
        case dict():
            return {name: _shape(each, name) for name, each in value.items()}
        case list() if all(isinstance(each, dict) for each in value):
            return [_shape(each) for each in value]
        case list():
            return f"{len(value)} set"
        case bool() | int() | float() | None:
            return value
        case str() if key in _CHOICES:
            return value
        case _:
            return "set"


def _is_ready(path: Path) -> bool:
    try:
        asyncio.run(check(path))
    except ComineError:
        return False
    return True


def _metrics(settings: MetricsSection) -> dict[str, float] | None:
    """Those that name no peer; None where nobody answers."""
    try:
        with urllib.request.urlopen(f"http://{settings.listen}/metrics", timeout=_ANSWER_S) as answer:
            families = list(text_string_to_metric_families(answer.read().decode()))
    except (urllib.error.URLError, OSError, ValueError):
        return None
    samples = [each for family in families for each in family.samples if "peer" not in each.labels]
    return {f"{each.name}{json.dumps(each.labels)}": each.value for each in samples if "le" not in each.labels}


def _jobs(database: Path) -> list[dict[str, Any]]:
    store = Store.open(database)
    try:
        counted: Counter[tuple[str, str, str]] = Counter()
        for record in store.all():
            try:
                task = spec_of(record).job.task
            except ComineError:
                task = "unreadable"
            counted[task, JobState.Name(record.state).lower(), record.error_code] += 1
    finally:
        store.close()
    return [
        {"task": task, "state": state, "code": code, "number": n} for (task, state, code), n in sorted(counted.items())
    ]


def _audit_events(log: Path) -> Mapping[str, int]:
    counted: Counter[str] = Counter()
    if log.exists():
        with log.open(encoding="utf-8", errors="replace") as lines:
            for each in lines:
                try:
                    counted[str(json.loads(each)["event"])] += 1
                except (ValueError, KeyError, TypeError):
                    counted["unreadable"] += 1
    return dict(sorted(counted.items()))


def _size(path: Path) -> int | None:
    if not path.exists():
        return None
    return sum(each.stat().st_size for each in path.rglob("*")) if path.is_dir() else path.stat().st_size
