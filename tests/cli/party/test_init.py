"""`comine init`: files that load, with every key explained, and nothing done by halves."""

from __future__ import annotations

import re
import shutil
import sqlite3
import stat
import sys
import tomllib
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from jobs.federation import Federation
from jobs.spec.toml import read_toml, validate
from link.files.toml_text import quoted
from party.config import PartyConfig
from party.data.sources import read_dataset
from party.init_files import render_federation, render_party, write_files
from party.services.frequency.policy import FrequencySection
from tests.cli.conftest import Comine
from tests.errors import fails
from tests.site import TOKEN, site

BASKETS = "bread butter\nbread milk\ntea\n"


def test_the_files_load_and_hold_the_cautious_policy(comine: Comine, tmp_path: Path) -> None:
    (tmp_path / "north.dat").write_text(BASKETS)
    ran = comine("init", "north", "--source", "north.dat", "--out", "node")
    assert (ran.code, ran.out) == (0, "")
    config = PartyConfig.load(tmp_path / "node/party.toml")
    assert (config.party.name, config.party.listen) == ("north", "127.0.0.1:7101")
    assert config.tls.key == tmp_path / "node/pki/north.key"
    assert Path(config.dataset[0].source).read_text() == BASKETS
    policy = config.policy
    assert (policy.approve, policy.min_parties, policy.min_count, policy.party_sets) == ("manual", 3, 10, "fixed")
    federation = Federation.load(tmp_path / "node/federation.toml")
    config.check_federation(federation)
    assert federation.addresses == {"north": "127.0.0.1:7101"}
    for name in ("party.toml", "federation.toml"):
        assert stat.S_IMODE((tmp_path / "node" / name).stat().st_mode) == 0o600
    for command in (
        "comine pki request north",
        "comine pki sign",
        "comine party check",
        "comine party serve",
        "doctor",
    ):
        assert command in ran.err


def test_a_node_behind_a_relay_listens_where_it_is_told_to_or_nowhere(comine: Comine, tmp_path: Path) -> None:
    (tmp_path / "north.dat").write_text(BASKETS)
    behind = ("init", "north", "--source", "north.dat", "--relay", "relay.example:7443")
    for out, more, listen in (("a", (), None), ("b", ("--listen", "0.0.0.0:7109"), "0.0.0.0:7109")):
        assert comine(*behind, *more, "--out", out).code == 0
        config, federation = (tmp_path / out / name for name in ("party.toml", "federation.toml"))
        assert PartyConfig.load(config).party.listen == listen
        assert Federation.load(federation).addresses["north"].startswith("relay")


def test_the_page_shows_what_is_written(comine: Comine, tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/tasks/run-a-party.md").read_text()
    shown = page.partition("```toml\n")[2].partition("```")[0]
    (tmp_path / "north.dat").write_text(BASKETS)
    assert comine("init", "north", "--source", "north.dat", "--listen", "0.0.0.0:7101").code == 0
    written = tomllib.loads((tmp_path / "party.toml").read_text().replace("north.dat", "north.dat.gz"))
    assert written == tomllib.loads(shown)


def test_once_certificates_are_there_the_node_is_fit(comine: Comine, tmp_path: Path) -> None:
    (tmp_path / "north.dat").write_text(BASKETS)
    assert comine("init", "north", "--source", "north.dat", "--listen", "127.0.0.1:0").code == 0
    assert comine("party", "check", "party.toml").code == 10
    assert comine("pki", "init").code == 0
    assert comine("pki", "issue", "north").code == 0
    ran = comine("party", "check", "party.toml")
    assert ran.code == 0, ran.out
    again = comine("init", "north", "--source", "north.dat", "--listen", "127.0.0.1:0", "--force")
    assert ("the certificates are in pki" in again.err, "comine pki request" in again.err) == (True, False), again.err


def test_a_node_that_only_collects_needs_no_data(comine: Comine, tmp_path: Path) -> None:
    made = comine("init", "north", "--collects", "--listen", "127.0.0.1:0")
    assert made.code == 0
    assert "see in [frequency] of party.toml what may be collected" in made.err
    assert "comine frequency create COLLECTION" in made.err
    assert "policy" not in made.err
    assert "other parties" not in made.err
    config = PartyConfig.load(tmp_path / "party.toml")
    assert config.datasets == {}
    assert config.frequency is not None
    assert config.frequency.max_epsilon == 2
    assert comine("pki", "init").code == comine("pki", "issue", "north").code == 0
    ran = comine("party", "check", "party.toml")
    assert ran.code == 0, ran.out
    wrong = comine("init", "south", "--collects", "--source", "south.dat", "--out", "other")
    assert (wrong.code, (tmp_path / "other").exists()) == (2, False)
    assert "leave out --collects" in wrong.err


def test_without_data_a_node_must_do_something_else(comine: Comine, tmp_path: Path) -> None:
    assert comine("init", "north", "--collects").code == 0
    file = tmp_path / "party.toml"
    file.write_text(file.read_text().replace("[frequency]", "# [frequency]").replace("max_eps", "# max_eps"))
    with fails("E100"):
        PartyConfig.load(file)


def uncommented(text: str) -> str:
    """A file with every key and table that its comments name."""
    return re.sub(r"^# (?=\[|[a-z_]+ = )", "", text, flags=re.MULTILINE)


def test_every_key_in_a_comment_is_a_key(tmp_path: Path) -> None:
    text = render_party("north", listen="0.0.0.0:7101", dataset="baskets", source={"source": "a", "format": "basket"})
    (tmp_path / "party.toml").write_text(uncommented(text))
    config = PartyConfig.load(tmp_path / "party.toml")
    federation = uncommented(render_federation("north", "0.0.0.0:7101")).replace("…", "ab" * 32)
    (tmp_path / "federation.toml").write_text(federation)
    members = Federation.load(tmp_path / "federation.toml")
    assert members.coordinator is not None
    assert members.addresses["north"] == "north.example:7101"
    shown = read_toml(tmp_path / "party.toml")
    assert set(shown["policy"]) == set(type(config.policy).model_fields) - {"datasets"}
    assert set(shown["frequency"]) == set(FrequencySection.model_fields)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BASKETS, {"format": "basket"}),
        ("bread,whole milk\nbread,tea\n", {"format": "csv"}),
        ("bread;milk\nbread;tea\n", {"format": "csv", "separator": ";"}),
        ("receipt;article\n1;bread\n1;tea\n2;tea\n", {"format": "long", "separator": ";", "id": "receipt"}),
        ("id,bread,tea\n1,0,1\n2,1,1\n", {"format": "wide"}),
    ],
)
def test_the_format_is_suggested_and_why(comine: Comine, tmp_path: Path, text: str, expected: dict[str, str]) -> None:
    (tmp_path / "data").write_text(text)
    ran = comine("init", "north", "--source", "data")
    assert ran.code == 0, ran.err
    assert f"format = {quoted(expected['format'])}, since " in ran.err
    dataset = tomllib.loads((tmp_path / "party.toml").read_text())["dataset"][0]
    assert expected.items() <= dataset.items()


def test_options_win_over_what_the_data_look_like(comine: Comine, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("nr,what,item\n1,bread,x\n1,tea,x\n")
    ran = comine("init", "north", "--source", "data", "--format", "long", "--id", "nr", "--item", "what")
    assert ran.code == 0, ran.err
    assert "2 distinct items" in ran.err
    assert " since " not in ran.err


def test_hints_about_the_data_name_no_item(comine: Comine, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("Bread milk\nbread milk\nmilk\n")
    ran = comine("init", "north", "--source", "data")
    assert ran.code == 0
    assert "2 items differ from another one only by case" in ran.err
    assert "bread" not in ran.err.lower()


@pytest.mark.parametrize(
    ("name", "option", "expected"),
    [
        ("sales.csv", ["--encoding", "windows-1252"], {"format": "long", "encoding": "windows-1252"}),
        ("sales.xlsx", ["--sheet", "people", "--kind", "table"], {"format": "csv", "sheet": "people"}),
    ],
)
def test_encodings_and_sheets(
    comine: Comine, tmp_path: Path, name: str, option: list[str], expected: dict[str, str]
) -> None:
    (tmp_path / "sales.csv").write_bytes("id,item\n1,Müsli\n1,tea\n".encode("latin-1"))
    shutil.copy(Path(__file__).parents[2] / "mining" / "data" / "sales.xlsx", tmp_path)
    ran = comine("init", "north", "--source", name, *option)
    assert ran.code == 0, ran.err
    assert expected.items() <= tomllib.loads((tmp_path / "party.toml").read_text())["dataset"][0].items()


def test_passwords_of_a_source(comine: Comine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORD", TOKEN)
    (tmp_path / "word").write_text(TOKEN)
    (tmp_path / "word").chmod(0o600)
    with site() as found:
        for option in (["--password-env", "WORD"], ["--password-file", "word"]):
            ran = comine("init", "north", "--source", found.url("/private"), *option, "--out", "node", "--force")
            assert ran.code == 0, ran.err
            assert TOKEN not in ran.err + (tmp_path / "node/party.toml").read_text()
            assert read_dataset(PartyConfig.load(tmp_path / "node/party.toml").dataset[0], ()).n_rows == 2


def test_a_database(comine: Comine, tmp_path: Path) -> None:
    import sqlite3

    with sqlite3.connect(tmp_path / "sales.db") as connection:
        connection.execute("CREATE TABLE sales (id, item)")
        connection.execute("INSERT INTO sales VALUES (1, 'bread')")
    connection.close()
    ran = comine("init", "north", "--source", "sqlite:///sales.db")
    assert ran.code == 2
    assert "--query" in ran.err
    assert comine("init", "north", "--source", "sqlite:///sales.db", "--query", "SELECT id, item FROM sales").code == 0
    assert PartyConfig.load(tmp_path / "party.toml").dataset[0].source == f"sqlite:///{tmp_path}/sales.db"


@pytest.mark.parametrize(
    ("text", "more", "expected"),
    [
        ("id,age\n1,50\n2,60\n", [], {"format": "csv"}),
        ("patient_id;age\n1;50\n", [], {"format": "csv", "separator": ";", "id": "patient_id"}),
        ("ward,bed,age\n1,2,50\n1,3,60\n", ["--id", "ward", "--id", "bed"], {"id": ["ward", "bed"]}),
    ],
)
def test_a_table(comine: Comine, tmp_path: Path, text: str, more: list[str], expected: dict[str, object]) -> None:
    (tmp_path / "data").write_text(text)
    ran = comine("init", "north", "--source", "data", "--kind", "table", *more)
    assert ran.code == 0, ran.err
    assert "with 1 columns" in ran.err
    dataset = tomllib.loads((tmp_path / "party.toml").read_text())["dataset"][0]
    assert ({"kind": "table"} | expected).items() <= dataset.items()
    assert PartyConfig.load(tmp_path / "party.toml").dataset[0].kind == "table"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["North"], "cannot be a name"),
        (["north", "--kind", "graph"], "[dataset.0] kind: "),
        (["all"], "cannot be a name"),
        (["north", "--source", "missing.dat"], "missing.dat"),
        (["north", "--source", "data", "--format", "wide"], "nothing was written"),
        (["north", "--source", "data", "--format", "excel"], "[dataset.0] format"),
        (["north", "--listen", "7101"], "HOST:PORT"),
        (["north", "--dataset", "a b"], "cannot be a name"),
        (["north", "--separator", ",", "--format", "parquet"], "separator"),
        (["north", "--source", "data", "--encoding", "none-such"], "encoding is not known"),
        (["north", "--source", "data", "--sheet", "x"], "sheet is for workbooks"),
        (["north", "--password-env", "WORD", "--password-file", "word"], "exclude each other"),
        (["north", "--out", "data"], "cannot be written"),
        (["north", "--source", "data", "--out", "data/node"], "cannot be written"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(
    comine: Comine, tmp_path: Path, arguments: list[str], words: str
) -> None:
    (tmp_path / "data").write_text(BASKETS)
    ran = comine("init", *arguments)
    assert ran.code == 10, ran.err
    assert words in ran.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


def test_nothing_is_replaced_unasked(comine: Comine, tmp_path: Path) -> None:
    (tmp_path / "party.toml").write_text("mine")
    ran = comine("init", "north")
    assert ran.code == 10
    assert "--force" in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["party.toml"]
    (tmp_path / "federation.toml").write_text("ours")
    assert comine("init", "north", "--force").code == 0
    assert "[policy]" in (tmp_path / "party.toml").read_text()
    assert (tmp_path / "federation.toml").read_text() == "ours"


def test_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "party.toml").write_text("old")
    replace = Path.replace

    def full(self: Path, target: Path) -> Path:
        if Path(target).name == "party.toml":
            raise OSError(28, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", full)
    with fails("E103"):
        write_files(tmp_path, {"federation.toml": "a", "party.toml": "b"}, keep=frozenset(), force=True)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"party.toml": "old"}


def test_the_source_is_found_from_a_linked_folder(comine: Comine, tmp_path: Path) -> None:
    (tmp_path / "deep/er").mkdir(parents=True)
    (tmp_path / "node").symlink_to(tmp_path / "deep/er")
    (tmp_path / "data").write_text(BASKETS)
    assert comine("init", "north", "--source", "data", "--out", "node").code == 0
    assert Path(PartyConfig.load(tmp_path / "node/party.toml").dataset[0].source).read_text() == BASKETS


@given(st.text(min_size=1, max_size=20).filter(lambda text: "\0" not in text))
def test_any_path_and_separator_is_written_as_it_is(text: str) -> None:
    source = {"source": f"./{text}", "format": "basket", "separator": text}
    written = render_party("north", listen="127.0.0.1:7101", dataset="baskets", source=source)
    (dataset,) = validate(PartyConfig, tomllib.loads(written, parse_float=Decimal), "it").dataset
    assert (dataset.source, dataset.separator) == (f"./{text}", text)


class Terminal:
    """Standard input that is a terminal, whose user answers."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.asked = list(answers), list[str]()

    def isatty(self) -> bool:
        return True

    def prompt(self, text: str, default: str = "", show_default: bool = True, err: bool = False) -> str:
        assert err
        self.asked.append(text)
        return self.answers.pop(0) or default


@pytest.mark.parametrize(("answers", "format_"), [(["data", ""], "csv"), (["data", "basket"], "basket")])
def test_on_a_terminal_what_is_missing_is_asked_for(
    comine: Comine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: list[str], format_: str
) -> None:
    (tmp_path / "data").write_text("bread;tea\nbread;milk\n")
    terminal = Terminal(*answers)
    monkeypatch.setattr(sys, "stdin", terminal)
    monkeypatch.setattr(typer, "prompt", terminal.prompt)
    assert comine("init", "north").code == 0
    dataset = PartyConfig.load(tmp_path / "party.toml").dataset[0]
    assert dataset.format == format_
    assert dataset.separator == (";" if format_ == "csv" else None)
    assert len(terminal.asked) == 2


def test_a_question_that_is_broken_off_cancels(comine: Comine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken_off(text: str, **more: object) -> str:
        raise typer.Abort

    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(typer, "prompt", broken_off)
    ran = comine("init", "north")
    assert ran.code == 50
    assert "E500" in ran.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("scheme", ["sqlite:///", "duckdb:///"])
@pytest.mark.parametrize("place", [".", "node", "../elsewhere"])
@pytest.mark.parametrize("absolute", [False, True])
def test_a_database_is_named_from_where_the_user_stands(
    comine: Comine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, place: str, absolute: bool
) -> None:
    """As files are: wherever the party's file is written, and wherever the node is started from."""
    import duckdb

    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    database = tmp_path / "here/sales.db"
    connect = sqlite3.connect if scheme == "sqlite:///" else duckdb.connect
    with closing(connect(database)) as connection:
        connection.execute("CREATE TABLE sales (id TEXT, item TEXT)")
        connection.execute("INSERT INTO sales VALUES ('1', 'bread'), ('2', 'milk')")
        connection.commit()
    source = scheme + (str(database) if absolute else "sales.db")
    ran = comine("init", "north", "--source", source, "--query", "SELECT id, item FROM sales", "--out", place)
    assert ran.code == 0, ran.err
    monkeypatch.chdir(tmp_path)
    dataset = PartyConfig.load(tmp_path / "here" / place / "party.toml").dataset[0]
    assert read_dataset(dataset, ()).n_rows == 2


def test_a_column_that_is_an_item_is_not_named_nor_an_option_that_init_lacks(comine: Comine, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("id,bread,secret-item\n1,0,yes\n")
    ran = comine("init", "north", "--source", "data", "--format", "wide")
    assert ran.code == 10
    assert "--show-items" not in ran.err
    assert "secret-item" not in ran.err
    (tmp_path / "data").write_text("id,bread,secret-item\n1,0,1\n")
    assert comine("init", "north", "--source", "data", "--format", "wide").code == 0
    (tmp_path / "data").write_text("id,bread,secret-item\n1,0,yes\n")
    assert "--show-items" in comine("party", "check", "party.toml").out
