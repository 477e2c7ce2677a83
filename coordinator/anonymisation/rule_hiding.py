"""The folder of transactions in which rules are hidden: the transactions, and what was changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from jobs.documents.hiding import HidingDocument
from jobs.documents.written_json import write_json
from jobs.results.destination import MANIFEST
from jobs.results.folder import write_whole
from jobs.results.manifest import seal
from link.errors import InputDataError
from link.files.printable import why_not_read
from link.files.spreadsheet import write_rows
from mining.data.transactions import Transactions
from mining.hiding.sensitive import SensitiveRule

PARQUET: Final = "transactions.parquet"
CSV: Final = "transactions.csv"
ACCOUNT: Final = "hiding.json"


def read_rules(path: Path, separator: str = ",") -> list[SensitiveRule]:
    """The sensitive rules of a text file, one a line, such as `bread, milk -> beer`; `#` begins a comment.

    Raises:
        InputDataError: It cannot be read, or has no rule.
        ConfigurationError: A line is no rule.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise InputDataError(f"the sensitive rules {path} are not UTF-8 text") from None
    except (OSError, ValueError) as error:
        raise InputDataError(f"the sensitive rules {path} cannot be read: {why_not_read(error)}") from None
    rules = [SensitiveRule.parse(line, separator) for line in lines if line.strip() and not line.startswith("#")]
    if not rules:
        raise InputDataError(f"{path} names no rule; write one a line, such as: bread, milk -> beer")
    return rules


def holds_earlier(folder: Path) -> bool:
    """Whether a folder holds an earlier result of this kind and nothing else."""
    present = {path.name for path in folder.iterdir()}
    return ACCOUNT in present and present <= {PARQUET, CSV, ACCOUNT, MANIFEST}


def write_folder(out: Path, transactions: Transactions, document: HidingDocument) -> None:
    """Writes `transactions.parquet` (a list of items a row), `transactions.csv` (a record a row) and `hiding.json`.

    The manifest that lists them is signed by nobody.

    Raises:
        ConfigurationError: `out` is a file, or holds something other than an earlier result.
        ResourceError: The disk is full, or the folder cannot be written.
    """

    def fill(draft: Path) -> None:
        draft.mkdir(parents=True)
        rows = lists_of_items(transactions)
        pq.write_table(pa.table({"items": rows}), draft / PARQUET, compression="zstd")
        if (transactions.lengths > 0).all():  # a record cannot be empty
            with (draft / CSV).open("w", encoding="utf-8", newline="") as file:
                write_rows(file, rows.to_pylist())
        write_json(draft / ACCOUNT, document.model_dump(mode="json", by_alias=True))
        seal(draft, None)

    write_whole(out, fill, holds_earlier)


def lists_of_items(transactions: Transactions) -> pa.ListArray:
    """The items of each row, as a column of Parquet."""
    names: Sequence[str] = transactions.items
    items = pa.DictionaryArray.from_arrays(pa.array(transactions.indices), pa.array(names, pa.string()))
    return pa.ListArray.from_arrays(pa.array(transactions.offsets.astype(np.int32)), items.cast(pa.string()))
