"""Text files, plain or compressed, as checked UTF-8 bytes: at once, or in pieces of whole lines."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, cast

from link.errors import InputDataError

_GZIP_MAGIC: Final = b"\x1f\x8b"
AT_ONCE = 1 << 20  # bytes
PIECE_BYTES = 1 << 24
MOST_BYTES = 1 << 28  # of a line, or of a record with a cell in quotes


def existing(path: Path) -> Path:
    """The path, if a file is there.

    Raises:
        InputDataError: There is none, or it is a folder.
    """
    if os.path.isdir(path):  # which no name makes fail
        raise InputDataError(f"{path} is a folder; name a file.")
    if not os.path.exists(path):
        raise InputDataError(f"there is no file {path}; check the path in the dataset's source.")
    return path


def read_text(path: Path, *, quotes: bool = False, other: bool = True) -> bytes:
    """The bytes of a text file, decompressed, checked to be UTF-8 and without a byte order mark.

    Where no line feed is in them, carriage returns end lines, as programs for old Macs write them, and become line
    feeds.

    Args:
        path: The file.
        quotes: Whether a cell in quotes may hold a carriage return, which stays as it is.
        other: Whether its reader takes other encodings, too, once they are named.

    Raises:
        InputDataError: The file is missing, unreadable, damaged or not UTF-8 text.
    """
    text = io.BytesIO()
    with _opened(path) as (begin, stream):
        text.write(begin)
        shutil.copyfileobj(stream, text, AT_ONCE)
    data = text.getvalue()
    _check(data, path, 0, other=other)
    return _with_line_feeds(data, quotes=quotes)


def _with_line_feeds(data: bytes, *, quotes: bool) -> bytes:
    """The text with line feeds in the place of carriage returns, where nothing else ends lines."""
    if b"\r" not in data or b"\n" in data:
        return data
    if quotes and b'"' in data:
        return re.sub(rb'("[^"]*"?)|\r', lambda found: found[1] or b"\n", data)
    return data.replace(b"\r", b"\n")


def read_pieces(path: Path, *, quotes: bool = False) -> Iterator[tuple[int, bytes]]:
    """The same in pieces that end with a line, the last perhaps without its end; each with the lines before it.

    Args:
        path: The file.
        quotes: Whether a cell in quotes may hold line ends; a piece then ends with a record of proper CSV.

    Raises:
        InputDataError: As of `read_text`; or a line is too long, as where carriage returns alone end lines.
    """
    lines = 0
    with _opened(path) as (rest, stream):
        while read := stream.read(PIECE_BYTES):
            rest += read
            end = _end_of_piece(rest, quotes=quotes)
            if end:
                piece, rest = rest[:end], rest[end:]
                _check(piece, path, lines)
                yield lines, piece
                lines += piece.count(b"\n")
            elif len(rest) > MOST_BYTES:
                raise InputDataError(
                    f"{path} holds a line, or a cell in quotes, of more than {MOST_BYTES >> 20} MiB from line "
                    f"{lines + 1} on; lines must end in LF or CR LF, and quotes must be closed."
                )
    if rest or not lines:
        _check(rest, path, lines)
        yield lines, rest if lines else _with_line_feeds(rest, quotes=quotes)


def _end_of_piece(data: bytes, *, quotes: bool) -> int:
    """Behind the last line that ends outside of quotes; 0 where there is none."""
    end = data.rfind(b"\n") + 1
    while quotes and end and data.count(b'"', 0, end) % 2:
        end = data.rfind(b"\n", 0, data.rfind(b'"', 0, end)) + 1
    return end


def _check(data: bytes, path: Path, lines: int, *, other: bool = True) -> None:
    """Refuses what is no UTF-8 text, behind so many lines."""
    if other and not lines and data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputDataError(f'{path} is UTF-16 text; save it as UTF-8, or write encoding = "utf-16".')
    fault = _first_fault(data)
    if fault >= 0:
        line = lines + data.count(b"\n", 0, fault) + 1
        named = ', or name its encoding, as in encoding = "windows-1252" (on a command line, --encoding windows-1252)'
        raise InputDataError(
            f"{path} is not UTF-8 text: line {line} holds a byte that is not; re-encode it{named if other else ''}."
        )
    zero = data.find(b"\0")
    if zero >= 0:
        line = lines + data.count(b"\n", 0, zero) + 1
        raise InputDataError(f"{path} is not text: line {line} holds a zero byte; check the format and encoding.")


def is_packed(file: BinaryIO, path: Path) -> bool:
    """Whether a file is compressed by gzip; it is at its beginning, before and after."""
    found = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC or path.suffix == ".gz"
    file.seek(0)
    return found


@contextmanager
def _opened(path: Path) -> Iterator[tuple[bytes, BinaryIO]]:
    """What is in a file, decompressed and without a byte order mark: some bytes, and those behind them."""
    existing(path)
    try:
        with path.open("rb") as file:
            packed = is_packed(file, path)
            if packed and not file.read(1):
                raise EOFError
            file.seek(0)
            with gzip.GzipFile(fileobj=file) if packed else file as stream:
                begin = stream.read(len(codecs.BOM_UTF8))
                yield b"" if begin == codecs.BOM_UTF8 else begin, cast(BinaryIO, stream)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputDataError(f"{path} is not a whole gzip file; fetch or compress it again.") from error
    except OSError as error:
        raise InputDataError(f"{path} cannot be read: {error.strerror}.") from error


def _first_fault(data: bytes) -> int:
    """Where the first byte is that is no UTF-8; -1 if there is none."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    whole = memoryview(data)
    for start in range(0, len(data), AT_ONCE):
        part = whole[start : start + AT_ONCE]
        end = start + len(part)
        try:
            decoder.decode(part, final=end == len(data))
        except UnicodeDecodeError as error:
            return end - len(error.object) + error.start
    return -1
