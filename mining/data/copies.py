"""A source as one file of this machine in UTF-8, as the readers of all formats take it.

A plain file is read where it is. Anything else is copied into a private folder while it is read: files of a store,
several files, text in another encoding, and sheets of a workbook, which are copied as CSV.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote

from link.errors import ConfigurationError, InputDataError, ResourceError
from link.files.printable import why_not_read
from link.files.scratch import scratch_folder
from link.files.stamps import Stamp
from mining.data.formats.csv_text import read_header
from mining.data.formats.parquet_files import join_parquet
from mining.data.formats.text_files import is_packed, read_pieces
from mining.data.formats.workbooks import is_workbook, sheet_as_csv
from mining.data.schemes.local_files import LocalFiles, is_pattern
from mining.data.schemes.registry import scheme_of
from mining.data.schemes.scheme import StoredFile, StoreScheme
from mining.data.source_options import PLAIN, SourceOptions

COPIES: Final = "comine-copy-"  # of the names of folders for them, among temporary files
_AT_ONCE: Final = 1 << 20  # bytes
_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
_WHOLE: Final = "whole"  # the name of a copy
_GZIP_MAGIC: Final = b"\x1f\x8b"


class Wanted(NamedTuple):
    """How a source is read.

    Attributes:
        format: As of `loading`.
        separator: Of cells.
        has_header: Whether its first line has names of columns.
        partitions: Names of the only columns that folders such as `year=2026` may add; None: any.
    """

    format: str
    separator: str | None = None
    has_header: bool = False
    partitions: tuple[str, ...] | None = None


class State(NamedTuple):
    """How a source is now.

    Attributes:
        marks: What differs where it differs.
        is_fresh: Whether it may change once more and keep them.
    """

    marks: tuple[object, ...]
    is_fresh: bool


def is_plain(source: str, options: SourceOptions = PLAIN) -> bool:
    """Whether a source is one file that is read where it is."""
    elsewhere = isinstance(scheme_of(source), StoreScheme)
    return not (elsewhere or options.encoding or is_workbook(source) or is_pattern(source) or os.path.isdir(source))


def files_of(source: str, options: SourceOptions) -> list[StoredFile]:
    """The files that a source names, at least one.

    Raises:
        ConfigurationError: The options are wrong.
        InputDataError: There is none, or the store cannot be asked.
    """
    found = _store_of(source).files(source, options)
    if found:
        return found
    if os.path.isdir(source):
        raise InputDataError(f"{source} is a folder without Parquet files; name a file, or a pattern such as *.csv.")
    what = "that the store names" if scheme_of(source) else f"that {source} names" if is_pattern(source) else source
    raise InputDataError(f"there is no file {what}; check the path in the dataset's source.")


def state_of(source: str, options: SourceOptions) -> State:
    """How a source of files is now.

    Raises:
        ConfigurationError: The options are wrong.
        InputDataError: It is missing, or cannot be asked.
    """
    if is_plain(source, options):
        try:
            stamp = Stamp.of(Path(source))
        except (OSError, ValueError) as error:
            raise InputDataError(f"{source} cannot be read ({why_not_read(error)}); check [[dataset]] source") from None
        return State(tuple(stamp), stamp.is_fresh())
    found = files_of(source, options)
    return State(tuple(each.marks for each in found), any(each.is_fresh for each in found))


@contextmanager
def local_file(source: str, options: SourceOptions, wanted: Wanted) -> Iterator[Path]:
    """One file with what a source holds; a copy is gone afterwards, and sentences name the source in its place.

    Raises:
        ConfigurationError: The options are wrong, or what reads it is not installed.
        InputDataError: It cannot be read, or its files do not fit together.
        ResourceError: There is no room for the copy.
    """
    if is_plain(source, options) or (wanted.format != "parquet" and os.path.isdir(source)):  # which readers refuse
        yield Path(source)
        return
    with ExitStack() as end:
        try:
            folder = end.enter_context(scratch_folder(Path(tempfile.gettempdir()), COPIES))
        except OSError as error:
            raise _no_room(error) from None
        found = files_of(source, options)
        several = f"{_shown(source)}, {len(found)} files one after the other"
        names = {folder / _WHOLE: found[0].name if len(found) == 1 else several}
        try:
            parts = []
            for number, file in enumerate(found):
                raw, text = folder / f"{number:06}-{_file_name(file.place)}", folder / f"{number:06}.txt"
                names[raw] = names[text] = file.name
                parts.append(_prepared(file, source, options, wanted, raw, text))
            yield _joined(parts, _partitions(found, source, wanted), folder / _WHOLE, wanted)
        except InputDataError as error:
            message = error.message
            for copy, name in names.items():
                message = message.replace(str(copy), name)
            raise InputDataError(message) from None


def head_of(source: str, options: SourceOptions, number: int) -> tuple[bytes, bool]:
    """The first bytes of what a source that is not plain holds, decompressed and in UTF-8, and whether they are all.

    Raises:
        ConfigurationError: As of `local_file`.
        InputDataError: As of `local_file`.
    """
    first = files_of(source, options)[0]
    if is_workbook(first.place):
        with local_file(source, options, Wanted("csv")) as copy, copy.open("rb") as sheet:
            head = sheet.read(number + 1)
    else:
        with _store_of(source).opened(first, source, options) as stream:
            begin = stream.read(len(_GZIP_MAGIC))
            rest = stream.read(number + 1)
        head = begin + rest
        if begin == _GZIP_MAGIC:
            with suppress(zlib.error):
                head = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, number + 1)
        if options.encoding:
            head = codecs.getincrementaldecoder(options.encoding)("replace").decode(head).encode()
    return head[:number], len(head) <= number


def _store_of(source: str) -> StoreScheme:
    scheme = scheme_of(source)
    return scheme if isinstance(scheme, StoreScheme) else LocalFiles()


def _shown(source: str) -> str:
    return source.partition("?")[0] if isinstance(scheme_of(source), StoreScheme) else source


def _prepared(file: StoredFile, source: str, options: SourceOptions, wanted: Wanted, raw: Path, text: Path) -> Path:
    """A file on this machine, and text of it in UTF-8: the file itself, a copy, or the copy of its text."""
    part = raw
    if scheme_of(source) is None:
        part = Path(file.place)
    else:
        with _store_of(source).opened(file, source, options) as stream:
            number = _write(raw, iter(lambda: stream.read(_AT_ONCE), b""))
        if file.size and number != file.size:
            raise InputDataError("a file of the source has another length than its store says; run it again.")
    if is_workbook(file.place):
        if wanted.format == "basket":
            raise ConfigurationError('a sheet of a workbook is read with format = "csv", "long" or "wide"')
        _write(text, sheet_as_csv(part, options.sheet, wanted.separator or ","))
    elif options.encoding:
        _write(text, _recoded(part, options.encoding))
    else:
        return part
    return text


def _file_name(place: str) -> str:
    """How a copy is called, which workbooks and compressed files are known by."""
    return re.sub(r"[^A-Za-z0-9.]", "", place.partition("?")[0].rpartition("/")[2])[-40:]


def _recoded(path: Path, encoding: str) -> Iterator[bytes]:
    """The text of a file in UTF-8."""
    try:
        with path.open("rb") as file:
            packed = is_packed(file, path)
            with io.TextIOWrapper(gzip.open(file) if packed else file, encoding, newline="") as text:
                while some := text.read(_AT_ONCE):
                    yield some.encode()
    except UnicodeError:
        raise InputDataError(f"{path} is not text in the encoding {encoding}; name the one that it is in.") from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputDataError(f"{path} is not a whole gzip file; fetch or compress it again.") from None


def _write(path: Path, pieces: Iterable[bytes]) -> int:
    """Writes bytes; how many."""
    number = 0
    try:
        file = path.open("xb")  # never over anything that is there
    except OSError as error:
        raise _no_room(error) from None
    with file:
        for piece in pieces:
            number += len(piece)
            try:
                file.write(piece)
            except OSError as error:
                raise _no_room(error) from None
    return number


def _no_room(error: OSError) -> ResourceError:
    return ResourceError(
        f"a copy of the source cannot be written among temporary files ({error.strerror}); free space there, or name "
        "another folder by TMPDIR"
    )


def _partitions(found: Sequence[StoredFile], source: str, wanted: Wanted) -> list[dict[str, str | None]]:
    """By file, what folders such as `year=2026` say of its rows, behind what is fixed of the source."""
    fixed = source if os.path.isdir(source) else re.split(r"[*?[]", source, maxsplit=1)[0].rpartition("/")[0]
    begin = len(fixed.partition("://")[2] or fixed)
    parts = []
    for file in found if (wanted.format == "parquet" and len(fixed) < len(source)) or os.path.isdir(source) else ():
        pairs = (folder.split("=", 1) for folder in file.place[begin:].split("/")[:-1] if "=" in folder)
        said = {name: None if text == _NO_VALUE else unquote(text) for name, text in pairs}
        parts.append({k: v for k, v in said.items() if wanted.partitions is None or k in wanted.partitions})
    return parts or [{} for _ in found]


def _joined(parts: Sequence[Path], partitions: Sequence[dict[str, str | None]], whole: Path, wanted: Wanted) -> Path:
    if len(parts) == 1 and not partitions[0]:
        return parts[0]
    if wanted.format == "parquet":
        join_parquet(list(zip(parts, partitions, strict=True)), whole)
    else:
        _write(whole, _texts(parts, wanted))
    return whole


def _texts(parts: Sequence[Path], wanted: Wanted) -> Iterator[bytes]:
    """Texts one after the other; of names of columns those of the first, which all must have."""
    names: list[str] | None = None
    for part in parts:
        ends = True
        for lines, piece in read_pieces(part, quotes=wanted.format != "basket"):
            text: bytes | memoryview = piece
            if wanted.has_header and not lines:
                header, body = read_header(piece, wanted.separator or ",", part)
                if names is not None and header != names:
                    raise InputDataError(f"{part} has other names of columns than the first file; all need the same.")
                text, names = piece if names is None else body, header
            yield bytes(text)
            ends = not piece or piece.endswith(b"\n")
        if not ends:
            yield b"\n"
