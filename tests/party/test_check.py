"""`comine party check`: what is told about a node and its data, and that no item is named unasked."""

from __future__ import annotations

import errno
import io
import json
import os
import socket
import sqlite3
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comine.command import run
from link.pki.authority import Authority, write_identity
from mining.data.transactions import Transactions
from party.config import DatasetSection, PartyConfig
from party.data.dataset_check import RARE, DatasetCheck, Profile, check_dataset
from party.examination import Examination, Finding, examine
from party.node.logs import open_log
from party.server import Node
from tests.errors import fails
from tests.party.files import write_federation

pytestmark = pytest.mark.turn(3)

GOODS = ["bread", "butter", "milk", "tea", "jam", "cheese", "apples", "wine"]
ROWS = [["bread", "milk"], ["bread", "tea"], ["milk"]]
DATA: dict[str, Sequence[Sequence[str]]] = dict.fromkeys(("north", "south", "east"), ROWS)
WORDS = st.lists(st.lists(st.sampled_from(GOODS), min_size=1, max_size=6), min_size=1, max_size=40)


def baskets(number: int = 40) -> list[list[str]]:
    """Rows in which every item occurs often."""
    return [[GOODS[(3 * row + step * step) % len(GOODS)] for step in range(2 + row % 3)] for row in range(number)]


def dataset(path: Path, text: str | bytes, format_: str = "basket", **more: str) -> DatasetSection:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    section = {"name": "baskets", "kind": "transactions", "source": str(path), "format": format_, **more}
    return DatasetSection.model_validate(section)


def lines(rows: Sequence[Sequence[str]], separator: str = " ") -> str:
    return "".join(separator.join(row) + "\n" for row in rows)


def kinds(found: DatasetCheck) -> list[str]:
    assert not found.problem
    return [hint.kind for hint in found.hints]


def sentence(found: DatasetCheck, kind: str) -> str:
    (hint,) = (hint for hint in found.hints if hint.kind == kind)
    return hint.sentence


@given(rows=st.lists(st.lists(st.text(max_size=4), max_size=5), max_size=30))
def test_sizes_are_those_of_the_rows(rows: list[list[str]]) -> None:
    counts = Counter(item for row in rows for item in set(row))
    lengths = [len(set(row)) for row in rows] or [0]
    assert Profile.of(Transactions.from_rows(rows)) == Profile(
        rows=len(rows),
        items=len(counts),
        row_items=(min(lengths), statistics.median(lengths), max(lengths)),
        empty_rows=sum(not row for row in rows),
        rare_items=sum(count < RARE for count in counts.values()),
        longest_item=max((len(item.encode()) for item in counts), default=0),
    )


@pytest.mark.parametrize("number", [3, 40, 500])
@pytest.mark.parametrize(
    ("format_", "separator", "more"),
    [("basket", " ", {}), ("basket", "\t", {}), ("csv", ",", {}), ("csv", ";", {"separator": ";"})],
)
def test_good_data_give_no_hint(
    tmp_path: Path, number: int, format_: str, separator: str, more: dict[str, str]
) -> None:
    text = lines(baskets(number), separator)
    for content in (text, "\ufeff" + text, text.replace("\n", "\r\n")):
        assert kinds(check_dataset(dataset(tmp_path / "data", content, format_, **more))) == []


def test_the_datasets_of_the_examples_give_no_hint() -> None:
    for path in (Path(__file__).parents[2] / "examples/groceries").glob("*.dat"):
        section = {"name": "baskets", "kind": "transactions", "source": str(path), "format": "basket"}
        found = check_dataset(DatasetSection.model_validate(section))
        assert kinds(found) == []


@pytest.mark.parametrize(
    ("head", "text", "format_", "advice"),
    [
        ("items\n", lines(baskets()), "basket", "remove it"),
        ("id,item\n", "1,bread\n1,milk\n2,tea\n2,milk\n3,tea\n", "csv", 'format = "long"'),
        ("article\n", "".join(f"{row % 7} {row % 5 + 7}\n" for row in range(40)), "basket", "remove it"),
        ("first second\n", "".join(f"{row % 7} {row % 5 + 7}\n" for row in range(40)), "basket", "remove it"),
    ],
)
def test_a_header_read_as_data(tmp_path: Path, head: str, text: str, format_: str, advice: str) -> None:
    found = check_dataset(dataset(tmp_path / "data", head + text, format_))
    assert "header" in kinds(found)
    assert advice in sentence(found, "header")
    assert "header" not in kinds(check_dataset(dataset(tmp_path / "data", text, format_)))


@pytest.mark.parametrize(
    ("written", "format_", "advice"),
    [
        (",", "basket", 'format = "csv"'),
        (";", "basket", 'format = "csv", separator = ";"'),
        ("\t", "csv", 'separator = "\\t"'),
        ("|", "csv", 'separator = "|"'),
        (", ", "basket", 'separator = ", "'),
        (" ", "csv", 'format = "basket"'),
    ],
)
def test_a_wrong_separator(tmp_path: Path, written: str, format_: str, advice: str) -> None:
    found = check_dataset(dataset(tmp_path / "data", lines(baskets(), written), format_))
    assert "separator" in kinds(found)
    assert advice in sentence(found, "separator")


@pytest.mark.parametrize("separator", [" ", ","])
@pytest.mark.parametrize("make", [str, lambda row: f"R-{row + 1000}", lambda row: f"2026-01-{row:02}"])
def test_a_column_of_ids_among_the_items(tmp_path: Path, separator: str, make: Callable[[int], str]) -> None:
    rows = [[make(number), *row] for number, row in enumerate(baskets())]
    found = check_dataset(dataset(tmp_path / "data", lines(rows, separator), "basket" if separator == " " else "csv"))
    assert kinds(found) == ["ids"]


def test_a_long_form_that_numbers_lines(tmp_path: Path) -> None:
    text = "id,item\n" + "".join(f"{number},{GOODS[number % 5]}\n" for number in range(30))
    found = check_dataset(dataset(tmp_path / "data", text, "long"))
    assert kinds(found) == ["ids"]
    assert '"id"' in sentence(found, "ids")


@given(
    other=st.sampled_from(["Milk", "MILK", "mi\u200blk", "\u00a0milk", "milk "]),
    place=st.integers(min_value=0, max_value=39),
)
def test_items_that_look_alike(tmp_path_factory: pytest.TempPathFactory, other: str, place: int) -> None:
    rows = baskets()
    rows[place] = [*rows[place], "milk", other]
    found = check_dataset(dataset(tmp_path_factory.mktemp("alike") / "data", lines(rows, ","), "csv"))
    assert "alike" in kinds(found)
    assert sentence(found, "alike").startswith("2 items differ")


def test_composed_and_decomposed_letters_look_alike(tmp_path: Path) -> None:
    found = check_dataset(dataset(tmp_path / "data", lines([["caf\u00e9", "tea"], ["cafe\u0301"]])))
    assert kinds(found) == ["alike"]


def test_blanks_around_items_and_how_to_read_them(tmp_path: Path) -> None:
    found = check_dataset(dataset(tmp_path / "data", lines(baskets(), ", "), "csv"))
    assert 'separator = ", "' in sentence(found, "blanks")
    other = dataset(tmp_path / "data", lines(baskets(), ", "), "basket", separator=", ")
    assert kinds(check_dataset(other)) == []
    some = dataset(tmp_path / "data", lines([*baskets(), [" plums", "figs "]], ","), "csv")
    assert "separator" not in sentence(check_dataset(some), "blanks")


def test_a_byte_order_mark_inside_is_a_part_of_an_item(tmp_path: Path) -> None:
    text = ("\ufeff" + lines(baskets())) * 2
    found = check_dataset(dataset(tmp_path / "data", text))
    assert kinds(found) == ["alike", "byte-order-mark"]


@pytest.mark.parametrize(("item", "format_"), [("brown\u00a0bread", "basket"), ("brown\tbread", "csv")])
def test_characters_that_nobody_sees(tmp_path: Path, item: str, format_: str) -> None:
    text = lines([[item, "tea"], ["tea", "milk"], ["jam"]], " " if format_ == "basket" else ",")
    assert kinds(check_dataset(dataset(tmp_path / "data", text, format_))) == ["invisible"]


def test_lines_that_end_with_cr_alone(tmp_path: Path) -> None:
    for format_ in ("basket", "csv"):
        text = lines(baskets(), " " if format_ == "basket" else ",")
        found = check_dataset(dataset(tmp_path / "data", text.replace("\n", "\r"), format_))
        assert found == check_dataset(dataset(tmp_path / "data", text, format_))


def test_no_rows_and_no_items(tmp_path: Path) -> None:
    assert kinds(check_dataset(dataset(tmp_path / "data", "\n\n"))) == ["empty"]
    assert kinds(check_dataset(dataset(tmp_path / "data", "id,a,b\n1,0,0\n2,0,0\n", "wide"))) == ["empty"]


def test_what_cannot_be_read_says_what_it_looks_like(tmp_path: Path) -> None:
    found = check_dataset(dataset(tmp_path / "data", "receipt;article\n1;bread\n1;milk\n2;bread\n", "long"))
    assert 'it looks like separator = ";", id = "receipt", item = "article"' in found.problem
    missing = dataset(tmp_path / "data", "x")
    (tmp_path / "data").unlink()
    assert "there is no file" in check_dataset(missing).problem


def test_a_column_of_a_wide_table_is_an_item_and_not_named(tmp_path: Path) -> None:
    section = dataset(tmp_path / "data", "id,bread,secret-item\n1,0,yes\n", "wide")
    assert "secret-item" not in check_dataset(section).problem
    assert "secret-item" in check_dataset(section, in_place_of_items=None).problem


def test_a_database(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "sales.db") as connection:
        connection.execute("CREATE TABLE sales (receipt, article)")
        connection.executemany("INSERT INTO sales VALUES (?, ?)", [(1, "bread"), (1, "milk"), (2, "bread")])
    connection.close()
    query = "SELECT receipt AS id, article AS item FROM sales"
    section = {"name": "b", "kind": "transactions", "source": f"sqlite:///{tmp_path}/sales.db", "format": "sql"}
    found = check_dataset(DatasetSection.model_validate({**section, "query": query}))
    assert found.profile is not None
    assert (found.profile.rows, found.hints) == (2, ())
    wrong = check_dataset(DatasetSection.model_validate({**section, "query": "SELECT nothing FROM sales"}))
    assert "looks like" not in wrong.problem


@given(rows=WORDS, separator=st.sampled_from([",", ";", ", ", "\t", " "]), format_=st.sampled_from(["basket", "csv"]))
def test_no_item_is_named_unasked(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], separator: str, format_: str
) -> None:
    sentinels = [[f"{item}-sentinel" for item in row] for row in rows]
    found = check_dataset(dataset(tmp_path_factory.mktemp("named") / "data", lines(sentinels, separator), format_))
    assert "sentinel" not in found.problem
    assert all("sentinel" not in hint.sentence for hint in found.hints)


# The node


def findings(found: Examination) -> dict[str, Finding]:
    """The gravest finding for each subject."""
    order = ["ok", "warning", "problem"]
    ranked = sorted(found.findings, key=lambda finding: order.index(finding.status))
    return {finding.subject: finding for finding in ranked}


@pytest.fixture
def federation(tmp_path: Path) -> Authority:
    return write_federation(tmp_path, DATA)


def rewrite(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.usefixtures("federation")
def test_a_node_that_is_fit(tmp_path: Path) -> None:
    found = examine(tmp_path / "north.toml")
    assert found.fit
    assert {finding.status for finding in found.findings} == {"ok"}
    assert list(findings(found)) == ["configuration", "federation", "certificate", "port", "state"]
    assert not (tmp_path / "state").exists()


@pytest.mark.usefixtures("federation")
@pytest.mark.parametrize("table", ["[policy]", "[dataset.policy]\n[policy]"])
def test_a_rule_that_has_no_meaning_any_more_is_mentioned(tmp_path: Path, table: str) -> None:
    """Files of earlier versions have it: nodes load them, and are fit."""
    rewrite(tmp_path / "north.toml", "[policy]", table.replace("]\n", "]\nmax_unions = 16\n"))
    rewrite(tmp_path / "north.toml", "[policy]", "[policy]\nmax_unions = 3")
    found = examine(tmp_path / "north.toml")
    assert found.fit
    finding = findings(found)["configuration"]
    assert finding.status == "ok"
    assert finding.sentence.endswith("north.toml can be read; the rule max_unions has no meaning any more, take it out")


@pytest.mark.usefixtures("federation")
@pytest.mark.parametrize(
    ("old", "new", "subject", "status", "words"),
    [
        ("[party]", "[parties]", "configuration", "problem", "parties: is not a known key; is party meant?"),
        ('federation = "federation.toml"', 'federation = "f.toml"', "federation", "problem", "f.toml"),
        ('name = "north"', 'name = "west"', "federation", "problem", "not in"),
        ('"pki/north.crt"', '"pki/south.crt"', "certificate", "problem", "does not belong"),
        ('"pki/north.key"', '"pki/missing.key"', "certificate", "problem", "missing.key"),
        ('listen = "127.0.0.1', 'listen = "192.0.2.1', "port", "problem", "192.0.2.1"),
        ('listen = "127.0.0.1', 'listen = "no-such-host.invalid', "port", "problem", "no-such-host.invalid"),
        ('state_dir = "state/north"', 'state_dir = "north.dat/state"', "state", "problem", "not a folder"),
        ('tasks = ["itemsets", "rules"]', 'tasks = ["rules"]\nmin_parties = 4', "federation", "warning", "min_parties"),
    ],
)
def test_what_is_wrong_with_a_node(tmp_path: Path, old: str, new: str, subject: str, status: str, words: str) -> None:
    rewrite(tmp_path / "north.toml", old, new)
    found = examine(tmp_path / "north.toml")
    finding = findings(found)[subject]
    assert finding.status == status
    assert words in finding.sentence
    assert found.fit == (status == "warning")


@pytest.mark.usefixtures("federation")
@pytest.mark.parametrize("there", [True, False])
def test_a_state_folder_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if there:
        (tmp_path / "state/north").mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    found = examine(tmp_path / "north.toml")
    assert found.fit
    monkeypatch.setattr(os, "fsync", full)
    found = examine(tmp_path / "north.toml")
    assert not found.fit
    assert "cannot be written (No space left on device)" in findings(found)["state"].sentence
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.usefixtures("federation")
def test_another_partys_certificate(tmp_path: Path) -> None:
    rewrite(tmp_path / "north.toml", "pki/north.", "pki/south.")
    assert "names 'south'" in findings(examine(tmp_path / "north.toml"))["certificate"].sentence


@pytest.mark.usefixtures("federation")
def test_a_port_that_the_others_do_not_dial(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        other = free.getsockname()[1]
    text = (tmp_path / "north.toml").read_text()
    (listen,) = (line for line in text.splitlines() if line.startswith("listen"))
    rewrite(tmp_path / "north.toml", listen, f'listen = "127.0.0.1:{other}"')
    finding = findings(examine(tmp_path / "north.toml"))["federation"]
    assert finding.status == "warning"
    assert str(other) in finding.sentence


def test_a_certificate_that_ends_soon(tmp_path: Path, federation: Authority) -> None:
    write_identity(federation.issue("north", valid_days=3), tmp_path / "pki", force=True)
    assert findings(examine(tmp_path / "north.toml"))["certificate"].status == "warning"
    write_identity(federation.issue("north", valid_days=-1), tmp_path / "pki", force=True)
    found = examine(tmp_path / "north.toml")
    assert "expired" in findings(found)["certificate"].sentence
    assert not found.fit


@pytest.mark.usefixtures("federation")
def test_a_port_that_another_process_holds(tmp_path: Path) -> None:
    from party.config import PartyConfig

    host, _, port = PartyConfig.load(tmp_path / "north.toml").party.listen.rpartition(":")
    with socket.create_server((host, int(port))):
        finding = findings(examine(tmp_path / "north.toml"))["port"]
    assert finding.status == "problem"
    assert "another process" in finding.sentence


@pytest.mark.usefixtures("federation")
def test_a_node_that_runs_already(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "comine", "party", "serve", "north.toml"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as node:
        assert node.stderr is not None
        try:
            assert any("is ready at" in line for line in node.stderr)
            finding = findings(examine(tmp_path / "north.toml"))["port"]
            foreign = tmp_path / "south.toml"
            listen = next(line for line in (tmp_path / "north.toml").read_text().splitlines() if "listen" in line)
            own = next(line for line in foreign.read_text().splitlines() if "listen" in line)
            rewrite(foreign, own, listen)
            other = findings(examine(foreign))["port"]
        finally:
            node.terminate()
    assert (finding.status, other.status) == ("ok", "problem")
    assert "running already" in finding.sentence


# The command


@pytest.mark.usefixtures("federation")
def test_the_command_and_its_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["party", "check", str(tmp_path / "north.toml")]) == 0
    shown = capsys.readouterr()
    assert "north is fit to start" in shown.out
    assert "3 transactions with 3 distinct items" in shown.out
    assert shown.err == ""
    assert run(["party", "check", str(tmp_path / "nothing.toml")]) == 10
    assert "is not fit to start" in capsys.readouterr().out


@pytest.mark.usefixtures("federation")
def test_the_command_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "north.dat").write_text("bread Milk\nbread milk\nmilk\n")
    assert run(["party", "check", str(tmp_path / "north.toml"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["party"], found["fit"]) == ("comine.check/1", "north", True)
    (baskets_,) = found["datasets"]
    assert baskets_["profile"] == {
        "rows": 3,
        "items": 3,
        "row_items": {"min": 1, "median": 2.0, "max": 2},
        "empty_rows": 0,
        "rare_items": 3,
        "rare_share": 1.0,
        "longest_item_bytes": 5,
    }
    assert [hint["kind"] for hint in baskets_["hints"]] == ["alike"]
    assert "examples" not in baskets_["hints"][0]
    assert run(["party", "check", str(tmp_path / "north.toml"), "--json", "--show-items"]) == 0
    assert json.loads(capsys.readouterr().out)["datasets"][0]["hints"][0]["examples"] == ["Milk", "milk"]


@pytest.mark.usefixtures("federation")
def test_items_are_shown_harmlessly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "north.dat").write_text("mi\u200blk\nmilk\x1b[2J\nmilk\n")
    assert run(["party", "check", str(tmp_path / "north.toml"), "--show-items"]) == 0
    shown = capsys.readouterr().out
    assert "\\u001b" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("table", "policy", "told", "warned"),
    [
        ('epsilon = 5\ndelta = 1e-5\nperiod = "365d"', "", "epsilon 5, delta 1e-5 for all jobs within 365d", True),
        ('local_epsilon = 40\nexact = "allow"', "", "local epsilon 40 for all jobs", False),
        ("epsilon = 5\ndelta = 1e-6", 'models = ["distributed"]', "epsilon 5, delta 1e-6 for all jobs", False),
        ('exact = "refuse"', "", "any epsilon for all jobs", False),
    ],
)
def test_a_privacy_budget_is_told_and_a_hole_in_it_warned_of(
    tmp_path: Path, table: str, policy: str, told: str, warned: bool
) -> None:
    write_federation(tmp_path, dict(DATA), policy=policy)
    file = tmp_path / "north.toml"
    file.write_text(file.read_text().replace("[policy]", f"[dataset.privacy]\n{table}\n[policy]"))
    found = [finding for finding in examine(file).findings if finding.subject == "privacy"]
    assert found[0].status == "ok"
    assert found[0].sentence == f"baskets allows {told}"
    warnings = [finding.sentence for finding in found if finding.status == "warning"]
    assert bool(warnings) is warned
    assert all(line.startswith("jobs without noise may run on baskets") for line in warnings)


@pytest.mark.parametrize(
    ("hiding", "policy", "from_"),
    [
        ("min_support = 0.4", "", 1),
        ("min_support = 0.4", "min_support = 0.1", 3),
        ("min_support = 0.4", "min_support = 0.1\nmin_count = 11", 11),
        ("min_support = 12", "min_support = 0.36", 11),
        ("min_support = 0.4", "min_support = 0.4", None),
        ("min_support = 12", "min_count = 12", None),
        ("min_support = 0.4", 'min_support = 0.1\nwithhold = ["beer"]\nmin_count = 12', None),
    ],
)
def test_jobs_that_find_what_is_hidden_are_warned_of(
    tmp_path: Path, hiding: str, policy: str, from_: int | None
) -> None:
    """Of thirty rows, two fifths are twelve."""
    write_federation(tmp_path, {"north": [["bread", "milk"]] * 30, "south": [["beer"]]}, policy=policy)
    rewrite(tmp_path / "north.toml", "[policy]", f'[dataset.hiding]\nrules = ["bread -> milk"]\n{hiding}\n[policy]')
    (checked,) = examine(tmp_path / "north.toml").datasets
    assert not checked.problem
    told = [hint.sentence for hint in checked.hints if hint.kind == "hiding"]
    assert len(told) == (from_ is not None)
    assert all(f"jobs may ask for counts from {from_} on" in line and "rules from 12 on" in line for line in told)


@pytest.mark.parametrize("table", ["queries", "anonymization"])
def test_what_two_datasets_of_one_source_may_not_both_have(tmp_path: Path, table: str) -> None:
    """A node refuses to start with them, and so the check does not call it fit."""
    write_federation(tmp_path, dict(DATA))
    (tmp_path / "staff.csv").write_text("id,age,pay\n" + "".join(f"{i},{20 + i},{100 * i}\n" for i in range(9)))
    rules = {
        "queries": 'public = ["age"]\ncolumns = { pay = ["sum"] }\nmin_size = 2\n',
        "anonymization": 'columns = { age = ["quasi_identifiers"] }\nmin_k = 3\nalgorithms = ["mondrian"]\n',
    }
    file = tmp_path / "north.toml"
    for name, source, fit in (("staff", "staff.csv", True), ("again", "./staff.csv", False)):
        section = f'[[dataset]]\nname = "{name}"\nkind = "table"\nsource = "{source}"\nformat = "csv"\n'
        file.write_text(f"{file.read_text()}\n{section}[dataset.{table}]\n{rules[table]}")
        found = examine(file)
        assert found.fit is fit, found
    assert "'staff' and 'again' have one source" in findings(found)["configuration"].sentence
    with fails("E100"):
        Node(PartyConfig.load(file), open_log("north", io.StringIO()))
