"""What a source needs beside its place and format: a password, an encoding, a sheet."""

from __future__ import annotations

import codecs
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from link.errors import ConfigurationError
from link.files.printable import why_not_read

UNKNOWN_ENCODING: Final = 'encoding is not known; write one such as "latin-1", "windows-1252" or "utf-16"'
TWO_PASSWORDS: Final = "password_env and password_file exclude each other; keep one"


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Options of a source; a password itself is never among them.

    Attributes:
        encoding: Of text; None: UTF-8.
        sheet: Of a workbook; None: the first.
        password_env: The environment variable that holds the password.
        password_file: The file whose first line is the password.

    Raises:
        ConfigurationError: There is no such encoding, or two passwords are named.
    """

    encoding: str | None = None
    sheet: str | None = None
    password_env: str | None = None
    password_file: Path | None = None

    def __post_init__(self) -> None:
        if self.encoding is not None and not is_encoding(self.encoding):
            raise ConfigurationError(UNKNOWN_ENCODING)
        if self.password_env is not None and self.password_file is not None:
            raise ConfigurationError(TWO_PASSWORDS)

    @property
    def settings(self) -> list[str | None]:
        """What of them says what is read."""
        return [self.encoding, self.sheet]

    def password(self) -> str | None:
        """The password, read anew, so that a new one needs no restart; None where none is named.

        Raises:
            ConfigurationError: The variable is not set, or the file is missing, empty or readable by others.
        """
        if self.password_env is not None:
            if not (found := os.environ.get(self.password_env)):
                raise ConfigurationError(
                    f"the environment variable {self.password_env}, which password_env names, is not set; set it "
                    "where the command or the node is started"
                )
            return found
        return None if self.password_file is None else _first_line(self.password_file)


def is_encoding(name: str) -> bool:
    """Whether there is an encoding of text of this name."""
    try:
        codecs.lookup(name)
        "".encode(name)
    except (LookupError, ValueError):
        return False
    return True


PLAIN = SourceOptions()


def _first_line(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise ConfigurationError(f"{path}, the password_file, is open to others; run chmod 600 on it")
            found = file.readline().rstrip("\r\n")
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path}, the password_file, cannot be read ({why_not_read(error)})") from None
    if not found:
        raise ConfigurationError(f"{path}, the password_file, has an empty first line; write the password there")
    return found
