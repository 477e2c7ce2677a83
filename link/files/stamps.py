"""Whether a file is as it was, by its size and times."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final, NamedTuple

_SECOND_NS: Final = 1_000_000_000
_COARSEST_NS: Final = 2 * _SECOND_NS  # of FAT


class Stamp(NamedTuple):
    """What differs where a file differs.

    Attributes:
        size: In bytes.
        changed_ns: When, in nanoseconds since 1970.
        inode: Of the file.
    """

    size: int
    changed_ns: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """That of a file now.

        Raises:
            OSError: There is none.
            ValueError: The path cannot be one.
        """
        status = os.stat(path)
        return cls(status.st_size, status.st_mtime_ns, status.st_ino)

    def is_fresh(self) -> bool:
        """Whether the file may be changed in its place once more and keep its stamp: to be asked before it is read.

        On disks that count whole seconds, who writes twice within one leaves the same time.
        """
        return not self.changed_ns % _SECOND_NS and abs(time.time_ns() - self.changed_ns) < _COARSEST_NS
