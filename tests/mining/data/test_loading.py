"""Every format gives the transactions it describes, and every failure one sentence."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import sqlite3

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from link.errors import ConfigurationError, InputDataError
from mining.data.formats import text_sources
from mining.data.loading import load_transactions
from tests.examples import examples

AWKWARD = [
    "007",
    "7",
    "t",
    "NULL",
    "nan",
    " a",
    "a ",
    "two words",
    'q"uote',
    "com,ma",
    "[x]",
    "ä",
    "𝔘",
    "1e3",
    "\u00a0",
    "=1",
]


@pytest.fixture
def write(tmp_path):
    def write(data, name="data.txt"):
        path = tmp_path / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    return write


def rows(transactions):
    cuts = transactions.offsets.tolist()
    return [sorted(transactions.items[i] for i in transactions.indices[a:b]) for a, b in itertools.pairwise(cuts)]


def refused(source, form, error=InputDataError, **options):
    with pytest.raises(error) as caught:
        load_transactions(source, form, **options)
    assert type(caught.value) is error
    assert "\n" not in caught.value.message
    return caught.value.message


class TestBasket:
    @pytest.mark.parametrize(
        "text",
        ["b a b\n\nc\n", "b a\r\n  \r\nc\r\n", "\ufeffb\t a \n\n\nc", "\n b  a\n c\n\n", "a b\nc"],
    )
    def test_blanks(self, write, text):
        assert rows(load_transactions(write(text), "basket")) == [["a", "b"], ["c"]]

    def test_separator(self, write):
        path = write("two words|a||a\r\n\r\n |b\n||\n")
        assert rows(load_transactions(path, "basket", separator="|")) == [["a", "two words"], [" ", "b"], []]
        assert rows(load_transactions(write("a::b\nc"), "basket", separator="::")) == [["a", "b"], ["c"]]

    @pytest.mark.parametrize("name", ["data.gz", "data"])
    def test_gzip_by_content_or_name(self, write, name):
        assert rows(load_transactions(write(gzip.compress(b"a b\nc\n"), name), "basket")) == [["a", "b"], ["c"]]

    @pytest.mark.parametrize("text", ["", "\n\n", "\r\n", "\ufeff"])
    def test_nothing(self, write, text):
        assert load_transactions(write(text), "basket").n_rows == 0
        assert load_transactions(write(text), "basket", separator=",").n_rows == 0

    def test_with_a_separator_blanks_are_an_item(self, write):
        assert load_transactions(write(" \n\t\n"), "basket").n_rows == 0
        assert rows(load_transactions(write(" \n\t\n"), "basket", separator=",")) == [[" "], ["\t"]]

    def test_an_empty_file_is_no_gzip_file(self, write):
        message = refused(write(b"", "sales.gz"), "basket")
        assert "is not a whole gzip file" in message

    def test_items_are_bytes_in_order(self, write):
        transactions = load_transactions(write("007 7 B a ä \u00a0 Z"), "basket")
        assert transactions.items == ("007", "7", "B", "Z", "a", "\u00a0", "ä")
        assert transactions.items == tuple(sorted(transactions.items, key=str.encode))

    @pytest.mark.parametrize("separator", [None, " "])
    def test_long_text_is_taken_in_blocks(self, write, monkeypatch, separator):
        monkeypatch.setattr(text_sources, "BLOCK_BYTES", 40)
        expected = [sorted({str(i % 7), str(i), "ä"}) for i in range(200)]
        path = write("\n".join(" ".join(row) for row in expected))
        assert rows(load_transactions(path, "basket", separator=separator)) == expected


class TestCsv:
    def test_cells_are_items(self, write):
        text = 'citrus fruit,ready soups \n"com,ma","q""uote","two\nlines"\n\n,\n"",a\n'
        assert rows(load_transactions(write(text), "csv")) == [
            ["citrus fruit", "ready soups "],
            ["com,ma", 'q"uote', "two\nlines"],
            [],
            ["a"],
        ]

    @pytest.mark.parametrize("quote", ["", '"'])
    def test_cells_of_blanks_are_items(self, write, quote):
        text = f"{quote}  {quote}\n{quote}  {quote},x\n\t\n\nq\n"
        assert rows(load_transactions(write(text), "csv")) == [["  "], ["  ", "x"], ["\t"], ["q"]]

    def test_a_return_alone_is_told_in_words_of_files(self, write):
        assert "a carriage return stands alone" in refused(write('"a"\nb\rc\n'), "csv")

    def test_without_quotes(self, write):
        assert rows(load_transactions(write("a; b\n\n;\nc\r\n"), "csv", separator=";")) == [[" b", "a"], [], ["c"]]

    def test_broken_quotes(self, write):
        assert "line 2" in refused(write('a\n"b"c\n'), "csv")


class TestLong:
    def test_rows_of_an_id_belong_together(self, write):
        text = "item,x,id\nmilk,1,7\nbread,1,07\nmilk,,7\neggs,2,7\n,2,9\n"
        assert rows(load_transactions(write(text), "long")) == [["eggs", "milk"], ["bread"], []]

    def test_other_names_and_separator(self, write):
        text = 'order;"the;product"\r\n1;a\r\n1;"b;""c"\r\n'
        loaded = load_transactions(write(text), "long", separator=";", id_column="order", item_column="the;product")
        assert rows(loaded) == [["a", 'b;"c']]

    def test_header_only(self, write):
        assert load_transactions(write("id,item\n"), "long").n_rows == 0
        assert load_transactions(write("id,item"), "long").n_rows == 0

    def test_missing_columns(self, write):
        message = refused(write("id;item\n1;a\n"), "long")
        assert '"id"' in message
        assert "item" in refused(write("id,thing\n1,a\n"), "long")
        assert "more than one" in refused(write("id,item,item\n1,a,b\n"), "long")

    def test_ragged_and_nameless_lines(self, write):
        message = refused(write("id,item\n1,a\n1,secret,b\n"), "long")
        assert "line 3" in message
        assert "secret" not in message
        assert "line 4" in refused(write('id,item\n1,"a\nb"\n,c\n'), "long")
        assert "empty" in refused(write(""), "long")


class TestWide:
    def test_cells_are_bits(self, write):
        text = "id,milk,bread\n1,1,0\n2,true,TRUE\n3,False,0\n"
        loaded = load_transactions(write(text), "wide")
        assert rows(loaded) == [["milk"], ["bread", "milk"], []]
        assert loaded.items == ("bread", "milk")

    def test_without_ids(self, write):
        assert rows(load_transactions(write("a,b\n0,1\n1,1\n"), "wide")) == [["b"], ["a", "b"]]

    @pytest.mark.parametrize("cell", ["2", "", "yes", " 1"])
    def test_other_cells_are_named(self, write, cell):
        message = refused(write(f"id,milk,bread\n1,1,0\n\n2,0,{cell}\n"), "wide")
        assert '"bread"' in message
        assert "line 4" in message

    def test_headers(self, write):
        assert "no name" in refused(write("a,,b\n1,0,1\n"), "wide")
        assert "more than one" in refused(write("a,a\n1,0\n"), "wide")


class TestFiles:
    @pytest.mark.parametrize("form", ["basket", "long", "wide", "csv", "parquet"])
    def test_missing_files_and_folders(self, tmp_path, form):
        assert "no file" in refused(tmp_path / "nothing", form)
        assert "folder" in refused(tmp_path, form)

    def test_damaged_gzip(self, write):
        whole = gzip.compress(b"a b c\n" * 100)
        for data in (whole[:-9], whole[:20], whole[:-8] + b"12345678", b"not gzip"):
            assert "gzip" in refused(write(data, "data.dat.gz"), "basket")

    def test_not_utf8(self, write):
        assert "line 2" in refused(write(b"a\nb\xff\n"), "basket")
        assert "UTF-8" in refused(write("a b".encode("utf-16")), "basket")
        assert "zero byte" in refused(write("a b".encode("utf-16-le")), "basket")

    def test_wrong_options(self, write):
        path = write("a")
        assert "basket" in refused(path, "xlsx", ConfigurationError)
        refused(path, "basket", ConfigurationError, separator="")
        refused(path, "csv", ConfigurationError, separator="::")
        refused(path, "csv", ConfigurationError, query="select 1")
        refused("sqlite:///x", "sql", ConfigurationError)
        refused("mongodb://host/db", "sql", ConfigurationError, query="select 1")


class TestParquet:
    def table(self, tmp_path, columns):
        path = tmp_path / "data.parquet"
        pq.write_table(pa.table(columns), path)
        return path

    @pytest.mark.parametrize(
        "item",
        [
            pa.array(["007", "b", None, "", "007"]),
            pa.array(["007", "b", None, "", "007"]).dictionary_encode(),
            pa.array(["007", "b", None, "", "007"], pa.large_string()),
        ],
    )
    def test_long(self, tmp_path, item):
        path = self.table(tmp_path, {"id": [5, 6, 7, 8, 5], "item": item})
        assert rows(load_transactions(path, "parquet")) == [["007"], ["b"], [], []]

    def test_whole_numbers_are_items(self, tmp_path):
        path = self.table(tmp_path, {"id": ["x", "x"], "item": [10, 2]})
        assert rows(load_transactions(path, "parquet")) == [["10", "2"]]

    def test_lists(self, tmp_path):
        path = self.table(tmp_path, {"id": [1, 2, 3, 4], "basket": [["b", "a", "b"], [], None, ["c", None]]})
        assert rows(load_transactions(path, "parquet")) == [["a", "b"], [], [], ["c"]]

    def test_wide(self, tmp_path):
        path = self.table(tmp_path, {"id": [1, 2], "a": [True, False], "b": [1, 1]})
        assert rows(load_transactions(path, "parquet")) == [["a", "b"], ["b"]]

    def test_neither(self, tmp_path, write):
        assert '"a"' in refused(self.table(tmp_path, {"a": [1, 2]}), "parquet")
        assert '"item"' in refused(self.table(tmp_path, {"id": [1], "item": [1.5]}), "parquet")
        assert "empty ids" in refused(self.table(tmp_path, {"id": ["a", None], "item": ["x", "y"]}), "parquet")
        assert "Parquet" in refused(write("a b c"), "parquet")


class TestSql:
    QUERY = "select id, item from sales order by rowid"

    def test_what_sqlite_says_of_a_value_is_not_repeated(self, tmp_path):
        connection = sqlite3.connect(tmp_path / "data.db")
        connection.execute("CREATE TABLE bought (id INTEGER, item TEXT)")
        connection.execute("INSERT INTO bought VALUES (1, CAST(x'736563726574FF' AS TEXT))")
        connection.commit()
        connection.close()
        source = f"sqlite:///{tmp_path}/data.db"
        assert "secret" not in refused(source, "sql", query="SELECT id, item FROM bought")
        assert "no such column" in refused(source, "sql", query="SELECT id, thing FROM bought")

    @pytest.fixture(params=["sqlite", "duckdb"])
    def url(self, request, tmp_path):
        path = tmp_path / f"sales.{request.param}"
        connection = sqlite3.connect(path) if request.param == "sqlite" else duckdb.connect(str(path))
        connection.execute("create table sales (id integer, item text)")
        for row in [(1, "007"), (2, None), (1, "b"), (3, ""), (1, "b")]:
            connection.execute("insert into sales values (?, ?)", row)
        connection.commit()
        connection.close()
        return f"{request.param}:///{path}"

    def test_long(self, url):
        assert rows(load_transactions(url, "sql", query=self.QUERY)) == [["007", "b"], [], []]
        query = "select id as a, length(item) as b from sales order by rowid"
        assert rows(load_transactions(url, "sql", query=query, id_column="a", item_column="b"))[0] == ["1", "3"]

    def test_failures(self, url, tmp_path):
        refused(url, "sql", query="select nonsense")
        refused(url, "sql", query="selec 1")
        refused(url, "sql", query="delete from sales")
        assert '"item"' in refused(url, "sql", query="select id, item as thing from sales")
        refused(url, "sql", query="select null as id, 'x' as item")
        refused(url, "sql", query="select 1 as id, 1.5::double as item" if "duckdb" in url else "select 1 id, 1.5 item")
        assert "no database" in refused(f"{url}.gone", "sql", query=self.QUERY)

    def test_not_a_database(self, write):
        path = write("a" * 5000)
        for scheme in ("sqlite", "duckdb"):
            refused(f"{scheme}:///{path}", "sql", query=self.QUERY)

    def test_a_password_is_never_repeated(self):
        with pytest.raises(InputDataError) as caught:
            load_transactions("postgres://user:hunter2@127.0.0.1:1/db", "sql", query="select 1 as id, 'a' as item")
        assert "hunter2" not in str(caught.value)


@examples(13, 100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(database=st.lists(st.lists(st.sampled_from(AWKWARD), max_size=5), min_size=1, max_size=12))
def test_all_formats_agree_byte_for_byte(tmp_path, database):
    expected = [sorted(set(row)) for row in database]
    filled = [row or [""] for row in database]
    files = {"csv": filled, "long": [["id", "item"], *([str(i), x] for i, row in enumerate(filled) for x in row)]}
    files["wide"] = [["id", *AWKWARD], *([str(i), *(int(x in row) for x in AWKWARD)] for i, row in enumerate(database))]
    for form, records in files.items():
        text = io.StringIO()
        csv.writer(text, quoting=csv.QUOTE_ALL).writerows(records)
        (tmp_path / form).write_bytes(text.getvalue().encode())
        assert rows(load_transactions(tmp_path / form, form)) == expected, form
    pq.write_table(pa.table({"x": pa.array(database, pa.list_(pa.string()))}), tmp_path / "parquet")
    assert rows(load_transactions(tmp_path / "parquet", "parquet")) == expected


def test_parquet_has_no_separator(tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"id": ["1"], "item": ["a"]}), path)
    assert rows(load_transactions(path, "parquet")) == [["a"]]
    assert "means nothing" in refused(path, "parquet", ConfigurationError, separator=",")
