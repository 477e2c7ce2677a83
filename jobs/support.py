"""What helps others find a fault of a node, a relay or a coordinator: versions, settings, counts and sizes.

All of it by allow-lists: no name of an organisation, a dataset, a column or a file, no query, address or item, no
sentence of an error, and nothing of rows is in it; of settings numbers, choices and whether something is set.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterable
from importlib.metadata import requires, version
from pathlib import Path
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families
from pydantic import BaseModel

from jobs.metrics_section import MetricsSection
from link.version import WINDOW, software_version

if sys.platform != "win32":
    import resource

_SCHEMA: Final = "comine.support/1"
_CHOICES: Final = frozenset({"kind", "format", "engine", "approve", "keep_jobs", "max_jobs_period", "period"})
_OF_DATA: Final = frozenset(
    {"publish", "hiding", "queries", "anonymization", "columns", "pins"}
)  # names and numbers of data
_PACKAGE: Final = re.compile(r"[\w.-]+")  # begins a requirement
_ANSWER_S: Final = 5.0


def begun(program: str, settings: BaseModel, state: Path) -> dict[str, Any]:
    """What every bundle begins with, as `comine.support/1`.

    Args:
        program: Whose it is: `node`, `relay` or `coordinator`.
        settings: Of its file.
        state: A folder on the disk that counts.
    """
    return {
        "schema": _SCHEMA,
        "program": program,
        "software": _software(),
        "machine": _machine(state),
        "settings": _shape(settings.model_dump(mode="json", exclude_unset=True)),
    }


def counted(jobs: Iterable[tuple[str, str, str]]) -> list[dict[str, Any]]:
    """How many jobs have ended alike.

    Args:
        jobs: Of each its task, its state, and the code of what ended it early.
    """
    return [
        {"task": task, "state": state, "code": code, "number": number}
        for (task, state, code), number in sorted(Counter(jobs).items())
    ]


def _software() -> dict[str, Any]:
    """Versions of comine, of what it needs, and of the system."""
    needed = [text for text in requires("comine") or () if "extra ==" not in text]
    return {
        "comine": software_version(),
        "wire": str(WINDOW),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "packages": {name: version(name) for name in sorted(_PACKAGE.findall(text)[0] for text in needed)},
    }


def _machine(state: Path) -> dict[str, Any]:
    """The machine's size."""
    found = {
        "processors": os.cpu_count(),
        "state_free_bytes": shutil.disk_usage(state).free if state.exists() else None,
    }
    if sys.platform != "win32":
        found["memory_bytes"] = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        found["descriptors"] = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return found


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


def metrics(settings: MetricsSection) -> dict[str, float] | None:
    """Those that name no peer; None where nobody answers."""
    try:
        with urllib.request.urlopen(f"http://{settings.listen}/metrics", timeout=_ANSWER_S) as answer:
            families = list(text_string_to_metric_families(answer.read().decode()))
    except (urllib.error.URLError, OSError, ValueError):
        return None
    samples = [each for family in families for each in family.samples if "peer" not in each.labels]
    return {f"{each.name}{json.dumps(each.labels)}": each.value for each in samples if "le" not in each.labels}


def size(path: Path) -> int | None:
    """Bytes of a file, or of all files of a folder; None where there is none."""
    if path.is_dir():
        return sum(_size(Path(folder, name)) or 0 for folder, _, names in os.walk(path) for name in names)
    return _size(path)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # a node that runs removes files meanwhile
        return None
