"""Files of this machine: a path, a pattern such as `sales/*.csv`, or a folder of Parquet files."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from link.errors import InputDataError
from link.files.printable import why_not_read
from link.files.stamps import Stamp
from mining.data.schemes.scheme import StoredFile, StoreScheme
from mining.data.source_options import SourceOptions


class LocalFiles(StoreScheme):
    """What begins with no prefix."""

    prefixes = ()
    form = "a path"

    def files(self, source: str, _options: SourceOptions) -> list[StoredFile]:
        """See `StoreScheme.files`; a folder stands for all Parquet files in it, at any depth."""
        if os.path.exists(source) and not os.path.isdir(source):
            return [_stored(source)]
        pattern = os.path.join(glob.escape(source), "**", "*.parquet") if os.path.isdir(source) else source
        return [_stored(each) for each in sorted(glob.glob(pattern, recursive=True)) if not os.path.isdir(each)]

    @contextmanager
    def opened(self, file: StoredFile, _source: str, _options: SourceOptions) -> Iterator[BinaryIO]:
        """See `StoreScheme.opened`."""
        try:
            with open(file.place, "rb") as stream:
                yield stream
        except OSError as error:
            raise InputDataError(f"{file.name} cannot be read: {why_not_read(error)}.") from error


def is_pattern(source: str) -> bool:
    """Whether a path stands for several files; a file that is there stands for itself."""
    return glob.has_magic(source) and not os.path.lexists(source)


def _stored(path: str) -> StoredFile:
    try:
        stamp = Stamp.of(Path(path))
    except (OSError, ValueError) as error:
        raise InputDataError(f"{path} cannot be read: {why_not_read(error)}.") from None
    return StoredFile(path, path, stamp.size, (path, *stamp), stamp.is_fresh())
