"""The folders of blocks of one dataset: encoded once, kept while the source stays the same, removed when it changes."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from link.errors import InputDataError
from mining.partitioned.cores import Cores
from mining.partitioned.encoding.encode import origin_of
from mining.partitioned.encoding.writing import private_folder, unwritten
from mining.partitioned.rows import PartitionedRows
from mining.partitioned.sources import AnyEncoding, AnySource, Stored, by_processes, encoding_of, stored_in
from mining.partitioned.tables.rows import PartitionedTable

REMOVER: Final = "unused-blocks"  # the name of threads


class BlockFolders:
    """Gives the rows of a dataset in blocks, and removes folders that nobody needs any more.

    Args:
        folder: For them, and for nothing else; made when it is needed. No other process uses it.
        source: Where the rows are.
        withheld: Patterns of items that never get into a block.
        cores: For the processes that encode and count.
    """

    def __init__(self, folder: Path, source: AnySource, withheld: Sequence[str], cores: Cores) -> None:
        self._folder, self._source, self._withheld = folder, source, tuple(withheld)
        self._cores = cores
        self._lock = threading.Lock()
        self._users: Counter[Path] = Counter()  # jobs, and an encoding
        self._current: Stored | None = None
        self._remove_unused()

    def rows(self) -> PartitionedRows | PartitionedTable | None:
        """The rows, where they are encoded as the source is now; to be closed by whoever gets them.

        Raises:
            InputDataError: The source is missing.
        """
        current = None if self._source.format == "sql" else self._current
        if current is None or current.origin != origin_of(self._source, self._withheld) or not current.is_whole():
            self._current = blocks_of(self._source, self._withheld, self._folder)
        return None if self._current is None else self._lent(self._current)

    def encoding(self) -> AnyEncoding:
        """What encodes the source as it is now; `encode` runs it, and its `close` ends that at once.

        Raises:
            ResourceError: The disk refuses a folder.
        """
        private_folder(self._folder.parent)
        private_folder(self._folder)
        try:
            folder = Path(tempfile.mkdtemp(prefix="", dir=self._folder))
        except OSError as error:
            raise unwritten(self._folder, error) from None
        return encoding_of(self._source, self._withheld, folder, self._cores)

    def encode(self, encoding: AnyEncoding) -> PartitionedRows | PartitionedTable:
        """Encodes the source; the rows are to be closed by whoever gets them.

        Raises:
            InputDataError: The source cannot be read, is not what its format says, or changed meanwhile.
            ResourceError: The disk refuses a file, workers died, or the encoding was closed.
        """
        self._take(encoding.folder)
        try:
            self._current = encoding.run()
            return self._lent(self._current)
        finally:
            self._give_back(encoding.folder)

    def _lent(self, stored: Stored) -> PartitionedRows | PartitionedTable:
        self._take(stored.folder)
        return by_processes(stored, self._cores, lambda: self._give_back(stored.folder))

    def _take(self, folder: Path) -> None:
        with self._lock:
            self._users[folder] += 1

    def _give_back(self, folder: Path) -> None:
        with self._lock:
            self._users[folder] -= 1
        threading.Thread(target=self._remove_unused, name=REMOVER).start()  # the event loop does not wait for the disk

    def _remove_unused(self) -> None:
        """Removes what is neither current nor in use: blocks of what a source was, and what was never finished."""
        with self._lock:
            for folder in _folders(self._folder):
                if not self._users[folder] and self._is_useless(folder):
                    shutil.rmtree(folder, ignore_errors=True)

    def _is_useless(self, folder: Path) -> bool:
        if self._source.format == "sql":
            return True
        if self._current is not None:
            return folder != self._current.folder
        return stored_in(self._source, folder) is None


def remove_stale(blocks: Path, sources: Mapping[str, tuple[AnySource, Sequence[str]]]) -> int:
    """Removes, before a node uses any, all blocks but those of what its datasets are now; returns how many folders.

    Args:
        blocks: The folder with one for each dataset.
        sources: By dataset that is counted in blocks, where its rows are, and patterns of items that are withheld.
    """
    removed = 0
    for folder in _folders(blocks):
        source, withheld = sources.get(folder.name, (None, ()))
        try:
            current = None if source is None else blocks_of(source, withheld, folder)
        except InputDataError:  # the source is gone
            current = None
        kept = None if current is None else current.folder
        for each in _folders(folder):  # one by one: the dataset's own may lie on another disk, behind a link
            if each != kept:
                shutil.rmtree(each, ignore_errors=True)
                removed += not each.exists()
        if kept is None:
            with suppress(OSError):
                folder.rmdir()
    return removed


def blocks_of(source: AnySource, withheld: Sequence[str], folder: Path) -> Stored | None:
    """The blocks of a source as it is now, of those in a folder.

    Raises:
        InputDataError: The source is missing.
    """
    if source.format == "sql":  # whose rows may be others every time
        return None
    origin = origin_of(source, withheld)
    found = (stored_in(source, each) for each in _folders(folder))
    return next((stored for stored in found if stored is not None and stored.origin == origin), None)


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:  # there is none, or it is not for whoever asks
        return []
