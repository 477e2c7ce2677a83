"""`comine anonymize hide-rules`: baskets in, baskets without the sensitive rules out, wrong input in a sentence."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterable
from pathlib import Path

import jsonschema
import pyarrow.parquet as pq
import pytest

from jobs.schema import generate
from tests.cli.conftest import Comine

BASKETS = ["a b c", "a b c", "a b", "a c", "b c", "a", "b", "a b d", "b d", "c d"]
COMMAND = ("anonymize", "hide-rules", "baskets.dat", "--sensitive", "rules.txt", "--min-support", "3", "--out", "out")


@pytest.fixture
def baskets(tmp_path: Path) -> None:
    (tmp_path / "baskets.dat").write_text("\n".join(BASKETS) + "\n")
    (tmp_path / "rules.txt").write_text("# not for sale\na, b\n")


def frequent(rows: Iterable[Iterable[str]], least: int) -> set[tuple[str, ...]]:
    """By looking at every itemset."""
    sets = [frozenset(row) for row in rows]
    items = sorted(frozenset().union(*sets))
    return {
        found
        for length in range(1, len(items) + 1)
        for found in itertools.combinations(items, length)
        if sum(row.issuperset(found) for row in sets) >= least
    }


@pytest.mark.usefixtures("baskets")
@pytest.mark.parametrize("method", ["support", "bba", "maxmin", "exact", "rows"])
def test_the_itemset_is_gone_and_the_others_are_told(comine: Comine, tmp_path: Path, method: str) -> None:
    ran = comine(*COMMAND, "--method", method, "--json")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    jsonschema.validate(told, json.loads(generate("hiding")))
    assert told == json.loads((tmp_path / "out/hiding.json").read_text())
    rows = pq.read_table(tmp_path / "out/transactions.parquet").column("items").to_pylist()
    with (tmp_path / "out/transactions.csv").open(newline="") as file:
        assert list(csv.reader(file)) == rows
    before, after = frequent(map(str.split, BASKETS), 3), frequent(rows, 3)
    others = {each for each in before if not {"a", "b"} <= set(each)}
    assert not any({"a", "b"} <= set(each) for each in after)
    assert told["itemsets"]["others"] == len(others)
    assert told["itemsets"]["lost"] == len(others - after)
    assert told["itemsets"]["ghosts"] == len(after - before)
    assert told["n_rows"] == len(rows) == len(BASKETS) - told["removed_rows"]
    assert "a, b" not in ran.out + (tmp_path / "out/hiding.json").read_text()
    if method == "exact":
        assert (told["solver"]["status"], told["itemsets"]["lost"], told["deleted_cells"]) == ("optimal", 0, 2)


@pytest.mark.usefixtures("baskets")
def test_a_table_on_a_terminal_and_in_a_pipe(comine: Comine) -> None:
    ran = comine(*COMMAND)
    heads, itemsets, rules = (line.split("\t") for line in ran.out.splitlines())
    assert heads == ["", "hidden", "others", "lost", "of others", "ghosts"]
    assert (itemsets[0], rules[0]) == ("itemsets", "rules")
    assert "items deleted" in ran.err
    assert "written to out" in ran.err


@pytest.mark.usefixtures("baskets")
@pytest.mark.parametrize("method", ["confidence", "confidence-by-adding"])
def test_a_rule_may_become_uncertain(comine: Comine, tmp_path: Path, method: str) -> None:
    (tmp_path / "rules.txt").write_text("a -> b\n")
    options = ("--method", method, "--min-confidence", "0.6", "--scope", "rule")
    ran = comine(*COMMAND, *options)
    assert ran.code == 0, ran.err
    rows = [set(row) for row in pq.read_table(tmp_path / "out/transactions.parquet").column("items").to_pylist()]
    having = [row for row in rows if "a" in row]
    both = [row for row in having if "b" in row]
    assert len(both) < 3 or len(both) < 0.6 * len(having)


@pytest.mark.usefixtures("baskets")
def test_the_exact_search_may_be_stopped(comine: Comine, tmp_path: Path) -> None:
    lines = [" ".join(f"i{(row * step) % 23}" for step in range(1, 7)) for row in range(1, 160)]
    (tmp_path / "baskets.dat").write_text("\n".join(lines) + "\n")
    (tmp_path / "rules.txt").write_text("i1, i2\ni3, i6\ni4, i8\n")
    ran = comine(*COMMAND, "--method", "exact", "--time-limit", "0.01", "--json")
    assert ran.code == 0, ran.err
    solver = json.loads(ran.out)["solver"]
    assert solver["status"] in ("optimal", "time limit", "heuristic")
    assert ("the solver was stopped" in ran.err) == (solver["status"] != "optimal")


@pytest.mark.usefixtures("baskets")
def test_an_earlier_result_is_replaced_and_nothing_else(comine: Comine, tmp_path: Path) -> None:
    assert [comine(*COMMAND).code, comine(*COMMAND).code] == [0, 0]
    (tmp_path / "out/mine.txt").write_text("keep")
    ran = comine(*COMMAND)
    assert (ran.code, (tmp_path / "out/mine.txt").read_text()) == (10, "keep")
    assert "holds files that are not an earlier result" in ran.err


@pytest.mark.usefixtures("baskets")
@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        (None, "the sensitive rules rules.txt cannot be read"),
        (b"\xff\xfe\n", "are not UTF-8 text"),
        (b"# none\n\n", "names no rule"),
        (b"-> b\n", "a sensitive rule names at least one item on its left side"),
        (b"a, a -> b\n", "names the item 'a' twice"),
        (b"a, beer -> b\n", "beer"),
    ],
    ids=["no file", "no text", "no rule", "no left side", "twice", "unknown item"],
)
def test_wrong_rules_are_told_in_a_sentence(comine: Comine, tmp_path: Path, rules: bytes | None, sentence: str) -> None:
    if rules is None:
        (tmp_path / "rules.txt").unlink()
    else:
        (tmp_path / "rules.txt").write_bytes(rules)
    ran = comine(*COMMAND)
    assert (ran.code, ran.out, sentence in ran.err) == (10, "", True), ran.err
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("baskets")
@pytest.mark.parametrize(
    "options",
    [
        ("--method", "magic"),
        ("--scope", "all"),
        ("--min-support", "0"),
        ("--min-support", "1.5"),
        ("--min-support", "few"),
        ("--min-confidence", "2"),
        ("--min-confidence", "half"),
        ("--format", "xml"),
        ("--method", "exact", "--time-limit", "-1"),
        ("--method", "exact", "--time-limit", "nan"),
    ],
)
def test_wrong_options_are_told_in_a_sentence(comine: Comine, tmp_path: Path, options: tuple[str, ...]) -> None:
    ran = comine(*COMMAND, *options)
    assert ran.code in (2, 10), ran.err
    assert ran.out == ""
    assert ran.err.startswith("comine: ") or "Usage: comine" in ran.err
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("baskets")
def test_transactions_that_cannot_be_read(comine: Comine, tmp_path: Path) -> None:
    (tmp_path / "baskets.dat").unlink()
    assert comine(*COMMAND).code == 10
    (tmp_path / "baskets.dat").write_text("")
    ran = comine(*COMMAND)
    assert ran.code == 10, ran.err
    assert not (tmp_path / "out").exists()
