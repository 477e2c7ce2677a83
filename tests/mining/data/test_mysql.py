"""MySQL as a source: a real MariaDB server, whose rows are those of other sources; nobody sees its passwords."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from link.errors import ComineError, InputDataError, outward
from mining.data.loading import load_table, load_transactions
from mining.data.schemes import mysql
from mining.data.schemes.registry import database_of, unread
from mining.data.source_options import PLAIN, SourceOptions
from mining.partitioned.cores import Cores
from mining.partitioned.encoding.source import TableSource, TransactionSource
from mining.partitioned.expected_source import expected_source
from mining.partitioned.in_process import InProcess
from mining.partitioned.sources import encoding_of
from tests.errors import fails
from tests.mining.partitioned.world import encode_here
from tests.mysql_server import PASSWORD, MySqlServer, mysql_server
from tests.remembered import spawn_workers

pytestmark = pytest.mark.turn(6)

BASKETS = "SELECT receipt AS id, article AS item FROM sales ORDER BY receipt, article"
PEOPLE = "SELECT * FROM people ORDER BY id"
ENV = SourceOptions(password_env="SHOP_PASSWORD")


@pytest.fixture(scope="module")
def server() -> Iterator[MySqlServer]:
    with mysql_server() as found:
        found.run(
            "CREATE TABLE sales (receipt int, article varchar(20))",
            "INSERT INTO sales VALUES (1, 'bread'), (1, 'müsli'), (2, 'bread'), (2, 'bread'), (3, NULL)",
            "CREATE TABLE people (id uuid, age tinyint, many bigint unsigned, price decimal(8, 2), born date, "
            "wakes time, moved datetime, seen timestamp NULL, smokes boolean, flags bit(10), size double, note text, "
            "kind enum('a', 'b'), more json)",
            "SET time_zone = '+02:00'",
            "INSERT INTO people VALUES ('00000000-0000-0000-0000-000000000001', 44, 18446744073709551615, 1.50, "
            "'2001-02-03', '-07:30:00', '2026-01-02 03:04:05', '2026-01-02 05:04:05', true, b'1000000001', 1.80, "
            "'a, \"b\"', 'b', '{\"x\": 1}'), "
            "('00000000-0000-0000-0000-000000000002', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', "
            "NULL, NULL)",
        )
        yield found


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
    spawn_workers(monkeypatch)  # which read it


def test_transactions_of_mysql(server: MySqlServer, tmp_path: Path) -> None:
    rows = load_transactions(server.url, "sql", query=BASKETS, options=ENV)
    assert [[rows.items[place] for place in row] for row in np.split(rows.indices, rows.offsets[1:-1])] == [
        ["bread", "müsli"],
        ["bread"],
        [],
    ]
    source = TransactionSource(server.url, "sql", query=BASKETS, options=ENV)
    stored = encoding_of(source, (), tmp_path / "blocks", Cores()).run()
    assert stored.digest == rows.digest()


def test_a_table_of_mysql(server: MySqlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encode_here(monkeypatch)  # as processes encode transactions
    table = load_table(server.url, "sql", query=PEOPLE, options=ENV)
    cells = {column.name: column.values.to_pylist() for column in table.columns}
    assert cells == {
        "age": ["44"],
        "many": ["18446744073709551615"],
        "price": ["1.50"],
        "born": ["2001-02-03"],
        "wakes": ["-07:30:00"],
        "moved": ["2026-01-02 03:04:05.000000"],
        "seen": ["2026-01-02 03:04:05.000000Z"],
        "smokes": ["1"],
        "flags": ["513"],
        "size": ["1.8"],
        "note": ['a, "b"'],
        "kind": ["b"],
        "more": ['{"x": 1}'],
    }
    assert table.ids[0].to_pylist() == [f"00000000-0000-0000-0000-00000000000{place}" for place in (1, 2)]
    source = TableSource(server.url, "sql", query=PEOPLE, options=ENV)
    stored = encoding_of(source, (), tmp_path / "blocks", Cores()).run()
    assert stored.rows(InProcess).digest() == table.digest()


def test_many_rows_come_in_batches_of_mysql(server: MySqlServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has enough does not wait for the rest."""
    monkeypatch.setattr(mysql, "BATCH_ROWS", 1000)
    many = "SELECT seq AS id, 'tea' AS item FROM seq_1_to_{}"
    assert load_transactions(server.url, "sql", query=many.format(2500), options=ENV).n_rows == 2500
    scheme = database_of(server.url)
    assert isinstance(scheme, mysql.MySql)
    with scheme.query(server.url, many.format(2_000_000_000), ENV) as batches:
        assert batches.read_next_batch().num_rows == 1000


def test_what_is_expected_of_mysql(server: MySqlServer) -> None:
    """By the statistics of the server, before a row is read."""
    server.run("CREATE TABLE many AS SELECT seq AS id, 'tea' AS item FROM seq_1_to_20000")

    def expected(query: str, options: SourceOptions = ENV) -> int:
        return expected_source(TransactionSource(server.url, "sql", query=query, options=options))

    query = "SELECT id, item FROM many"
    one = 32 * 2 * 20_000
    assert 0.8 * one < expected(f"{query};\n") < 1.2 * one
    assert 1.6 * one < expected(f"{query} UNION ALL SELECT a.id, b.item FROM many a JOIN many b USING (id)") < 2.4 * one
    assert expected("SELECT 1 AS id, 2 AS item") == 32 * 2
    assert [expected(wrong) for wrong in ("SELEC 1", "DELETE FROM many", " ")] == [0, 0, 0]
    assert expected(query, PLAIN) == 0


def test_encrypted_connections_of_mysql(server: MySqlServer, monkeypatch: pytest.MonkeyPatch) -> None:
    encrypted = "SELECT 1 AS id, variable_value AS item FROM information_schema.session_status WHERE {}"
    encrypted = encrypted.format("variable_name = 'Ssl_version'")
    assert load_transactions(server.tls_url, "sql", query=encrypted, options=ENV).items == ("TLSv1.3",)
    for source in (
        server.tls_url.replace("127.0.0.1", "localhost"),
        server.tls_url.partition("?")[0] + "?ssl-mode=verify-ca",
    ):
        with fails("E101") as caught:
            load_transactions(source, "sql", query=encrypted, options=ENV)
        assert "certificate is not trusted" in caught.value.message
        _check_discretion(caught.value, server)
    plain = server.tls_url.partition("?")[0]
    for mode, found in (("disabled", ()), ("REQUIRED", ("TLSv1.3",))):
        assert load_transactions(f"{plain}?ssl-mode={mode}", "sql", query=encrypted, options=ENV).items == found
    monkeypatch.setattr(mysql, "is_loopback", lambda _: False)  # as it is with a server elsewhere
    with fails("E101") as caught:
        load_transactions(plain, "sql", query=encrypted, options=ENV)
    assert "certificate is not trusted" in caught.value.message


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT * FROM nowhere", "nowhere' doesn't exist"),
        ("SELEC 1", "error in your SQL syntax"),
        ("SELECT nothing FROM sales", "Unknown column"),
        ("SELECT receipt AS id FROM sales", 'one column named "item"'),
        ("DELETE FROM sales", "must be a select"),
        ("DROP TABLE sales", "must be a select"),
        ("SET @a = 1", "must be a select"),
        ("SELECT 1 AS id, (SELECT article FROM sales) AS item", "while it ran"),
        ("SELECT receipt AS id, CAST('0000-00-00' AS DATE) AS item FROM sales", "NULLIF(column, 0)"),
        ("SELECT receipt AS id, CAST(article AS BINARY) AS item FROM sales", "neither text nor whole numbers"),
        ("SELECT SLEEP(0) AS id; DROP TABLE sales", "error in your SQL syntax"),
        (" ", "while it ran"),
    ],
)
def test_queries_that_fail_of_mysql(server: MySqlServer, query: str, words: str) -> None:
    with fails("E101") as caught:
        load_transactions(server.url, "sql", query=query, options=ENV)
    assert words in caught.value.message
    _check_discretion(caught.value, server)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://ann@nowhere.invalid/shop", "nobody answers there"),
        ("mariadb://ann@127.0.0.1:1/shop", "nobody answers there"),
        ("mysql://ann@/shop?unix_socket=/nowhere", "nobody answers there"),
        ("mysql://ann@/cellar?unix_socket={socket}", "may not use this database"),
        ("mysql://ann@/none?unix_socket={socket}", "may not use this database"),
        ("mysql://root@/none?unix_socket={socket}", "refuses the user or the password"),
        ("mysql://bob@/shop?unix_socket={socket}", "refuses the user or the password"),
        ("mysql://ann@127.0.0.1/shop?ssl-ca=/nowhere", "ssl-ca cannot be read"),
    ],
)
def test_servers_that_cannot_be_read_of_mysql(server: MySqlServer, url: str, words: str) -> None:
    with fails("E101") as caught:
        load_transactions(url.format(socket=server.folder / "socket"), "sql", query=BASKETS, options=ENV)
    assert words in caught.value.message
    _check_discretion(caught.value, server)


def test_a_password_that_is_wrong_or_missing_of_mysql(server: MySqlServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "hunter2")
    for options in (PLAIN, ENV):
        with fails("E101") as caught:
            load_transactions(server.url, "sql", query=BASKETS, options=options)
        assert "hunter2" not in _all_words(caught.value)


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("mysql://ann:hunter2@db/shop", "holds a password"),
        ("mysql://ann@db/shop?password=x", "something unknown"),
        ("mysql://ann@db/shop?ssl-mode=maybe", "unknown ssl-mode"),
        ("mysql://ann@db:many/shop", "a port that is no number"),
        ("mysql://ann@db", "names no database"),
        ("mariadb://ann@db/shop?ssl-mode=REQUIRED", ""),
    ],
)
def test_sources_that_cannot_be_of_mysql(source: str, fault: str) -> None:
    assert fault in unread(source)
    assert bool(fault) == bool(unread(source))


def test_places_of_mysql() -> None:
    place = database_of("mysql://a@b/c").place
    assert place("mysql://ann@Server/shop") == place("mariadb://bob@server:3306/shop?ssl-mode=required")
    assert place("mysql://server/shop") != place("mysql://server:3307/shop")
    assert place("mysql:///shop?unix_socket=/a") != place("mysql:///shop?unix_socket=/b")


def _check_discretion(error: ComineError, server: MySqlServer) -> None:
    """Nothing is told of password and rows at all, and nothing of the place to other parties."""
    assert isinstance(error, InputDataError)
    assert PASSWORD not in _all_words(error)
    assert "müsli" not in error.message
    told = outward(error, "north").message
    assert all(word not in told for word in ("ann@", "invalid", "127.0.0.1", str(server.folder), "MySQL", "sales"))


def _all_words(error: BaseException | None) -> str:
    """The sentence and those of its causes, as a log with tracebacks shows them."""
    return "" if error is None else f"{error!r} {_all_words(None if error.__suppress_context__ else error.__context__)}"
