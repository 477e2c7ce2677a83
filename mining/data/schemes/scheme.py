"""What a scheme of sources is: a database that answers queries, or a store of files."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, ClassVar, NamedTuple
from urllib.parse import urlsplit

import pyarrow as pa

from link.errors import InputDataError
from mining.data.source_options import SourceOptions


class Scheme(ABC):
    """Where data lie whose source begins with one of `prefixes`.

    Attributes:
        prefixes: Such as `postgres://`; no other scheme has them.
        form: How a source is written, for people.
        has_password: Whether one may log in by a password.
    """

    prefixes: ClassVar[tuple[str, ...]]
    form: ClassVar[str]
    has_password: ClassVar[bool] = False

    def fault(self, source: str) -> str:
        """Why a source cannot be one, as a clause that does not repeat it; empty where it can."""
        try:
            found = urlsplit(source)
        except ValueError:
            return "is no URL"
        if found.password is not None:
            return (
                "holds a password, which anybody reads who sees the file; take it out, and name a file with it by "
                "password_file, or an environment variable by password_env"
            )
        return ""

    def beside(self, source: str, _folder: Path) -> str:
        """The source with a relative path taken from a folder."""
        return source

    def place(self, source: str) -> str:
        """Equal for two sources that read the same, whoever logs in: all but the user and what follows `?` or `#`."""
        found = urlsplit(source)
        return f"{found.scheme.lower()}://{found.netloc.rpartition('@')[2].lower()}{found.path}"


class DatabaseScheme(Scheme):
    """A database: its rows may be others at every query, so they are read for every job."""

    @abstractmethod
    def where(self, source: str) -> str:
        """How sentences begin that are about a query on it; they name no user and no password."""


class ArrowDatabase(DatabaseScheme):
    """A database whose queries give columns of one type each."""

    @abstractmethod
    def query(self, source: str, query: str, options: SourceOptions) -> AbstractContextManager[pa.RecordBatchReader]:
        """What a query returns, opened for reading only; what goes wrong while rows are fetched is translated, too.

        Raises:
            ConfigurationError: What reads it is not installed, or the options are wrong.
            InputDataError: It cannot be opened, or the query is wrong; nothing of the rows is in the sentence.
        """

    def cells(self, _source: str, _query: str, _options: SourceOptions) -> int:
        """About how many cells a query returns, as the database expects without running it; 0 where that is not known.

        Raises:
            ConfigurationError: As of `query`.
            InputDataError: As of `query`.
        """
        return 0


class DatabaseFile(DatabaseScheme):
    """A database that is one file of this machine."""

    def fault(self, _source: str) -> str:
        """Nothing: any text is a path."""
        return ""

    def beside(self, source: str, folder: Path) -> str:
        """With the path taken from the folder."""
        return f"{self.prefixes[0]}{folder / self.path(source)}"

    def place(self, source: str) -> str:
        """The file, however it is named."""
        return self.prefixes[0] + file_place(self.path(source))

    def path(self, source: str) -> Path:
        """Behind the prefix."""
        return Path(source.removeprefix(self.prefixes[0]))

    def existing(self, source: str) -> Path:
        """The file.

        Raises:
            InputDataError: It is not there.
        """
        path = self.path(source)
        if not os.path.isfile(path):  # which no name makes fail
            raise InputDataError(f"there is no database file {path}; check the path in the dataset's source.")
        return path

    def where(self, source: str) -> str:
        """By the path."""
        return f"The query on {self.path(source)}"


def file_place(path: str | Path) -> str:
    """A file by its place on the disk, which links share; where there is none, by its path."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return os.path.realpath(path)
    return f"{found.st_dev}:{found.st_ino}"


class StoredFile(NamedTuple):
    """A file of a store.

    Attributes:
        name: As sentences call it; nothing in it logs in.
        place: As the store opens it.
        size: In bytes; 0 where it is not known.
        marks: What differs where the file differs.
        is_fresh: Whether it may be changed once more and keep its marks.
    """

    name: str
    place: str
    size: int
    marks: tuple[object, ...]
    is_fresh: bool = False


class StoreScheme(Scheme):
    """A store of files elsewhere, which are copied while they are read."""

    @abstractmethod
    def files(self, source: str, options: SourceOptions) -> list[StoredFile]:
        """The files that a source names, in the order of their names.

        Raises:
            ConfigurationError: What reads it is not installed, or the options are wrong.
            InputDataError: It cannot be asked; no password is in the sentence.
        """

    @abstractmethod
    def opened(self, file: StoredFile, source: str, options: SourceOptions) -> AbstractContextManager[BinaryIO]:
        """What is in a file; what goes wrong while it is read is translated, too.

        Raises:
            InputDataError: It cannot be read.
        """


def is_loopback(place: str) -> bool:
    """Whether `HOST:PORT` is this machine."""
    host = place.rpartition(":")[0] if re.search(r":\d+$", place) else place
    return host in ("localhost", "[::1]") or re.fullmatch(r"127(\.\d+){3}", host) is not None
