"""The parties of a quickstart: a party for each file, or three to whom the rows of one file are dealt."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from comine.quickstart.tables import columns_of, rows_of_table
from comine.quickstart.task import DATASET
from coordinator.anonymisation.rule_hiding import lists_of_items
from coordinator.demo.story import BASKETS, as_file, households
from link.errors import ConfigurationError, InputDataError
from link.pki.identity import NAME
from mining.data.copies import head_of
from mining.data.formats.workbooks import is_workbook
from mining.data.source_format import guess_format
from mining.data.source_options import PLAIN, SourceOptions
from mining.data.transactions import Transactions
from mining.public_sizes import PublicSizes
from party.config import DatasetSection
from party.data.dataset_check import check_dataset
from party.data.sources import read_dataset

_PARTS: Final = ("north", "south", "east")
_TAKEN: Final = frozenset({"all", "authority", "ca", "coordinator", "result"})
_MOST: Final = 16  # nodes on one machine
_HEAD_BYTES: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class Source:
    """The data of a party.

    Attributes:
        name: The party.
        path: The file, absolute, or relative to the folder of the party.
        settings: How it is written: keys of `[[dataset]]`.
        data: Its rows.
        public: What may be published of their size.
    """

    name: str
    path: Path
    settings: dict[str, str]
    data: Transactions
    public: PublicSizes


def of_files(
    files: Sequence[str], folder: Path, tell: Callable[[str], None], options: SourceOptions = PLAIN
) -> list[Source]:
    """The parties of these files; without any, those of the demo.

    Args:
        files: As they were named.
        folder: Where a folder is made for each party that needs a file of its own.
        tell: Called with sentences for people.
        options: The encoding of files of text, the sheet of workbooks.

    Raises:
        InputDataError: A file is missing, or cannot be read as transactions.
        ConfigurationError: There are too many files, one is named twice, or there are none and the demo's data are not
            installed.
    """
    if len(files) > _MOST:
        raise ConfigurationError(f"a quickstart takes at most {_MOST} files, a node for each; give fewer")
    if not files:
        tell("no files were named: here are the households of three insurers, the data of comine demo")
        return [_insurer(name, as_file(baskets), folder, tell) for name, baskets in households().items()]
    if len(files) == 1:
        return _dealt(Path(files[0]), folder, tell, options)
    paths = [Path(file) for file in files]
    places = [path.resolve() for path in paths]
    for number, place in enumerate(places):
        if place in places[:number]:
            raise ConfigurationError(
                f"{paths[number]} is named twice, so its rows would count twice; each party has a file of its own"
            )
    looks = [_looks(path, tell, options) for path in paths]
    if len({columns_of(table) for _, table in looks if table is not None}) > 1:
        tell(
            "hint: the tables have different columns, and here each row stays by itself; rows about the same people "
            "are joined by a job over columns: comine job new --task rules --partition vertical"
        )
    return [
        _read(name, path, settings, tell) if table is None else _written(name, table, folder, tell)
        for name, path, (settings, table) in zip(_names(paths), paths, looks, strict=True)
    ]


def _looks(
    path: Path, tell: Callable[[str], None], options: SourceOptions
) -> tuple[dict[str, str], Transactions | None]:
    """How a file is written, and its rows where it is a table."""
    if is_workbook(str(path)):
        own = SourceOptions(sheet=options.sheet)
    else:
        own = PLAIN if options.encoding is None or _is_utf_8(path) else SourceOptions(options.encoding)
    guess = guess_format(str(path), options=own)
    table = rows_of_table(path, guess.separator, tell, own) if guess.format == "csv" else None
    if table is None:
        tell(f"{path}: taken as {guess.format}, since {guess.reason}")
    said = {"encoding": own.encoding, "sheet": own.sheet}
    return guess.settings | {key: value for key, value in said.items() if value is not None}, table


def _is_utf_8(path: Path) -> bool:
    """Whether a file of text begins as UTF-8 does, so that an encoding is not its own."""
    head, _ = head_of(str(path), PLAIN, _HEAD_BYTES)
    try:
        return "\0" not in codecs.getincrementaldecoder("utf-8")().decode(head)  # which fill UTF-16
    except UnicodeDecodeError:
        return False


def _read(name: str, path: Path, settings: dict[str, str], tell: Callable[[str], None]) -> Source:
    section = DatasetSection.model_validate({"name": DATASET, "kind": "transactions", "source": str(path), **settings})
    checked = check_dataset(section, in_place_of_items=None)
    if checked.problem:
        raise InputDataError(checked.problem)
    data = read_dataset(section, ())
    assert isinstance(data, Transactions)  # which is the kind of the section
    if not data.n_rows:
        raise InputDataError(f"{path} holds no transaction; name a file with some")
    tell(f"  {name}: {data.n_rows:,} transactions with {data.n_items:,} distinct items")
    for hint in checked.hints:
        tell(f"  hint: {hint.sentence}")
    return Source(name, path.absolute(), settings, data, checked.publishable)


def _dealt(path: Path, folder: Path, tell: Callable[[str], None], options: SourceOptions) -> list[Source]:
    """The rows of one file in three parts: the first, fourth, … for the first party, and so on."""
    settings, table = _looks(path, tell, options)
    whole = _read("in all", path, settings, tell).data if table is None else table
    if whole.n_rows < len(_PARTS):
        raise InputDataError(f"{path} has too few rows for {len(_PARTS)} parties; name a file for each party")
    tell(
        f"one file was named, so its rows are DEALT to {len(_PARTS)} made-up parties, every third row to each; "
        "name several files to have a party for each"
    )
    dealt = np.arange(whole.n_rows) % len(_PARTS)
    return [_written(name, whole.chosen(dealt == place), folder, tell) for place, name in enumerate(_PARTS)]


def _written(name: str, data: Transactions, folder: Path, tell: Callable[[str], None]) -> Source:
    """A party whose rows are put into its folder."""
    (folder / name).mkdir(parents=True)
    path = folder / name / "rows.parquet"
    pq.write_table(pa.table({"items": lists_of_items(data)}), path)
    read = _read(name, path, {"format": "parquet"}, tell)
    return Source(name, Path(path.name), read.settings, read.data, read.public)


def _insurer(name: str, text: str, folder: Path, tell: Callable[[str], None]) -> Source:
    (folder / name).mkdir(parents=True)
    path = folder / name / "policies.txt"
    path.write_text(text, encoding="utf-8")
    read = _read(name, path, BASKETS, tell)
    return Source(name, Path(path.name), read.settings, read.data, read.public)


def _names(paths: Sequence[Path]) -> list[str]:
    """A name for each file's party, after the file where that can be."""
    found: list[str] = []
    for number, path in enumerate(paths, 1):
        plain = unicodedata.normalize("NFKD", path.name.partition(".")[0]).encode("ascii", "ignore").decode()
        name = re.sub("[^a-z0-9]+", "-", plain.lower()).strip("-")[:40].strip("-")
        usual = NAME.fullmatch(name) is not None and name not in _TAKEN and not name.isdecimal()
        name = name if usual else f"party-{number}"
        found.append(name if name not in found else f"{name}-{number}")
    return found
