"""The folder in which a node keeps its state."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from link.errors import ResourceError
from party.state.database import KEEP


class StateFolder:
    """The state folder of a node that starts, made where there is none.

    Raises:
        ResourceError: It cannot be written.

    Attributes:
        path: Where it is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, mode=0o700)
            self._is_new = True
        except OSError:
            self._is_new = False
        writable(path)  # which says what is wrong

    def withdraw(self) -> None:
        """Leaves nothing of a node that has not begun to serve: a folder that it made itself goes again."""
        if self._is_new:
            shutil.rmtree(self.path, ignore_errors=True)


def writable(folder: Path) -> Path:
    """A folder in which this process may write, made where there is none.

    Raises:
        ResourceError: It cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        raise ResourceError(
            f"the state folder {folder} cannot be written ({error.strerror}); see to its disk and owner, and {KEEP}"
        ) from None
    return folder
