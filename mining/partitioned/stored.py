"""Encoded rows in a folder: blocks, the dictionary of all, and what describes them."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from link.errors import InputDataError
from link.files.json_text import read_json
from link.files.printable import why_not_read
from mining.data.transactions import Transactions
from mining.partitioned.blocks import Block
from mining.partitioned.encoding.writing import read_table
from mining.partitioned.rows import PartitionedRows
from mining.partitioned.runner import Runner, Source, View

MANIFEST: Final = "rows.json"  # written last: a folder without it was not finished
DICTIONARY: Final = "dictionary.arrow"
FORM: Final = 2  # of what is in such a folder; folders of another are encoded anew


@dataclass(frozen=True, eq=False, slots=True)
class StoredRows:
    """Rows that lie in blocks in a folder.

    Attributes:
        folder: Theirs.
        names: Of the files of the blocks, in the order of the rows.
        lengths: Rows of each.
        items: The dictionary.
        counts: In how many rows each item is.
        digest: Equal where rows are equal, in the same order; that of the same rows in memory.
        origin: What they were encoded from; see `encoding.encode.origin_of`. Empty where that cannot be recognised.
        sizes: Bytes of the files of the blocks.
    """

    folder: Path
    names: Sequence[str]
    lengths: Sequence[int]
    items: tuple[str, ...]
    counts: NDArray[np.int64]
    digest: bytes
    origin: str
    sizes: Sequence[int]

    @classmethod
    def open(cls, folder: Path) -> StoredRows | None:
        """The rows of a folder; None where there are none that are whole, or that this version can read."""
        try:
            manifest, given = read_json((folder / MANIFEST).read_bytes())
            if manifest["form"] != FORM or given != seal(manifest):
                return None
            if digest_of_file(folder / DICTIONARY) != manifest["dictionary"]:
                return None
            dictionary = read_table(folder / DICTIONARY)
            found = cls(
                folder,
                [name for name, _, _ in manifest["blocks"]],
                [length for _, length, _ in manifest["blocks"]],
                tuple(dictionary["item"].to_pylist()),
                dictionary["count"].to_numpy().astype(np.int64),
                bytes.fromhex(manifest["digest"]),
                manifest["origin"],
                [size for _, _, size in manifest["blocks"]],
            )
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
            return None
        return found if found.is_whole() else None

    @property
    def n_items(self) -> int:
        """Size of the dictionary."""
        return len(self.items)

    def is_whole(self) -> bool:
        """Whether all files are there, as long as they were."""
        return are_whole(self.folder, self.names, self.sizes)

    def manifest(self) -> bytes:
        """What `open` reads."""
        manifest = {
            "form": FORM,
            "origin": self.origin,
            "digest": self.digest.hex(),
            "dictionary": digest_of_file(self.folder / DICTIONARY),
            "blocks": list(zip(self.names, self.lengths, self.sizes, strict=True)),
        }
        return json.dumps([manifest, seal(manifest)]).encode()

    def sources(self) -> list[Source]:
        """What reads each block."""
        return [partial(read_block, self.folder / name) for name in self.names]

    def rows(self, engine: Callable[[Sequence[Source], Sequence[int]], Runner[View, Transactions]]) -> PartitionedRows:
        """The rows, counted by an engine of their own."""
        runner = engine(self.sources(), self.lengths)
        return PartitionedRows(runner, self.items, self.counts, self.digest)


def are_whole(folder: Path, names: Sequence[str], sizes: Sequence[int]) -> bool:
    """Whether all of some files are there, as long as they were."""
    try:
        return [(folder / name).stat().st_size for name in names] == list(sizes)
    except OSError:
        return False


def read_block(path: Path) -> Block:
    """A block of a file, which is removed where it is of no use.

    Raises:
        InputDataError: It is missing or damaged.
    """
    with removed_if_useless(path):
        return Block.from_bytes(path.read_bytes(), str(path))


@contextlib.contextmanager
def removed_if_useless(path: Path) -> Iterator[None]:
    """Removes a file that cannot be read, so that its folder is not taken as whole again.

    Raises:
        InputDataError: It is missing or damaged.
    """
    try:
        yield
    except OSError as error:
        _remove(path)
        raise InputDataError(
            f"{path} cannot be read ({why_not_read(error)}); run the job again, and the rows are encoded anew"
        ) from None
    except InputDataError:
        _remove(path)
        raise


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def seal(manifest: dict[str, Any]) -> str:
    """By which a damaged manifest is told."""
    return hashlib.blake2b(json.dumps(manifest, sort_keys=True).encode(), digest_size=32).hexdigest()


def digest_of_file(path: Path) -> str:
    """Of what is in a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, partial(hashlib.blake2b, digest_size=32)).hexdigest()
