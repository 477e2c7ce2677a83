"""Columns that tell rows or persons apart beside all classes: no command of `comine anonymize` is silent about them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import comine as library
from anonymize.certificate import Certificate
from tests.cli.conftest import Comine
from tests.errors import fails

pytestmark = pytest.mark.turn(3)

N = 120
CONFIG = """[anonymize]
source = "t.csv"
identifiers = {identifiers}
quasi_identifiers = ["age"]
sensitive = ["ill"]
insensitive = {insensitive}
algorithm = "{algorithm}"
{top}
[anonymize.columns]
age = {{ kind = "numeric" }}
[anonymize.hierarchies]
age = {{ builder = "intervals", widths = [10, 50], range = [0, 99] }}
[anonymize.model]
k = 5
"""
UNIQUE = {
    "text": lambda row: f"a{row}",
    "numbers": lambda row: str(1000 + 7 * row),
    "decimals": lambda row: f"{row / 8}",
    "days": lambda row: f"20{row // 28:02}-02-{row % 28 + 1:02}",
    "nearly": lambda row: str(max(row, 20)),
    "pairs": lambda row: str(row // 2),
    "fours": lambda row: str(row // 4),
    "sixty percent": lambda row: str(row if row % 5 > 1 else -1),
}


def write(
    folder: Path,
    amount: list[str],
    *,
    persons: list[str] | None = None,
    algorithm: str = "optimal",
    top: str = "",
    insensitive: tuple[str, ...] = ("amount",),
    more: list[str] | None = None,
) -> None:
    names = ["pid", "age", "ill", "amount", "visits"]
    with (folder / "t.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names if "visits" in insensitive else names[:-1])
        for row in range(N):
            cells = [(persons or [f"p{n}" for n in range(N)])[row], str(20 + row * 7 % 40), f"d{row % 4}", amount[row]]
            writer.writerow(cells + ([(more or ["0"] * N)[row]] if "visits" in insensitive else []))
    contents = CONFIG.format(
        identifiers='["pid"]', insensitive=json.dumps(list(insensitive)), algorithm=algorithm, top=top
    )
    (folder / "a.toml").write_text(contents)


@pytest.mark.parametrize("kind", UNIQUE)
def test_a_column_that_tells_most_rows_apart_is_refused_unless_it_is_allowed(
    comine: Comine, tmp_path: Path, kind: str
) -> None:
    amount = [UNIQUE[kind](row) for row in range(N)]
    write(tmp_path, amount)
    ran = comine("anonymize", "run", "a.toml", "--out", "out")
    assert ran.code == 10
    assert 'Column "amount" is insensitive, but fewer than 5 rows have the same value' in ran.err
    assert not (tmp_path / "out").exists()
    explored = comine("anonymize", "explore", "a.toml", "--out", "grid", "--k", "5,6")
    assert (explored.code, "allow_unique" in explored.err) == (10, True)
    with fails("E100"):
        library.anonymize(tmp_path / "a.toml")
    write(tmp_path, amount, top='allow_unique = ["amount"]')
    ran = comine("anonymize", "run", "a.toml", "--out", "out")
    assert ran.code == 0, ran.err
    assert 'of the rows have a value of "amount" that fewer than 5 rows have: who knows it' in ran.err
    assert "of the rows have a value of" in (tmp_path / "out/report.html").read_text(encoding="utf-8")
    verified = comine("anonymize", "verify", "out", "--original", "t.csv")
    assert verified.code == 0, verified.err
    assert "insensitive column amount: 100 %" in verified.err or kind not in ("text", "numbers", "decimals", "days")
    risk = comine("anonymize", "risk", "out", "--config", "a.toml", "--json")
    assert any('a value of "amount"' in note for note in json.loads(risk.out)["notes"])


@pytest.mark.parametrize("kind", UNIQUE)
def test_verification_finds_such_a_column_in_the_release_of_somebody_else(
    comine: Comine, tmp_path: Path, kind: str
) -> None:
    """A release that was made where nobody looked, or whose certificate does not say that it is allowed."""
    amount = [UNIQUE[kind](row) for row in range(N)]
    write(tmp_path, amount, top='allow_unique = ["amount"]')
    assert comine("anonymize", "run", "a.toml", "--out", "out").code == 0
    path = tmp_path / "out/certificate.json"
    given = Certificate.read(path)
    without = {key: value for key, value in given.parameters.items() if key != "allow_unique"}
    given.model_copy(update={"parameters": without}).sealed().write(path)
    verified = comine("anonymize", "verify", "out")
    assert verified.code != 0
    assert "values that at least 5 rows share" in verified.out + verified.err
    write(tmp_path, amount)  # nor is the risk of it told without a word
    assert comine("anonymize", "risk", "out", "--config", "a.toml").code == 10


@pytest.mark.parametrize("model", ["k = 1", 't = {{ distance = "equal", value = 1, column = "ill" }}'])
def test_a_single_row_is_released_only_where_its_release_can_be_verified(
    comine: Comine, tmp_path: Path, model: str
) -> None:
    (tmp_path / "t.csv").write_text("pid,age,ill,amount\np1,34,flu,17\n")
    for top, code in (("", 10), ('allow_unique = ["amount"]', 0)):
        shape = CONFIG.replace("k = 5", model)
        (tmp_path / "a.toml").write_text(
            shape.format(identifiers='["pid"]', insensitive='["amount"]', algorithm="optimal", top=top)
        )
        ran = comine("anonymize", "run", "a.toml", "--out", "out")
        assert (ran.code, "fewer than 2 rows have the same value in 100 %" in ran.err) == (code, code == 10)
        assert (tmp_path / "out").exists() == (code == 0)
    assert comine("anonymize", "verify", "out", "--original", "t.csv").code == 0


def test_rare_values_and_rare_combinations_are_told_with_their_share(comine: Comine, tmp_path: Path) -> None:
    both = [str(row % 12) for row in range(N)], [str(row // 12) for row in range(N)]
    write(tmp_path, both[0], insensitive=("amount", "visits"), more=both[1])  # each fine, together a number of its own
    ran = comine("anonymize", "run", "a.toml", "--out", "out")
    assert ran.code == 0
    assert '100 % of the rows have values of "amount" and "visits" together that fewer than 5 rows have' in ran.err
    assert "insensitive column amount and visits" in comine("anonymize", "verify", "out").err
    write(tmp_path, ["0"] * (N - 3) + ["7"] * 3)
    ran = comine("anonymize", "run", "a.toml", "--out", "out")
    assert '2.5 % of the rows have a value of "amount" that fewer than 5 rows have' in ran.err
    write(tmp_path, ["0"] * (N - 5) + [""] * 5)
    ran = comine("anonymize", "run", "a.toml", "--out", "out")
    assert "fewer than 5 rows" not in ran.err


@pytest.mark.parametrize("algorithm", ["optimal", "mondrian", "datafly"])
@pytest.mark.parametrize("repeats", [2, 5, N])
def test_rows_of_one_person_are_no_persons(comine: Comine, tmp_path: Path, algorithm: str, repeats: int) -> None:
    persons = [f"p{max(0, row - repeats + 1)}" for row in range(N)]
    write(tmp_path, ["0"] * N, persons=persons, algorithm=algorithm)
    ran = comine("anonymize", "run", "a.toml", "--out", "out")
    assert ran.code == 10
    assert f"values have several rows, up to {repeats}: k would count rows" in ran.err
    write(tmp_path, ["0"] * N, persons=persons, algorithm=algorithm, top='allow_repeated = ["pid"]')
    assert comine("anonymize", "run", "a.toml", "--out", "out").code == 0
    assert comine("anonymize", "verify", "out", "--original", "t.csv").code == 0
    path = tmp_path / "out/certificate.json"
    given = Certificate.read(path)
    without = {key: value for key, value in given.parameters.items() if key != "allow_repeated"}
    given.model_copy(update={"parameters": without}).sealed().write(path)
    verified = comine("anonymize", "verify", "out", "--original", "t.csv")
    assert verified.code != 0
    assert "persons by pid" in verified.out
    write(tmp_path, ["0"] * N, persons=persons, algorithm=algorithm)
    assert comine("anonymize", "risk", "out", "--config", "a.toml").code == 10


def test_rows_without_an_identifier_are_nobodys(comine: Comine, tmp_path: Path) -> None:
    write(tmp_path, ["0"] * N, persons=["", "", *(f"p{row}" for row in range(2, N))])
    assert comine("anonymize", "run", "a.toml", "--out", "out").code == 0


@pytest.mark.parametrize(("key", "role"), [("allow_unique", "insensitive"), ("allow_repeated", "identifiers")])
def test_what_is_allowed_has_the_role_that_it_is_allowed_in(
    comine: Comine, tmp_path: Path, key: str, role: str
) -> None:
    write(tmp_path, ["0"] * N, top=f'{key} = ["age"]')
    ran = comine("anonymize", "run", "a.toml", "--out", "out")
    assert f"{key} names 'age', which is not among {role}" in ran.err


@pytest.mark.parametrize(("ills", "words"), [
    (("HIV", "HIV "), "values that people read as one"),
    (("HIV", "hiv"), "values that people read as one"),
    (("stomach ulcer", "stomach  ulcer"), "values that people read as one"),
    (("HIV", ""), 'a missing value of "ill" counts as one of its own'),
    (("HIV", "flu"), ""),
])  # fmt: skip
def test_sensitive_values_that_are_one_to_people_are_told(
    comine: Comine, tmp_path: Path, ills: tuple[str, str], words: str
) -> None:
    """To a model they are two, so that l = 2 holds of a class in which all have the same."""
    write(tmp_path, ["0"] * N, top='missing = "value"')
    lines = (tmp_path / "t.csv").read_text().splitlines()
    rows = [line.replace(f"d{row % 4}", ills[row % 2]) for row, line in enumerate(lines[1:])]
    (tmp_path / "t.csv").write_text("\n".join([lines[0], *rows]) + "\n")
    (tmp_path / "a.toml").write_text((tmp_path / "a.toml").read_text() + "l = 2\n")
    ran = comine("anonymize", "run", "a.toml", "--out", "out")
    assert ran.code == 0, ran.err
    told = [line for line in ran.err.splitlines() if '"ill"' in line]
    assert (words in " ".join(told)) if words else told == []
