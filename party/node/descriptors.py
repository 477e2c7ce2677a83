"""File descriptors: as many connections as the system allows, before those of strangers leave none for peers."""

from __future__ import annotations

import resource


def take_all_descriptors() -> None:
    """Raises this process's soft limit, often 1,024, to its hard one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
