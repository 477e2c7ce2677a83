"""`comine quickstart`: its parties, its thresholds, and what it refuses before anything is started."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pytest

from comine.quickstart.sources import of_files
from comine.quickstart.task import Wanted, fitting_support
from jobs.loading import load_job
from mining.data.source_options import SourceOptions
from mining.data.transactions import Transactions
from tests.cli.conftest import Comine
from tests.errors import fails


def rows_of(data: Transactions) -> list[set[str]]:
    ends = data.offsets.tolist()
    return [{data.items[i] for i in data.indices[a:b]} for a, b in pairwise(ends)]


def test_one_file_is_dealt_to_three_parties(tmp_path: Path) -> None:
    (tmp_path / "all.dat").write_text("".join(f"bread item{number}\n" for number in range(8)))
    said: list[str] = []
    found = of_files([str(tmp_path / "all.dat")], tmp_path / "out", said.append)
    assert [source.name for source in found] == ["north", "south", "east"]
    assert [source.data.n_rows for source in found] == [3, 3, 2]
    dealt = [row for source in found for row in rows_of(source.data)]
    assert sorted(map(sorted, dealt)) == [["bread", f"item{number}"] for number in range(8)]
    assert any("DEALT" in line for line in said)


def test_parties_are_called_after_their_files(tmp_path: Path) -> None:
    names = ["North Shop.csv", "all.csv", "south.dat.gz.csv", "south.txt", "€.txt", "12.txt"]
    for name in names:
        (tmp_path / name).write_text("bread butter\nmilk tea\n")
    found = of_files([str(tmp_path / name) for name in names], tmp_path / "out", lambda _: None)
    assert [source.name for source in found] == ["north-shop", "party-2", "south", "south-4", "party-5", "party-6"]
    assert all(source.path.is_absolute() for source in found)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("rows", "support"),
    [
        ([["bread", "milk"]] * 50, "0.03"),  # never enough to see, down to a count of two
        ([[f"i{n}" for n in range(12)]] * 50, "0.5"),
        ([[f"i{n}" for n in range(40)]] * 50, "0.5"),  # more than anybody looks at
        ([], "0.5"),
    ],
)
def test_the_least_support_suits_the_data(rows: list[list[str]], support: str) -> None:
    assert fitting_support([Transactions.from_rows(rows)]) == Decimal(support)


@pytest.mark.parametrize("task", ["rules", "itemsets"])
def test_the_job_loads(tmp_path: Path, task: str) -> None:
    wanted = Wanted.of(task, "0.25", "0.6")
    (tmp_path / "job.toml").write_text(wanted.job(["north", "south"], wanted.min_support or 1))
    spec = load_job(tmp_path / "job.toml")
    assert (spec.job.task, spec.job.parties, spec.itemsets.min_support) == (task, ("north", "south"), Decimal("0.25"))
    assert (spec.rules is None) == (task == "itemsets")


def test_text_in_another_encoding_and_sheets_of_workbooks(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("id,item\n1,Müsli\n1,tea\n2,tea\n".encode("latin-1"))
    book = Path(__file__).parents[2] / "mining" / "data" / "sales.xlsx"
    found = of_files([str(tmp_path / "a.csv"), str(book)], tmp_path, lambda _: None, SourceOptions("latin-1", "sales"))
    assert rows_of(found[0].data) == [{"Müsli", "tea"}, {"tea"}]
    assert found[0].settings == {"format": "long", "encoding": "latin-1"}
    assert found[1].settings == {"format": "long", "sheet": "sales"}


def test_an_encoding_is_of_files_that_are_not_in_utf_8(tmp_path: Path) -> None:
    for name, encoding in (("süd.csv", "latin-1"), ("nord.csv", "utf-8"), ("ost.csv", "ascii")):
        text = "id,item\n1,M{}sli\n1,tea\n2,tea\n".format("ü" if encoding != "ascii" else "ue")
        (tmp_path / name).write_bytes(text.encode(encoding))
    files = [str(tmp_path / name) for name in ("süd.csv", "nord.csv", "ost.csv")]
    found = of_files(files, tmp_path, lambda _: None, SourceOptions("latin-1"))
    assert [each.name for each in found] == ["sud", "nord", "ost"]
    assert [sorted(rows_of(each.data)[0])[0] for each in found] == ["Müsli", "Müsli", "Muesli"]


def test_what_is_no_transactions_is_refused(tmp_path: Path) -> None:
    with fails("E101"):
        of_files([str(tmp_path / "missing.dat")], tmp_path, lambda _: None)
    (tmp_path / "one.dat").write_text("bread\n")
    with fails("E101"):
        of_files([str(tmp_path / "one.dat")], tmp_path, lambda _: None)
    with fails("E100"):
        of_files(["many.dat"] * 17, tmp_path, lambda _: None)


def test_wrong_command_lines_and_folders(comine: Comine, tmp_path: Path) -> None:
    (tmp_path / "a.dat").write_text("bread butter\n" * 9)
    for wrong in (["--task", "k-means"], ["--min-support", "0"], ["--min-confidence", "nan"], ["--serve"]):
        assert comine("quickstart", "a.dat", *wrong).code == 2
    assert comine("quickstart", "--serve").code == 10
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years of work")
    ran = comine("quickstart", "a.dat", "--folder", "mine")
    assert (ran.code, "something other than an earlier quickstart" in ran.err) == (10, True)
    assert comine("quickstart", "a.dat", "missing.dat").code == 10
    assert {path.name for path in tmp_path.iterdir()} == {"a.dat", "mine"}


def test_a_table_gives_items_of_its_cells(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name;city;smoker\nann;Rome;yes\nbob;Oslo;\ncy;Rome;no\nAnn;Rome;yes\n")
    (tmp_path / "b.csv").write_text("bread,milk\nbread,butter\nmilk,butter\n")  # lists of two items
    said: list[str] = []
    table, baskets = of_files([str(tmp_path / name) for name in ("a.csv", "b.csv")], tmp_path / "out", said.append)
    expected = [{"city=Rome", "smoker=yes"}, {"city=Oslo"}, {"city=Rome", "smoker=no"}, {"city=Rome", "smoker=yes"}]
    assert rows_of(table.data) == expected
    assert any(line.endswith("differ too much: name") for line in said)
    assert rows_of(baskets.data) == [{"bread", "milk"}, {"bread", "butter"}, {"milk", "butter"}]
