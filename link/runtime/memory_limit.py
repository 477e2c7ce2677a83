"""How much memory this process may use: the machine's, or less where a control group or a limit says so."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

resource: Any = None
with suppress(ImportError):  # on a Unix
    resource = import_module("resource")

_GROUPS: Final = Path("/sys/fs/cgroup")
_OWN: Final = Path("/proc/self/cgroup")


def memory_limit(groups: Path = _GROUPS, own: Path = _OWN) -> int:
    """Bytes of memory.

    Args:
        groups: Where Linux shows control groups.
        own: Which of them this process is in.
    """
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *_of_groups(groups, own)]
    return min(limits + _of_process())


def _of_process() -> list[int]:
    """The limits that were set for this process."""
    if resource is None:
        return []
    soft = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return [each for each in soft if each != resource.RLIM_INFINITY]


def _of_groups(groups: Path, own: Path) -> list[int]:
    """The limits of this process's control group and of all around it, of either version."""
    try:
        lines = own.read_text().splitlines()
    except OSError:  # no Linux
        return []
    found: list[int] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            root, name = groups, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = groups / "memory", "memory.limit_in_bytes"
        else:
            continue
        place = root / path.lstrip("/")
        for folder in (place, *place.parents):
            found += _number(folder / name)
            if folder == root:
                break
    return found


def _number(path: Path) -> list[int]:
    try:
        return [int(path.read_text())]
    except (OSError, ValueError):  # there is none, or it is "max"
        return []
