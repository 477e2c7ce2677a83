"""A scheme of sources that another distribution brings: its rows are read like any others."""

from __future__ import annotations

from pathlib import Path

import pytest

from mining.data.loading import load_transactions
from party.config import DatasetSection
from tests.brought import bring
from tests.errors import fails

LEDGER = """
from contextlib import contextmanager

import pyarrow as pa

from mining.data.schemes.scheme import ArrowDatabase


class Ledger(ArrowDatabase):
    prefixes = ("ledger://",)
    form = "ledger://BOOK"

    def where(self, source):
        return "The query on the ledger"

    @contextmanager
    def query(self, source, query, options):
        table = pa.table({"id": [1, 1, 2], "item": ["bread", "milk", query]})
        yield pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
"""


def test_a_scheme_from_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    described = {"name": "books", "kind": "transactions", "format": "sql", "query": "tea", "source": "ledger://main"}
    with pytest.raises(ValueError, match="scheme that is not read here"):
        DatasetSection.model_validate(described)
    bring(tmp_path, monkeypatch, "ledgers", LEDGER, {"comine.sources": {"ledger": "ledgers:Ledger"}})
    assert DatasetSection.model_validate(described).beside(tmp_path).source == "ledger://main"
    assert load_transactions("ledger://main", "sql", query="tea").items == ("bread", "milk", "tea")
    with fails("E100"):
        load_transactions("bricks://main", "sql", query="tea")
