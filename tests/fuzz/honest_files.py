"""Honest files of each kind, as bytes."""

from __future__ import annotations

import contextlib
import gzip
import sqlite3
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from anonymize.blocks.counted_rows import CountedRows
from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.documents import document
from ldp.domain import Domain
from ldp.registry import oracle
from ldp.streams.ledger import WindowLedger
from ldp.streams.sliding_memo import SlidingMemo
from link.journal import Known, Step
from link.pki.authority import Authority, new_key
from link.pki.requests import make_request
from tests.jobs.anonymization.released import release_here
from tests.ldp.streams.test_memo import MECHANISM as MEMOISED

JOB = """
[job]
name = "weekly"
task = "rules"
parties = ["north", "south", "east"]
dataset = "baskets"
deadline = "30s"
[itemsets]
min_support = 0.01
max_length = 4
[rules]
min_confidence = 0.5
measures = ["confidence", "lift"]
"""
PRIVATE = """
[job]
name = "j"
task = "itemsets"
parties = ["north", "south"]
dataset = "baskets"
partition = "hybrid"
[itemsets]
min_support = 0.2
[privacy]
model = "distributed"
epsilon = 2
delta = 1e-6
colluding = 1
"""
MODEL = """
[job]
name = "j"
task = "naive-bayes"
parties = ["north", "south"]
dataset = "people"
[naive-bayes]
target = "class"
[columns.class]
values = ["yes", "no"]
[columns.age]
low = 0
high = 120
step = 1
"""
COLLECTION = """
[collection]
name = "pages"
mechanism = "grr"
epsilon = 2
size = 16
"""
ANONYMIZE = """
[anonymize]
source = "people.csv"
algorithm = "mondrian"
identifiers = ["id"]
quasi_identifiers = ["age", "zip"]
sensitive = ["disease"]
[anonymize.model]
k = 2
"""
ROWS = [{"id": i, "age": 20 + i, "zip": f"1011{i % 3}", "disease": "flu" if i % 2 else "none"} for i in range(12)]


def texts(*found: str) -> Callable[[Path], Sequence[bytes]]:
    return lambda folder: [text.encode() for text in found]


def people_csv(folder: Path) -> Sequence[bytes]:
    lines = ["id,age,zip,disease", *(f'{row["id"]},{row["age"]},{row["zip"]},"{row["disease"]}"' for row in ROWS)]
    plain = "\n".join(lines).encode() + b"\n"
    return [plain, plain.replace(b"\n", b"\r\n"), gzip.compress(plain, mtime=0)]


def parquet_bytes(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return bytes(sink.getvalue().to_pybytes())


def people_parquet(folder: Path) -> Sequence[bytes]:
    table = pa.Table.from_pylist(ROWS)
    coded = table.set_column(2, "zip", table["zip"].dictionary_encode())
    return [parquet_bytes(table), parquet_bytes(table, compression="none", use_dictionary=False), parquet_bytes(coded)]


def baskets_parquet_file(folder: Path) -> Sequence[bytes]:
    lists = pa.table({"items": pa.array([["a", "b"], ["b"], ["c", "a"]])})
    long = pa.table({"id": [1, 1, 2], "item": ["a", "b", "c"]})
    return [
        parquet_bytes(lists),
        parquet_bytes(long, use_dictionary=False, compression="none"),
        parquet_bytes(lists, compression="none"),
    ]


def sqlite_file(folder: Path) -> Sequence[bytes]:
    path = folder / "seed.sqlite"
    path.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("create table rows (id text, item text)")
        connection.executemany("insert into rows values (?, ?)", [("1", "bread"), ("1", "milk"), ("2", "bread")])
        connection.execute("insert into rows values ('3', cast(x'ff80' as text))")  # text that is not UTF-8
        connection.commit()
    return [path.read_bytes()]


def duckdb_file(folder: Path) -> Sequence[bytes]:
    path = folder / "seed.duckdb"
    path.unlink(missing_ok=True)
    with contextlib.closing(duckdb.connect(str(path))) as connection:
        connection.execute("create table rows as select * from (values ('1', 'bread'), ('1', 'milk')) t(id, item)")
    return [path.read_bytes()]


def certificate_pems(folder: Path) -> Sequence[bytes]:
    authority = Authority.create()
    return [authority.issue("north").certificate_pem, authority.certificate_pem]


AUTHORITY = Authority.create()


def signing_requests(folder: Path) -> Sequence[bytes]:
    return [make_request(new_key(), "north", "party", ["10.0.0.1", "north.example"])]


def key_pems(folder: Path) -> Sequence[bytes]:
    return [AUTHORITY.issue("north").key_pem]


def revocation_lists(folder: Path) -> Sequence[bytes]:
    AUTHORITY.write(folder, force=True)
    AUTHORITY.revoke(folder, [1, 2, 3])
    found = (folder / "ca.crl").read_bytes()
    (folder / "ca.crl").unlink()
    return [found]


def release_folder(folder: Path) -> Path:
    place = folder / "release"
    if not place.exists():
        release_here(place, folder)
    return place


def sorted_runs(folder: Path) -> Sequence[bytes]:
    counted = CountedRows(folder, most=0)
    counted.add(pa.Table.from_pylist(ROWS))
    return [path.read_bytes() for path in folder.glob("*.arrow")]


def arrow_streams(folder: Path) -> Sequence[bytes]:
    sink, table = pa.BufferOutputStream(), pa.Table.from_pylist(ROWS)
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return [bytes(sink.getvalue().to_pybytes())]


def kept_steps(folder: Path) -> Sequence[bytes]:
    level = Known(np.array([[0, 1], [1, 2]], np.int32), np.array([3, 4]), ("north",))
    rows = Known(3, own=np.packbits(np.arange(9) % 3 == 0))
    named = Known([("north", ["a", "b"]), ("south", [])])
    return [
        Step("/task/a", b"", level, {"north": bytes(32)}).pack(),
        Step("/b", b"a session", rows).pack(),
        Step("", b"", named).pack(),
    ]


def ledgers(folder: Path) -> Sequence[bytes]:
    ledger = WindowLedger(3, 1.0)
    ledger.spend(1, Fraction(1, 3))
    return [ledger.to_bytes()]


def sliding_memos(folder: Path) -> Sequence[bytes]:
    memo = SlidingMemo.drawn(MEMOISED, 5, 2.0, Randomness.from_seed(1))
    return [memo.to_bytes()]


def mechanism_documents(folder: Path) -> Sequence[bytes]:
    return [document(oracle(name, Domain(4), 1.0)) for name in ("grr", "olh", "hr")]


def aggregator_states(folder: Path) -> Sequence[bytes]:
    found = oracle("grr", Domain(4), 1.0)
    total = Aggregator(found)
    return [total.to_bytes()]
