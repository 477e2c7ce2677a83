"""Whatever is in a file, reading it ends well or with an error of comine: one sentence, a code, no traceback.

Each reader meets honest files that were made wrong, with fresh seeds on every run outside of continuous integration.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gzip
import os
import shutil
import sqlite3
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from anonymize.blocks.counted_rows import CountedRows, merged
from anonymize.blocks.sources import CsvBlocks, ParquetBlocks
from anonymize.hierarchies.files import from_csv, from_json
from anonymize.reading import read_parquet as read_rows
from anonymize.reading import read_sql
from anonymize.verification.rows import read_csv, read_parquet
from client.budget import Budget
from coordinator.anonymisation.releases import ROWS as ROWS_OF_A_NODE
from coordinator.anonymisation.releases import ReleasingNode
from coordinator.anonymisation.rule_hiding import read_rules
from coordinator.cli.terminal.completion import parties_of_job
from coordinator.frequency.values import load_collection
from coordinator.shuffle.routes import read_state
from crypto.primitives.randomness import Randomness
from jobs.anonymization.inputs import load as load_anonymization
from jobs.anonymization.verifying import verify as verify_folder
from jobs.audit.place import of_party as audited
from jobs.collections.route import RouteSpec
from jobs.collections.spec import CollectionSpec
from jobs.federation import Federation
from jobs.loading import load_job
from ldp.aggregator import Aggregator
from ldp.documents import document, mechanism_of
from ldp.domain import Domain
from ldp.registry import oracle
from ldp.streams.ledger import WindowLedger
from ldp.streams.method import Release
from ldp.streams.methods import METHODS, restored, stream_method
from ldp.streams.sliding_memo import SlidingMemo
from link.errors import ComineError
from link.files.json_text import read_json
from link.pki.authority import Authority, new_key, write_identity
from link.pki.certificates import read_certificate
from link.pki.identity import Identity
from link.pki.issued import show
from link.pki.requests import make_request, read_request
from link.pki.signing import judge, sign
from link.pki.trust import Trust
from mining.data.loading import load_table, load_transactions
from mining.data.source_format import guess_format
from mining.data.source_options import PLAIN, SourceOptions
from mining.joint.blended.mine import unpacked as unpack_named
from mining.joint.distributed.selection import unpacked as unpack_names
from mining.joint.progress import KeptLevel
from party.config import PartyConfig
from party.services.frequency.schedule import packed_result as packed_release
from party.services.frequency.schedule import read_state as read_schedule
from party.services.frequency.schedule import release_of
from party.state.remembered import remembered
from tests.examples import examples
from tests.fuzz.mutations import mutated, mutated_pem
from tests.jobs.anonymization.released import release_here
from tests.ldp.streams.test_memo import MECHANISM as MEMOISED
from tests.party.files import federation_toml, party_toml
from tests.party.nodes import weekly

pytestmark = pytest.mark.filterwarnings(
    "ignore::cryptography.utils.CryptographyDeprecationWarning", "ignore::UserWarning"
)

EXAMPLES = int(os.environ.get("COMINE_FUZZ_EXAMPLES", "0"))
FUZZED = examples(
    EXAMPLES or 10,
    EXAMPLES or 30,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)

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


@dataclass(frozen=True)
class Reader:
    """How files of one kind are read.

    Attributes:
        seeds: Honest ones.
        read: Reads the file at a path.
        name: What the file is called.
        allowed: What may come out of it besides errors of comine: faults that the caller translates.
        pem: Whether they are in PEM form.
    """

    seeds: Callable[[Path], Sequence[bytes]]
    read: Callable[[Path], object]
    name: str = "file"
    allowed: tuple[type[Exception], ...] = ()
    pem: bool = False


def texts(*found: str) -> Callable[[Path], Sequence[bytes]]:
    return lambda folder: [text.encode() for text in found]


def _people_csv(folder: Path) -> Sequence[bytes]:
    lines = ["id,age,zip,disease", *(f'{row["id"]},{row["age"]},{row["zip"]},"{row["disease"]}"' for row in ROWS)]
    plain = "\n".join(lines).encode() + b"\n"
    return [plain, plain.replace(b"\n", b"\r\n"), gzip.compress(plain, mtime=0)]


def _parquet(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return bytes(sink.getvalue().to_pybytes())


def _people_parquet(folder: Path) -> Sequence[bytes]:
    table = pa.Table.from_pylist(ROWS)
    coded = table.set_column(2, "zip", table["zip"].dictionary_encode())
    return [_parquet(table), _parquet(table, compression="none", use_dictionary=False), _parquet(coded)]


def baskets_parquet_file(folder: Path) -> Sequence[bytes]:
    lists = pa.table({"items": pa.array([["a", "b"], ["b"], ["c", "a"]])})
    long = pa.table({"id": [1, 1, 2], "item": ["a", "b", "c"]})
    return [
        _parquet(lists),
        _parquet(long, use_dictionary=False, compression="none"),
        _parquet(lists, compression="none"),
    ]


def _not_utf8() -> pa.Array:
    return pa.StringArray.from_buffers(2, pa.py_buffer(struct.pack("<3i", 0, 1, 2)), pa.py_buffer(b"\xffa"))


def test_parquet_whose_text_is_none(folder: Path) -> None:
    """Arrow reads it, and fails only where somebody looks at the cell."""
    bad, path = _not_utf8(), folder / "bad.parquet"
    lists = pa.ListArray.from_arrays([0, 1, 2], bad)
    readers: list[Callable[[Path], object]] = [_transactions("parquet"), _table("parquet"), read_parquet, read_rows]
    for table in (
        pa.table({"items": lists}),
        pa.table({"id": ["1", "2"], "item": bad}),
        pa.table({"id": bad, "item": ["a", "b"]}),
        pa.table({"id": bad.dictionary_encode(), "item": bad.dictionary_encode()}),
        pa.table({"id": ["1", "2"], "other": bad}),
    ):
        path.write_bytes(_parquet(table))
        for read in readers:
            with contextlib.suppress(ComineError):
                read(path)


def test_parquet_whose_columns_have_no_names(folder: Path) -> None:
    path = folder / "bad.parquet"
    whole = _parquet(pa.table({"id": ["1"], "item": ["a"], "zzzz": ["b"]}), compression="none")
    for readers in (_transactions("parquet"), _table("parquet"), read_parquet, read_rows):
        path.write_bytes(whole.replace(b"zzzz", b"\xff\xfe\xfd\xfc"))
        with contextlib.suppress(ComineError):
            readers(path)


def test_sqlite_whose_text_is_none(folder: Path) -> None:
    path = folder / "bad.sqlite"
    path.write_bytes(sqlite_file(folder)[0])
    for query in (
        "select id, item from rows",
        "select item as id, id as item from rows",
        "select id, item, cast(x'ff' as text) from rows",
        "select 1 as 'i\0d', 2 as item",
    ):
        for load in (load_transactions, load_table):
            with pytest.raises(ComineError):
                load(f"sqlite:///{path}", "sql", query=query)
        with contextlib.suppress(ComineError):
            read_sql(f"sqlite:///{path}", query)


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


def _certificates(folder: Path) -> Sequence[bytes]:
    authority = Authority.create()
    return [authority.issue("north").certificate_pem, authority.certificate_pem]


def _identity(changed: str) -> Callable[[Path], object]:
    """Reads an identity of which one file is another."""

    def read(path: Path) -> object:
        authority = Authority.create() if changed == "ca.crt" else AUTHORITY
        folder = path.parent / "pki"
        folder.mkdir(exist_ok=True)
        authority.write(folder, force=True)
        write_identity(authority.issue("north"), folder, force=True)
        shutil.copy(path, folder / changed)
        os.chmod(folder / changed, 0o600)
        found = Identity.load(folder / "ca.crt", folder / "north.crt", folder / "north.key")
        show(folder)
        return found

    return read


AUTHORITY = Authority.create()


def _requests(folder: Path) -> Sequence[bytes]:
    return [make_request(new_key(), "north", "party", ["10.0.0.1", "north.example"])]


def _signed(path: Path) -> object:
    """Signs whatever is asked for, if it fits; the certificate is one of a member."""
    folder = path.parent / "signing"
    shutil.rmtree(folder, ignore_errors=True)
    AUTHORITY.write(folder)
    write_identity(AUTHORITY.issue("south"), folder)
    signed = sign(folder, judge(folder, read_request(path), None))
    assert AUTHORITY.has_issued(read_certificate(signed.read_bytes()))
    return signed


def _pki(changed: str) -> Callable[[Path], object]:
    """Issues, shows and revokes with an authority of which one file is another."""

    def read(path: Path) -> object:
        folder = path.parent / "authority"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        AUTHORITY.write(folder)
        AUTHORITY.revoke(folder, [7])
        shutil.copy(path, folder / changed)
        authority = Authority.read(folder)
        authority.issue("north")
        authority.revoke(folder, [9])
        return show(folder)

    return read


def _keys(folder: Path) -> Sequence[bytes]:
    return [AUTHORITY.issue("north").key_pem]


def _lists(folder: Path) -> Sequence[bytes]:
    AUTHORITY.write(folder, force=True)
    AUTHORITY.revoke(folder, [1, 2, 3])
    found = (folder / "ca.crl").read_bytes()
    (folder / "ca.crl").unlink()
    return [found]


def _party(path: Path) -> object:
    (path.parent / "federation.toml").write_text(federation_toml([7101, 7102, 7103]))
    return PartyConfig.load(path)


def _release_parts(folder: Path) -> Path:
    place = folder / "release"
    if not place.exists():
        release_here(place, folder)
    return place


def _of_release(name: str) -> Reader:
    def read(path: Path) -> object:
        place = path.parent / "read-release"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(path.parent / "release", place)
        shutil.copy(path, place / name)
        return verify_folder(place)

    return Reader(lambda folder: [(_release_parts(folder) / name).read_bytes()], read)


def _anonymize(path: Path) -> object:
    (path.parent / "people.csv").write_bytes(_people_csv(path.parent)[0])
    return load_anonymization(path)


def _table(form: str) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        with contextlib.suppress(ComineError):
            guess_format(str(path), "table")
        return load_table(path, form)

    return read


def _transactions(form: str) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        with contextlib.suppress(ComineError):
            guess_format(str(path))
        return load_transactions(path, form)

    return read


def _copied(form: str, options: SourceOptions) -> Callable[[Path], object]:
    """Reads a file twice, one after the other, and in another encoding."""

    def read(path: Path) -> object:
        twice = path.parent / "twice"
        twice.mkdir(exist_ok=True)
        for name in ("a", "b"):
            shutil.copy(path, twice / f"{name}.{form}")
        return load_table(str(twice / f"*.{form}"), form, options=options)

    return read


def _workbook(path: Path) -> object:
    book = path.with_suffix(".xlsx")
    shutil.copy(path, book)
    with contextlib.suppress(ComineError):
        guess_format(str(book))
    return load_transactions(book, "long")


def _sql(kind: str) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        url, query = f"{kind}:///{path}", "select id, item from rows"
        with contextlib.suppress(ComineError):
            load_table(url, "sql", query=query)
        return load_transactions(url, "sql", query=query)

    return read


def _catalogue(path: Path) -> object:
    job = path.with_name("with-catalogue.toml")
    job.write_text(JOB.replace("max_length = 4", f'max_length = 4\nuniverse = "{path.name}"'))
    return load_job(job)


def _labels(path: Path) -> object:
    collection = path.with_name("with-labels.toml")
    collection.write_text(COLLECTION.replace("size = 16", f'domain = "{path.name}"'))
    return CollectionSpec.load(collection)


def _completed(path: Path) -> object:
    return parties_of_job(SimpleNamespace(args=[str(path)], params={}), "n")  # type: ignore[arg-type]


def _of_node(path: Path) -> object:
    """Rows as a node sends them."""
    draft = path.parent / "from-node"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    shutil.copy(path, draft / ROWS_OF_A_NODE)

    async def complete() -> None:
        node = ReleasingNode(AUTHORITY.issue("hub", "coordinator"), "north", "127.0.0.1:1")
        try:
            node.complete(draft)
        finally:
            await node.close()

    asyncio.run(complete())
    return None


def _csv_blocks(path: Path) -> object:
    return [block.num_rows for block in CsvBlocks(path, ",").blocks(["zip", "age"])]


def _parquet_blocks(path: Path) -> object:
    found = ParquetBlocks(path)
    return [block.num_rows for block in found.blocks(found.column_names[1:])]


def _sorted_run(folder: Path) -> Sequence[bytes]:
    counted = CountedRows(folder, most=0)
    counted.add(pa.Table.from_pylist(ROWS))
    return [path.read_bytes() for path in folder.glob("*.arrow")]


def _arrow(folder: Path) -> Sequence[bytes]:
    sink, table = pa.BufferOutputStream(), pa.Table.from_pylist(ROWS)
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return [bytes(sink.getvalue().to_pybytes())]


def _level(folder: Path) -> Sequence[bytes]:
    level = KeptLevel(9, np.array([[0, 1], [1, 2]], np.int32), np.array([3, 4]), {"north": ["a", "b", "c"]})
    return [level.pack(), dataclasses.replace(level, supports=None).pack()]


def _named(path: Path) -> object:
    return unpack_named("north", path.read_bytes(), SimpleNamespace(threshold=1), None)  # type: ignore[arg-type]


def _ledger(folder: Path) -> Sequence[bytes]:
    ledger = WindowLedger(3, 1.0)
    ledger.spend(1, Fraction(1, 3))
    return [ledger.to_bytes()]


def _sliding(folder: Path) -> Sequence[bytes]:
    memo = SlidingMemo.drawn(MEMOISED, 5, 2.0, Randomness.from_seed(1))
    return [memo.to_bytes()]


def _bytes(read: Callable[[bytes], object]) -> Callable[[Path], object]:
    return lambda path: read(path.read_bytes())


def _mechanisms(folder: Path) -> Sequence[bytes]:
    return [document(oracle(name, Domain(4), 1.0)) for name in ("grr", "olh", "hr")]


def _state(folder: Path) -> Sequence[bytes]:
    found = oracle("grr", Domain(4), 1.0)
    total = Aggregator(found)
    return [total.to_bytes()]


READERS: dict[str, Reader] = {
    "job": Reader(texts(JOB, PRIVATE, MODEL), load_job, "job.toml"),
    "federation": Reader(texts(federation_toml([7101, 7102, 7103])), Federation.load, "federation.toml"),
    "party": Reader(texts(party_toml("north", policy="max_jobs = 5")), _party, "party.toml"),
    "collection": Reader(texts(COLLECTION), CollectionSpec.load, "collection.toml"),
    "anonymize": Reader(texts(ANONYMIZE), _anonymize, "anonymize.toml"),
    "certificate": Reader(_certificates, _identity("north.crt"), pem=True),
    "authority": Reader(_certificates, _identity("ca.crt"), pem=True),
    "key": Reader(_keys, _identity("north.key"), pem=True),
    "pki-certificate": Reader(_certificates, _pki("ca.crt"), pem=True),
    "pki-key": Reader(_keys, _pki("ca.key"), pem=True),
    "pki-list": Reader(_lists, _pki("ca.crl"), pem=True),
    "request": Reader(_requests, _signed, pem=True),
    "key-of-request": Reader(_keys, lambda path: make_request(path.read_bytes(), "north", "party", []), pem=True),
    "list": Reader(_lists, lambda path: Trust.load(AUTHORITY.certificate_pem, Path("ca.crt"), path), pem=True),
    "basket": Reader(texts("bread milk\nmilk\n\nbeer bread\n"), _transactions("basket")),
    "long": Reader(texts("id,item\n1,bread\n1,milk\n2,bread\n"), _transactions("long")),
    "wide": Reader(texts("bread,milk\n1,0\n1,1\n"), _transactions("wide")),
    "csv-items": Reader(texts('bread,"mi,lk"\nmilk\n'), _transactions("csv")),
    "parquet-items": Reader(baskets_parquet_file, _transactions("parquet")),
    "table": Reader(_people_csv, _table("csv")),
    "parquet-table": Reader(_people_parquet, _table("parquet")),
    "block-csv": Reader(_people_csv, _csv_blocks),
    "block-parquet": Reader(_people_parquet, _parquet_blocks),
    "sorted-run": Reader(_sorted_run, lambda path: list(merged([path]))),
    "copied-csv": Reader(_people_csv, _copied("csv", SourceOptions(encoding="latin-1"))),
    "copied-parquet": Reader(_people_parquet, _copied("parquet", PLAIN)),
    "workbook": Reader(lambda _folder: [(Path(__file__).parents[1] / "mining" / "sales.xlsx").read_bytes()], _workbook),
    "sqlite": Reader(sqlite_file, _sql("sqlite")),
    "duckdb": Reader(duckdb_file, _sql("duckdb")),
    "verified-csv": Reader(_people_csv, read_csv),
    "verified-parquet": Reader(_people_parquet, read_parquet),
    "hierarchy": Reader(texts("10115;1011*;101**;*\n10116;1011*;101**;*\n"), lambda path: from_csv(path, ";")),
    "hierarchy-json": Reader(texts('{"*": {"a": ["b", "c"], "d": ["e"]}}'), from_json, "zip.json"),
    "rules": Reader(texts("bread, milk -> beer\n# no\na -> b\n"), read_rules),
    "values": Reader(texts("milk\nbread\nmilk\n"), load_collection),
    "shuffle-state": Reader(texts('{"counted": [1, 2]}'), read_state),
    "release-certificate": _of_release("certificate.json"),
    "release-csv": _of_release("release.csv"),
    "release-parquet": _of_release("release.parquet"),
    "catalogue": Reader(texts("bread\nmilk\n"), _catalogue, "items.txt"),
    "labels": Reader(texts("a\nb\nc\n"), _labels, "labels.txt"),
    "route": Reader(texts('[route]\nname = "weekly"\nshufflers = ["north"]\nsize = 4\n'), RouteSpec.load, "r.toml"),
    "completion": Reader(texts(JOB), _completed),
    "audited-party": Reader(texts(party_toml("north")), audited, "party.toml"),
    "release-labels": _of_release("labels.json"),
    "release-manifest": _of_release("manifest.json"),
    "rows-of-a-node": Reader(_arrow, _of_node),
    # What was kept or sent, as bytes.
    "mechanism": Reader(_mechanisms, _bytes(mechanism_of)),
    "ledger": Reader(_ledger, _bytes(WindowLedger.from_bytes)),
    "stream": Reader(lambda folder: [stream_method(name, 4, 1.0, 3).to_bytes() for name in METHODS], _bytes(restored)),
    "sliding-memo": Reader(_sliding, _bytes(lambda data: SlidingMemo.from_bytes(data, MEMOISED))),
    "schedule": Reader(texts('{"next":3}'), _bytes(read_schedule)),
    "stream-release": Reader(
        lambda folder: [packed_release(Release(1, np.ones(4), np.ones(4), 1, 5))], _bytes(release_of)
    ),
    "budget": Reader(lambda folder: [Budget(8).to_bytes()], _bytes(Budget.from_bytes)),
    "remembered": Reader(lambda folder: [weekly().canonical()], _bytes(remembered)),
    "named": Reader(texts('[["a",5],["b",7]]'), _named),
    "names": Reader(texts('["a","b"]'), _bytes(lambda data: unpack_names("north", data))),
    "level": Reader(_level, _bytes(KeptLevel.unpack), allowed=(ValueError,)),
    # What others sent, packed: their callers translate a ValueError.
    "state": Reader(_state, lambda path: Aggregator.from_bytes(path.read_bytes(), oracle("grr", Domain(4), 1.0))),
    "json": Reader(texts('{"a": ["\\u00e9"]}'), lambda path: read_json(path.read_bytes()), allowed=(ValueError,)),
}


SEEDS: dict[tuple[str, Path], Sequence[bytes]] = {}  # the same in all examples of a test


@pytest.mark.parametrize("kind", READERS)
@FUZZED
@given(data=st.data())
def test_a_file_is_read_or_refused(kind: str, folder: Path, data: st.DataObject) -> None:
    reader = READERS[kind]
    path = folder / reader.name
    seeds = SEEDS.setdefault((kind, folder), reader.seeds(folder))
    path.write_bytes(data.draw((mutated_pem if reader.pem else mutated)(seeds)))
    with contextlib.suppress(ComineError, *reader.allowed):
        reader.read(path)


@pytest.mark.parametrize("kind", READERS)
def test_an_honest_file_is_read(kind: str, folder: Path) -> None:
    """Else the ones that are made wrong show nothing."""
    reader = READERS[kind]
    first = reader.seeds(folder)[0]
    if kind in ("sqlite", "pki-certificate", "pki-key", "certificate", "authority", "key"):
        return  # of these a single honest part is not whole
    (folder / reader.name).write_bytes(first)
    reader.read(folder / reader.name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")
