"""File descriptors: as many connections as the system allows, before those of strangers leave none for peers."""

from __future__ import annotations

import resource
from typing import Final

_OF_MACOS: Final = 10_240  # OPEN_MAX of its `sys/syslimits.h`; the hard limit may be none there, which is refused


def take_all_descriptors() -> None:
    """Raises this process's soft limit, often 1,024, to its hard one, or as far as macOS lets it."""
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except (OSError, ValueError):
        if 0 <= soft < _OF_MACOS:
            resource.setrlimit(resource.RLIMIT_NOFILE, (_OF_MACOS, most))
