"""Where the rows of a large table come from: the same blocks each time that they are asked for."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from anonymize.reading import as_arrow, check_quotes, csv_error, csv_options
from link.errors import InputDataError

BLOCK_ROWS: Final = 1 << 18
BLOCK_BYTES: Final = 1 << 24  # of text, so that a block has about as many rows


class Blocks(Protocol):
    """A table in blocks, read as `anonymize.reading` reads whole ones."""

    @property
    def column_names(self) -> list[str]:
        """In the order of the source."""
        ...

    def blocks(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows, from the first on; a block may be empty.

        Args:
            columns: Those that are read, in their order.

        Raises:
            InputDataError: The source cannot be read.
        """
        ...


class ParquetBlocks:
    """A Parquet file.

    Args:
        path: Of the file.

    Raises:
        InputDataError: It is missing or no Parquet file, or columns are nested.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._reported(), pq.ParquetFile(path) as file:
            self._schema = as_arrow(file.schema_arrow.empty_table()).schema

    @property
    def column_names(self) -> list[str]:
        """In the order of the file."""
        return list(self._schema.names)

    def blocks(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Row groups are read in batches, so that they may be of any size."""
        # Buffers that are filled ahead stay until the file is closed: in the end all of it would lie in memory.
        with self._reported(), pq.ParquetFile(self._path, pre_buffer=False) as file:
            for batch in file.iter_batches(BLOCK_ROWS, columns=list(columns)):
                block = pa.Table.from_batches([batch])
                block.validate(full=True)
                yield as_arrow(block).select(list(columns))

    def _reported(self) -> _Reported:
        return _Reported(self._path)


class _Reported:
    """Turns what Arrow says of a file into a sentence."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, pa.ArrowException | OSError | UnicodeError | OverflowError):
            raise InputDataError(
                f"{self._path} cannot be read as a Parquet file; check its path and format."
            ) from error


class CsvBlocks:
    """A CSV file, as it is or compressed; all cells are text.

    Args:
        path: Of the file.
        separator: Of its cells.

    Raises:
        InputDataError: It is missing, empty, or a quote is never closed.
    """

    def __init__(self, path: Path, separator: str) -> None:
        self._path, self._separator = path, separator
        try:
            with pa.input_stream(str(path)) as stream:
                check_quotes(path, iter(lambda: stream.read(BLOCK_BYTES), b""))
            with pa.input_stream(str(path)) as stream:
                text = io.TextIOWrapper(stream, "utf-8-sig", newline="")
                header = next(filter(None, csv.reader(text, delimiter=separator)), None)
        except UnicodeDecodeError as error:
            raise InputDataError(f"{path} is no text in UTF-8; convert it.") from error
        except (OSError, ValueError, pa.ArrowException) as error:
            raise InputDataError(f"{path} cannot be read; check the path.") from error
        if header is None:
            raise InputDataError(f"{path} is empty; a first line with the names of the columns is needed.")
        self._header = header
        as_arrow(pa.table([pa.array([], pa.string())] * len(header), header))

    @property
    def column_names(self) -> list[str]:
        """In the order of the file."""
        return list(self._header)

    def blocks(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Pieces of the file that end with a row."""
        parse, convert = csv_options(self._header, self._separator, columns)
        try:
            with pa.input_stream(str(self._path)) as stream:
                reading = pa_csv.ReadOptions(block_size=BLOCK_BYTES)
                with pa_csv.open_csv(stream, reading, parse, convert) as reader:
                    for batch in reader:
                        yield pa.Table.from_batches([batch])
        except (OSError, pa.ArrowException) as error:
            with pa.input_stream(str(self._path)) as stream:
                raise csv_error(self._path, stream, self._separator, error) from error
