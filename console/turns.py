"""Files of a console that its own process and commands change, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from link.errors import ResourceError
from link.files import locks
from link.files.private_file import make_private


@contextmanager
def taking_turns(path: Path) -> Iterator[None]:
    """Waits until nobody else changes a file, and keeps others from it as long as the context lasts.

    Args:
        path: The file. Its lock lies beside it.

    Raises:
        ResourceError: The file or its lock cannot be written.
    """
    guard = path.with_name(f"{path.name}.lock")
    try:
        make_private(guard)
        with guard.open("rb+") as held:
            locks.lock(held.fileno(), wait=True)
            yield
    except OSError as error:
        raise ResourceError(f"{path} cannot be written ({error.strerror}); see to its folder") from None
