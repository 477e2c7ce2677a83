"""PostgreSQL as a source: a real server, whose rows are those of other sources, and whose passwords nobody sees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from link.errors import ComineError, InputDataError, outward
from mining.data.loading import load_table, load_transactions
from mining.data.source_options import SourceOptions
from mining.partitioned.cores import Cores
from mining.partitioned.encoding.source import TableSource, TransactionSource
from mining.partitioned.expected_source import expected_source
from mining.partitioned.in_process import InProcess
from mining.partitioned.sources import encoding_of
from tests.errors import fails
from tests.mining.partitioned.world import encode_here
from tests.postgres_server import PASSWORD, PostgresServer, postgres_server
from tests.remembered import spawn_workers

pytestmark = pytest.mark.turn(6)

BASKETS = "SELECT receipt AS id, article AS item FROM sales ORDER BY receipt, article"
PEOPLE = "SELECT * FROM people ORDER BY id"
ENV = SourceOptions(password_env="SHOP_PASSWORD")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as found:
        found.run(
            "CREATE TABLE sales (receipt int, article text)",
            "INSERT INTO sales VALUES (1, 'bread'), (1, 'müsli'), (2, 'bread'), (2, 'bread'), (3, NULL)",
            "CREATE TABLE people (id uuid, age smallint, price numeric(8, 2), born date, seen timestamptz, "
            "smokes boolean, size float8, note text, more jsonb)",
            "INSERT INTO people VALUES ('00000000-0000-0000-0000-000000000001', 44, 1.50, '2001-02-03', "
            "'2026-01-02 03:04:05+00', true, 1.80, 'a, \"b\"', '{\"x\": 1}'), "
            "('00000000-0000-0000-0000-000000000002', NULL, NULL, NULL, NULL, NULL, NULL, '', NULL)",
        )
        yield found


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
    spawn_workers(monkeypatch)  # which read it
    monkeypatch.setenv("HOME", "/nowhere")  # with no .pgpass


def test_transactions(server: PostgresServer, tmp_path: Path) -> None:
    rows = load_transactions(server.url, "sql", query=BASKETS, options=ENV)
    assert [[rows.items[place] for place in row] for row in np.split(rows.indices, rows.offsets[1:-1])] == [
        ["bread", "müsli"],
        ["bread"],
        [],
    ]
    source = TransactionSource(server.url, "sql", query=BASKETS, options=ENV)
    stored = encoding_of(source, (), tmp_path / "blocks", Cores()).run()
    assert stored.digest == rows.digest()


def test_a_table(server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encode_here(monkeypatch)  # as processes encode transactions
    table = load_table(server.url, "sql", query=PEOPLE, options=ENV)
    cells = {column.name: column.values.to_pylist() for column in table.columns}
    assert cells == {
        "age": ["44"],
        "price": ["1.50"],
        "born": ["2001-02-03"],
        "seen": ["2026-01-02 03:04:05.000000Z"],
        "smokes": ["true"],
        "size": ["1.8"],
        "note": ['a, "b"'],
        "more": ['{"x": 1}'],
    }
    assert table.ids[0].to_pylist() == [f"00000000-0000-0000-0000-00000000000{place}" for place in (1, 2)]
    source = TableSource(server.url, "sql", query=PEOPLE, options=ENV)
    stored = encoding_of(source, (), tmp_path / "blocks", Cores()).run()
    assert stored.rows(InProcess).digest() == table.digest()


def test_what_is_expected(server: PostgresServer) -> None:
    """By the statistics of the server, before a row is read."""
    server.run("CREATE TABLE many AS SELECT g AS id, 'tea' AS item FROM generate_series(1, 20000) g", "ANALYZE many")
    query = "SELECT id, item FROM many"
    assert expected_source(TransactionSource(server.url, "sql", query=query, options=ENV)) == 32 * 2 * 20_000
    assert expected_source(TableSource(server.url, "sql", query=f"{query} WHERE id < 0", options=ENV)) <= 32 * 2 * 10
    for wrong in ("SELEC 1", "DELETE FROM many", " "):
        assert expected_source(TransactionSource(server.url, "sql", query=wrong, options=ENV)) == 0
    assert expected_source(TransactionSource(server.url, "sql", query=query)) == 0


def test_a_password_in_a_file(server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, libpq = tmp_path / "password", tmp_path / "pgpass"
    file.write_text(f"{PASSWORD}\n")
    file.chmod(0o600)
    loaded = load_transactions(server.url, "sql", query=BASKETS, options=SourceOptions(password_file=file))
    libpq.write_text("*:*:*:*:" + PASSWORD.replace(":", "\\:"))
    libpq.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(libpq))
    assert load_transactions(server.url, "sql", query=BASKETS).digest() == loaded.digest()
    file.chmod(0o644)
    with fails("E100"):
        load_transactions(server.url, "sql", query=BASKETS, options=SourceOptions(password_file=file))
    for options in (SourceOptions(password_file=tmp_path / "none"), SourceOptions(password_env="NO_SUCH_PASSWORD")):
        with fails("E100"):
            load_transactions(server.url, "sql", query=BASKETS, options=options)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT * FROM nowhere", 'relation "nowhere" does not exist'),
        ("SELEC 1", "syntax error"),
        ("SELECT receipt AS id FROM sales", 'one column named "item"'),
        ("DELETE FROM sales", "must be a select"),
        ("SELECT 1/(receipt - 3) AS id, article AS item FROM sales", "while it ran"),
        ("SELECT CAST(article AS int) AS id, article AS item FROM sales", "while it ran"),
        ("SELECT receipt AS id, ARRAY[article] AS item FROM sales", "neither text nor whole numbers"),
        (" ", "while it ran"),
    ],
)
def test_queries_that_fail(server: PostgresServer, query: str, words: str) -> None:
    with fails("E101") as caught:
        load_transactions(server.url, "sql", query=query, options=ENV)
    assert words in caught.value.message
    _check_discretion(caught.value, server)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgres://ann@nowhere.invalid/shop", "host is not known"),
        ("postgres://ann@127.0.0.1:1/shop", "nobody listens"),
        ("postgres://ann@/postgres?host=/nowhere", "nobody listens"),
        ("{url}&dbname=cellar", "no such database"),
        ("{url}&user=bob", "refuses the user or the password"),
        ("{url}&nonsense=1", "check host, database"),
    ],
)
def test_servers_that_cannot_be_read(server: PostgresServer, url: str, words: str) -> None:
    with fails("E101") as caught:
        load_transactions(url.format(url=server.url), "sql", query=BASKETS, options=ENV)
    assert words in caught.value.message
    _check_discretion(caught.value, server)


def test_a_password_that_is_wrong_or_missing(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with fails("E101") as caught:
        load_transactions(server.url, "sql", query=BASKETS)
    assert "asks for a password" in caught.value.message
    monkeypatch.setenv("SHOP_PASSWORD", "hunter2")
    with fails("E101") as caught:
        load_transactions(server.url, "sql", query=BASKETS, options=ENV)
    assert "hunter2" not in _all_words(caught.value)


def _check_discretion(error: ComineError, server: PostgresServer) -> None:
    """Nothing is told of password and rows at all, and nothing of the place to other parties."""
    assert isinstance(error, InputDataError)
    assert PASSWORD not in _all_words(error)
    assert "müsli" not in error.message
    told = outward(error, "north").message
    assert all(word not in told for word in ("ann@", "invalid", "127.0.0.1", str(server.folder), "PostgreSQL", "sales"))


def _all_words(error: BaseException | None) -> str:
    """The sentence and those of its causes, as a log with tracebacks shows them."""
    return "" if error is None else f"{error!r} {_all_words(None if error.__suppress_context__ else error.__context__)}"
