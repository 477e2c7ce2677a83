"""Standard output and error whose reader may leave early, such as `head`: the command goes on and ends as it would."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _Pipe(io.FileIO):
    """Passes bytes on; once nobody reads them any more, they go nowhere."""

    abandoned = False

    def write(self, data: ReadableBuffer, /) -> int:
        """Writes what somebody reads."""
        try:
            return super().write(data)
        except BrokenPipeError:
            self.abandoned = True
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return super().write(data)


class Outlet(io.TextIOWrapper):
    """A standard stream that outlives its reader.

    Args:
        stream: As Python has opened it.
    """

    def __init__(self, stream: io.TextIOWrapper) -> None:
        self._pipe = _Pipe(stream.fileno(), "wb", closefd=False)
        super().__init__(
            self._pipe if stream.write_through else io.BufferedWriter(self._pipe),
            encoding=stream.encoding,
            # What the terminal's encoding lacks, or a path that is no text, must not end a command.
            errors="backslashreplace" if stream.errors == "strict" else stream.errors,
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )

    @property
    def abandoned(self) -> bool:
        """Whether its reader was found to have left."""
        return self._pipe.abandoned


def outlet(stream: TextIO) -> TextIO:
    """The stream as one that outlives its reader, where it is a file, a pipe or a terminal."""
    return Outlet(stream) if isinstance(stream, io.TextIOWrapper) else stream


def check_reader() -> None:
    """For commands that print until they are stopped.

    Raises:
        BrokenPipeError: Nobody reads standard output any more.
    """
    sys.stdout.flush()
    if isinstance(sys.stdout, Outlet) and sys.stdout.abandoned:
        raise BrokenPipeError
