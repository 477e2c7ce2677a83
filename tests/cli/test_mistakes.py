"""Typical mistakes of analysts, engineers and researchers: each gets one sentence, which names the cure."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from comine.command import run
from link.pki.authority import Authority, write_identity
from tests.cli.conftest import ANONYMIZE, JOB, ROWS, Comine
from tests.integration.processes import comine as in_a_process

SIMULATE = ["simulate", "job.toml", *(word for name in ROWS for word in ("--party", f"{name}={name}.dat"))]
SERVE, CHECK = (["party", word, "party.toml"] for word in ("serve", "check"))
TABLES = ["simulate", "columns.toml", "--party", "north=north.csv", "--party", "south=south.csv"]
COLUMNS = """[job]
name = "columns"
task = "itemsets"
parties = ["north", "south"]
dataset = "people"
partition = "vertical"
[itemsets]
min_support = 0.2
"""
PEOPLE = "age,town,illness\n" + "".join(f"{20 + n},{'ab'[n % 2]},{'xyz'[n % 3]}\n" for n in range(10))


class Mistake(NamedTuple):
    """What is done wrong in a folder where all else is right.

    Attributes:
        name: In a few words.
        arguments: The command line.
        change: What is changed in the folder.
        code: The exit code.
        cure: Words of the sentence that say what to do.
    """

    name: str
    arguments: list[str]
    change: Callable[[Path], object]
    code: int
    cure: str


def write(name: str, text: str | bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())


def replace(name: str, old: str, new: str) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return change


def nothing(folder: Path) -> None:
    pass


def remove(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


def expired(folder: Path) -> None:
    authority = Authority.read(folder)
    write_identity(authority.issue("analyst", role="coordinator", valid_days=-1 / 24 / 60), folder, force=True)


def other_authority(folder: Path) -> None:
    (folder / "ca.crt").write_bytes(Authority.create().certificate_pem)


def other_key(folder: Path) -> None:
    other = folder / "other"
    other.mkdir()
    write_identity(Authority.create().issue("analyst", role="coordinator"), other)
    (other / "analyst.key").rename(folder / "analyst.key")


def with_node(folder: Path) -> None:
    """What a party has before its node is started."""
    assert run(["init", "north", "--source", "north.dat", "--listen", (folder / "taken").read_text()]) == 0
    write_identity(Authority.read(folder).issue("north", hosts=("127.0.0.1",)), folder / "pki")


def more(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text((folder / name).read_text() + text)


def both(*changes: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda folder: [change(folder) for change in changes]


def in_all(text: str) -> Callable[[Path], object]:
    return both(*(write(f"{name}.dat", text) for name in ROWS))


JOB_RUN, RELEASE = ["job", "run", "job.toml"], ["anonymize", "run", "anonymize.toml", "--out", "release"]
RULES = replace("job.toml", 'task = "itemsets"', 'task = "rules"')
NOISE = '[privacy]\nmodel = "distributed"\nepsilon = {}\ndelta = {}\n'
TWICE = ["quickstart", "a.csv", "b.csv", "a.csv"]
BASKETS = "bread,milk\nbread,tea\n"

MISTAKES = [
    # what clumsy hands do
    Mistake("a comma in a number", SIMULATE, replace("job.toml", "0.2", "0,2"), 10, "a point in place of a comma"),
    Mistake(
        "a per cent sign", SIMULATE, replace("job.toml", "0.2", "20%"), 10, "a percentage is written as a fraction"
    ),
    Mistake("a text without quotes", SIMULATE, replace("job.toml", '"itemsets"', "itemsets"), 10, "stands in quotes"),
    Mistake(
        "a node's file as job",
        ["job", "plan", "party.toml"],
        write("party.toml", "[tls]\n"),
        10,
        "here goes a job file",
    ),
    Mistake("a job as a node's file", ["party", "check", "job.toml"], nothing, 10, "here goes the file of a node"),
    Mistake("a job to anonymise", ["anonymize", "run", "job.toml", "--out", "x"], nothing, 10, "of comine anonymize"),
    Mistake("a command without its group", ["plan", "job.toml"], nothing, 2, "comine job plan may be meant"),
    Mistake("a page that is not there", ["docs", "tutorial"], nothing, 2, "opens the list of all"),
    Mistake("a file twice", TWICE, both(write("a.csv", BASKETS), write("b.csv", BASKETS)), 10, "a file of its own"),
    Mistake(
        "a Word file", ["quickstart", "a.docx"], write("a.docx", b"PK\x03\x04..."), 10, "save what is in it as CSV"
    ),
    # data
    Mistake("items between semicolons", SIMULATE, write("north.dat", "a;b\nb;c\nc;a\n"), 0, '--separator ";"'),
    Mistake(
        "columns of other names",
        [*SIMULATE, "--format", "long"],
        in_all("receipt,article\n1,a\n1,b\n2,b\n"),
        10,
        'it looks like id = "receipt", item = "article"',
    ),
    Mistake("text as Parquet", [*SIMULATE, "--format", "parquet"], nothing, 10, "check its format"),
    Mistake(
        "text in Latin-1",
        SIMULATE,
        write("north.dat", "Käse Brot\n".encode("latin-1")),
        10,
        "line 1 holds a byte that is not; re-encode it",
    ),
    Mistake(
        "an empty file",
        SIMULATE,
        write("north.dat", ""),
        0,
        "the data of north: there is no transaction; check the source",
    ),
    Mistake(
        "nothing but empty files",
        SIMULATE,
        in_all(""),
        10,
        "the data of east: there is no transaction; check the source",
    ),
    Mistake(
        "a file that is not there",
        [*SIMULATE[:-1], "east=eest.dat"],
        nothing,
        10,
        "there is no file eest.dat; check the path",
    ),
    Mistake("a folder in place of a file", [*SIMULATE[:-1], "east=pki"], nothing, 10, "pki is a folder; name a file"),
    Mistake(
        "an id twice", TABLES, write("north.csv", "id,age\n1,30\n1,31\n"), 10, "north: 1 row has the id of an earlier"
    ),
    Mistake(
        "another column of ids",
        [*TABLES, "--id", "patient"],
        nothing,
        10,
        "name the one with the ids of the rows by id",
    ),
    Mistake(
        "a table between semicolons", TABLES, write("north.csv", "id;age\n1;30\n2;31\n"), 10, "check the separator"
    ),
    Mistake(
        "a column at two parties", TABLES, write("south.csv", "id,age\n1,x\n2,y\n"), 10, "leave it out at one of them"
    ),
    # command lines
    Mistake("a command misspelt", ["simluate"], nothing, 2, "Did you mean 'simulate'?"),
    Mistake("an option misspelt", [*SIMULATE, "--sed", "1"], nothing, 2, "Possible options: --id, --seed"),
    Mistake(
        "a format that there is not", [*SIMULATE, "--format", "xlsx"], nothing, 10, "known formats are basket, long"
    ),
    Mistake("a party without its file", [*SIMULATE[:-1], "east"], nothing, 2, "--party east: the form is NAME=FILE"),
    Mistake("a party without data", SIMULATE[:-2], nothing, 10, "on the command line with --party east=FILE"),
    Mistake(
        "data of a stranger",
        [*SIMULATE, "--party", "west=east.dat"],
        nothing,
        10,
        "the job, which names north, south, east",
    ),
    Mistake("a folder with other files", [*SIMULATE, "--out", "pki"], nothing, 10, "name a new or empty folder"),
    Mistake("a duration without its unit", [*JOB_RUN, "--expires", "10"], nothing, 2, "such as 90s, 10m, 2h or 7d"),
    Mistake("a code that there is not", ["explain", "E999"], nothing, 2, "there are E001, E100"),
    Mistake(
        "a model that there is not",
        ["compare", *SIMULATE[1:], "--models", "exact,secret"],
        nothing,
        2,
        "there are exact, local, shuffle",
    ),
    Mistake(
        "a name with capitals",
        ["init", "North", "--source", "north.dat"],
        nothing,
        10,
        "use 1 to 63 of the characters a-z",
    ),
    # job files
    Mistake("no job file of that name", ["simulate", "jop.toml", *SIMULATE[2:]], nothing, 10, "is job.toml meant?"),
    Mistake("data as job file", ["simulate", "north.dat", *SIMULATE[2:]], nothing, 10, "name another file"),
    Mistake(
        "a text that does not end",
        SIMULATE,
        replace("job.toml", '"baskets"', '"baskets'),
        10,
        "(at line 5, column 19); correct it there",
    ),
    Mistake("a key misspelt", SIMULATE, replace("job.toml", "min_support", "min_suport"), 10, "is min_support meant?"),
    Mistake(
        "a task that there is not",
        SIMULATE,
        replace("job.toml", '"itemsets"', '"itemset"'),
        10,
        "there are 'itemsets', 'rules'",
    ),
    Mistake(
        "a party twice", SIMULATE, replace("job.toml", '"east"', '"north"'), 10, "the party 'north' is named twice"
    ),
    Mistake(
        "a single party",
        SIMULATE,
        replace("job.toml", '["north", "south", "east"]', '["north"]'),
        10,
        "needs at least 2 entries",
    ),
    Mistake(
        "a count for per cent",
        SIMULATE,
        both(in_all("a b\n" * 5000), replace("job.toml", "0.2", "5")),
        0,
        "5 % is 0.05",
    ),
    Mistake("a number of per cent", SIMULATE, replace("job.toml", "0.2", "2.5"), 10, "2.5 % is 0.025"),
    Mistake("a text of per cent", SIMULATE, replace("job.toml", "0.2", '"5%"'), 10, "a fraction such as 0.05"),
    Mistake(
        "confidence in per cent",
        SIMULATE,
        both(RULES, more("job.toml", "[rules]\nmin_confidence = 80")),
        10,
        "80 % is 0.8",
    ),
    Mistake("rules without a confidence", SIMULATE, RULES, 10, "needs a [rules] table with min_confidence"),
    Mistake(
        "a negative epsilon", SIMULATE, more("job.toml", NOISE.format(-1, 1e-6)), 10, "must be above 0 and at most 100"
    ),
    Mistake(
        "a delta of one half", SIMULATE, more("job.toml", NOISE.format(1, 0.5)), 10, "at most 0.0001, such as 1e-6"
    ),
    # anonymisation and local privacy
    Mistake(
        "k above the number of rows",
        RELEASE,
        replace("anonymize.toml", "k = 2", "k = 100"),
        10,
        "the table has 10 records only",
    ),
    Mistake(
        "a column misspelt",
        RELEASE,
        replace("anonymize.toml", '"town"', '"twon"'),
        10,
        "its columns are age, town, illness",
    ),
    Mistake(
        "a source that is not there", RELEASE, remove("people.csv"), 10, "people.csv cannot be read; check the path"
    ),
    Mistake(
        "a budget of 0",
        ["frequency", "simulate", "--input", "values.txt", "--mechanism", "olh", "--epsilon", "0"],
        nothing,
        10,
        "must lie between 0.001 and 16",
    ),
    # federations, certificates and nodes
    Mistake("no federation file", JOB_RUN, remove("federation.toml"), 10, "give --federation FILE"),
    Mistake(
        "a party of no federation",
        JOB_RUN,
        replace("job.toml", '"east"', '"west"'),
        10,
        "the federation has only east, north, south",
    ),
    Mistake("an expired certificate", JOB_RUN, expired, 20, "have a new certificate issued"),
    Mistake("another authority", JOB_RUN, other_authority, 20, "use the ca.crt of this federation"),
    Mistake("the key of another certificate", JOB_RUN, other_key, 20, "use the pair as issued"),
    Mistake(
        "a key that others can read",
        JOB_RUN,
        lambda folder: (folder / "analyst.key").chmod(0o644),
        10,
        "chmod 600 analyst.key",
    ),
    Mistake(
        "a key in another folder",
        JOB_RUN,
        remove("analyst.key"),
        10,
        "check its path, or get a certificate with comine pki request",
    ),
    Mistake("a node that is down", JOB_RUN, nothing, 20, "is its node running?"),
    Mistake("a job that nobody ran", ["job", "result", "weekly"], nothing, 2, "see comine job list"),
    Mistake("a certificate once more", ["pki", "issue", "north"], with_node, 10, "use --force"),
    Mistake(
        "no request for a certificate", ["pki", "sign", "analyst.crt"], nothing, 10, "make one with comine pki request"
    ),
    Mistake("a node in another folder", SERVE, nothing, 10, "party.toml does not exist; check the path"),
    Mistake(
        "a node without a certificate",
        SERVE,
        both(with_node, remove("pki/north.crt")),
        10,
        "get a certificate with comine pki request",
    ),
    Mistake("a port in use", SERVE, with_node, 10, "stop that process or change [party] listen"),
    Mistake(
        "a dataset at no place",
        CHECK,
        both(with_node, remove("north.dat")),
        10,
        "north.dat; check the path",
    ),
    Mistake(
        "a key misspelt in party.toml",
        CHECK,
        both(with_node, replace("party.toml", "approve =", "aprove =")),
        10,
        "is approve meant?",
    ),
    Mistake("a job without the node's file", ["party", "approve", "3f2a"], nothing, 2, "as in party.toml 3f2a"),
    Mistake(
        "a port too high",
        ["federation", "new", "north=north.example:7101", "south=south.example:99999", "--out", "new.toml"],
        nothing,
        2,
        "south=south.example:99999: 'south.example:99999' has no possible port; ports go up to 65535",
    ),
    Mistake(
        "a deadline without quotes",
        SIMULATE,
        replace("job.toml", "[itemsets]", "deadline = 10\n[itemsets]"),
        10,
        '[job] deadline: must be a duration in quotes, such as "90s"',
    ),
]


@pytest.fixture
def folder(tmp_path: Path, comine: Comine) -> Iterator[Path]:  # which `comine` makes the working one
    (tmp_path / "job.toml").write_text(JOB.format(task="itemsets", min_support="0.2", more=""))
    (tmp_path / "columns.toml").write_text(COLUMNS)
    (tmp_path / "north.csv").write_text("id,age\n1,30\n2,31\n")
    (tmp_path / "south.csv").write_text("id,town\n1,x\n2,y\n")
    (tmp_path / "anonymize.toml").write_text(ANONYMIZE)
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "values.txt").write_text("a\nb\n")
    for name, rows in ROWS.items():
        (tmp_path / f"{name}.dat").write_text("".join(" ".join(row) + "\n" for row in rows))
    authority = Authority.create()
    authority.write(tmp_path)
    write_identity(authority.issue("analyst", role="coordinator"), tmp_path)
    (tmp_path / "pki").mkdir()
    authority.write(tmp_path / "pki")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    members = "".join(f'[[party]]\nname = "{name}"\naddress = "127.0.0.1:{port}"\n' for name in ROWS)
    (tmp_path / "federation.toml").write_text(
        '[federation]\nname = "f"\n[coordinator]\nca = "ca.crt"\ncertificate = "analyst.crt"\nkey = "analyst.key"\n'
        + members
    )
    with socket.create_server(("127.0.0.1", 0)) as taken:
        (tmp_path / "taken").write_text(f"127.0.0.1:{taken.getsockname()[1]}")
        yield tmp_path


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name.replace(" ", "-"))
def test_a_mistake_is_told_with_its_cure(
    mistake: Mistake, folder: Path, comine: Comine, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake.change(folder)
    if mistake.arguments[:2] == ["party", "serve"]:  # which makes its output its own
        monkeypatch.delenv("COLUMNS")  # so that it is forked
        done = in_a_process(*mistake.arguments, cwd=folder)
        code, told = done.code, done.out + done.err
    else:
        ran = comine(*mistake.arguments)
        code, told = ran.code, ran.out + ran.err
    assert code == mistake.code, told
    assert [line for line in told.splitlines() if mistake.cure in line], told
    assert told.count("comine: ") <= 1  # one sentence, no more


def test_there_are_enough_mistakes() -> None:
    assert len({mistake.name for mistake in MISTAKES}) == len(MISTAKES) >= 40
