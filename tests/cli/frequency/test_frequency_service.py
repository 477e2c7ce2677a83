"""`comine frequency create|list|submit|estimate|watch|export|close|delete|loadtest` against a real node."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
import typer

from coordinator.cli.terminal.completion import collection_names
from jobs.audit.checks.verification import verification
from jobs.collections.spec import CollectionSpec
from ldp.aggregator import Aggregator
from ldp.registry import oracle
from link.pki.trust import Trust
from tests.integration.processes import END_S, Process
from tests.jobs.report.pages import taken_apart
from tests.party.files import free_ports
from tests.party.services.frequency.deployed import GATEWAYS, NODE, Deployed, deployed

pytestmark = pytest.mark.turn(5)

EXAMPLES = Path(__file__).parents[3] / "examples"
LABELS = ["milk", "bread", "tea, green", "jam"]
COUNTS = [3000, 1500, 400, 100]
FILES = ["estimates.csv", "manifest.json", "report.html", "result.json"]
FLEET = ["--certificate", "pki/fleet.crt"]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """A node with the closed or open collections of the tests before; each test has its own."""
    with deployed(tmp_path_factory.mktemp("frequency")) as made:
        made.write("labels.txt", "".join(f"{label}\n" for label in LABELS))
        values = np.repeat(LABELS, COUNTS)
        made.write("values.txt", "".join(f"{value}\n" for value in values))
        yield made


def create(node: Deployed, name: str, more: str = "", mechanism: str = "grr", window: str = "") -> None:
    values = "" if more else 'domain = "labels.txt"\n'
    node.write(
        f"{name}.toml",
        f'[collection]\nname = "{name}"\nmechanism = "{mechanism}"\nepsilon = 4.0\n{values}{more}{window}{GATEWAYS}',
    )
    ran = node.comine("create", f"{name}.toml")
    assert (ran.code, ran.out) == (0, f"{name}\n"), ran.err
    assert "created at the node of north" in ran.err


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def js(text: str) -> Any:
    return json.loads(text)


def test_a_collection_from_its_creation_to_its_closing(node: Deployed) -> None:
    create(node, "basket")
    sent = node.comine("submit", "basket", *FLEET, "--input", "values.txt", "--gateway")
    assert (sent.code, sent.err) == (0, "5,000 of 5,000 reports were counted\n")

    ran = node.comine("estimate", "basket")
    assert ran.code == 0, ran.err
    found = rows(ran.out)
    assert [row["value"] for row in found] == LABELS
    for row, count in zip(found, COUNTS, strict=True):
        assert abs(float(row["estimate"]) - count) < 5.5 * float(row["variance"]) ** 0.5 + 1e-9
        assert float(row["low"]) <= max(float(row["estimate"]), 0) <= float(row["high"])
    assert "basket, round 0, at " in ran.err
    assert ": 5,000 reports, 0 refused" in ran.err

    listed = js(node.comine("list", "--json").out)
    (one,) = [each for each in listed["collections"] if each["name"] == "basket"]
    assert (one["node"], one["state"], one["creator"], one["counters"]["counted"]) == ("north", "open", "hub", 5000)

    closed = node.comine("close", "basket", "--json")
    assert js(closed.out)["state"] == "closed"
    assert "closed after 5,000 reports" in closed.err
    assert node.comine("estimate", "basket", "--top", 1).out.splitlines()[1].startswith("milk,")
    late = node.comine("submit", "basket", *FLEET, "--input", "values.txt", "--gateway")
    assert (late.code, "is closed and takes no more reports" in late.err) == (30, True)


def test_estimates_into_a_folder_with_a_page(node: Deployed) -> None:
    create(node, "folder")
    assert node.comine("submit", "folder", *FLEET, "--input", "values.txt", "--gateway").code == 0
    ran = node.comine("estimate", "folder", "--post-processing", "norm-sub", "--out", "est", "--json")
    assert ran.code == 0, ran.err
    folder = node.folder / "est"
    assert sorted(path.name for path in folder.iterdir()) == FILES
    found = rows((folder / "estimates.csv").read_text())
    assert list(found[0]) == ["value", "estimate", "variance", "low", "high", "post_processed"]
    assert sum(float(row["post_processed"]) for row in found) == pytest.approx(5000)
    contents = js((folder / "result.json").read_text())
    assert contents == js(ran.out)
    assert verification([], [folder], Trust(node.authority.certificate_pem)).good
    assert (contents["schema"], contents["mechanism"], contents["d"]) == ("comine.frequency-estimates/1", "grr", 4)
    page = taken_apart((folder / "report.html").read_text())
    assert "5,000 clients reported to the node of north" in page.text
    assert node.comine("estimate", "folder", "--out", "est").code == 0  # an earlier one is replaced
    (folder / "mine.txt").touch()
    assert node.comine("estimate", "folder", "--out", "est").code == 10


def test_a_device_reports_once(node: Deployed) -> None:
    create(node, "device")
    node.write("mine.txt", "jam\n")
    words = ["submit", "device", "--certificate", "pki/phone.crt", "--input", "mine.txt", "--client-folder", "phone"]
    first = node.comine(*words, "--json")
    assert first.code == 0, first.err
    assert (js(first.out)["report"], js(first.out)["counted"]) == ("reported", 1)
    again = node.comine(*words)
    assert again.code == 0
    assert "this device has reported" in again.err
    other = node.comine(*words[:-1], "another-phone", "--json")  # another secret, but the same certificate
    assert (js(other.out)["counted"], js(other.out)["refused"]) == (0, 1)


def test_what_shares_a_budget_is_told(node: Deployed) -> None:
    """A series, a coin and answers that wait, from the file to the listing, the estimates, the page and the ledger."""
    kinds = {
        "series": (
            "grr",
            '[window]\nlength = "1h"\n[budget]\nseries = "telescoping"\n[sampling]\nprobability = 0.875\n',
        ),
        "coin": ("oue", '[sampling]\nprobability = "31/32"\n'),
        "memo": ("l-grr", '[window]\nlength = "1h"\n[memo]\nw = 30\nepsilon = 16\n'),
    }
    for name, (mechanism, tables) in kinds.items():
        create(node, f"share-{name}", mechanism=mechanism, window=tables)
        sent = node.comine("submit", f"share-{name}", *FLEET, "--input", "values.txt", "--gateway")
        assert (sent.code, sent.err) == (0, "5,000 of 5,000 reports were counted\n")
    listed = {row["name"]: row["epsilon"] for row in rows(node.comine("list").out.replace("\t", ","))}
    assert listed.keys() >= {f"share-{name}" for name in kinds}
    found = js(node.comine("estimate", "share-series", "--json").out)
    assert (found["mechanism"], found["sampling"]["mechanism"]) == ("sampled", "grr")
    assert found["sampling"]["probability"] == "7/8"
    assert found["report_epsilon"] == pytest.approx(2.0)  # half of all
    for row, count in zip(found["estimates"], COUNTS, strict=True):
        assert abs(row["estimate"] - count) < 5.5 * row["variance"] ** 0.5
    for name, sentence in (
        ("series", "A series (telescoping) divides ε among the rounds"),
        ("coin", "reports its own value with a probability of 31/32"),
        ("memo", "In any 30 rounds in a row, those to new values spend at most ε = 16"),
    ):
        assert node.comine("estimate", f"share-{name}", "--out", f"share-{name}").code == 0
        assert sentence in taken_apart((node.folder / f"share-{name}" / "report.html").read_text()).text
    node.write("mine.txt", "jam\n")
    words = ["--certificate", "pki/phone.crt", "--input", "mine.txt", "--client-folder", "share-phone"]
    told = node.comine("submit", "share-memo", *words, "--json")
    assert js(told.out)["ledger"] == {"spent": 8.0, "epsilon": 16.0, "windows": 30}
    assert "its reports to the collection have spent 8 of 16 within 30 windows" in told.err


def test_reports_that_are_refused_are_told_with_the_reason(node: Deployed) -> None:
    create(node, "refusing", "size = 4\n")
    node.write("three.txt", "1\n2\n3\n")
    words = ["--certificate", "pki/phone.crt"]
    ran = node.comine("submit", "refusing", *words, "--input", "three.txt", "--gateway", "--json")
    assert ran.code == 30
    assert (js(ran.out)["counted"], js(ran.out)["refused"]) == (1, 2)
    assert "1 of 3 reports were counted" in ran.err
    assert "north refused 2 of 3 reports: this certificate has sent as many reports as count in the period" in ran.err
    ran = node.comine("loadtest", "refusing", *words, "--reports", 3)
    assert ran.code == 30
    assert "north refused 3 of 3 reports: this certificate has sent" in ran.err
    assert node.comine("close", "refusing").code == 0
    node.write("mine.txt", "1\n")
    for command in (
        ["submit", "refusing", *words, "--input", "three.txt", "--gateway"],
        ["submit", "refusing", *words, "--input", "mine.txt", "--client-folder", "closed-phone"],
        ["loadtest", "refusing", *FLEET, "--reports", 3],
    ):
        ran = node.comine(*command)
        assert ran.code == 30
        assert "the collection 'refusing' at north is closed and takes no more reports" in ran.err


def test_watching_tells_a_line_each_time(node: Deployed) -> None:
    create(node, "watched")
    assert node.comine("submit", "watched", *FLEET, "--input", "values.txt", "--gateway").code == 0
    ran = node.comine("watch", "watched", "--times", 1, "--top", 2)
    assert ran.code == 0, ran.err
    assert ran.out.startswith("watched, round 0, at ")
    assert "5,000 reports, 0 refused; milk " in ran.out
    change = js(node.comine("watch", "watched", "--times", 1, "--top", 2, "--json").out)
    assert change["schema"] == "comine.frequency-change/1"
    assert [row["value"] for row in change["estimates"]] == ["milk", "bread"]


def test_a_watch_ends_when_nobody_reads(node: Deployed) -> None:
    create(node, "unread")
    assert node.comine("submit", "unread", *FLEET, "--input", "values.txt", "--gateway").code == 0
    line = f"set -o pipefail; '{sys.executable}' -m comine frequency watch unread | true"
    ran = subprocess.run(["bash", "-c", line], cwd=node.folder, capture_output=True, text=True, timeout=END_S)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_watch_outlasts_a_restart_of_the_node(node: Deployed) -> None:
    create(node, "outlasting")
    sent = ["submit", "outlasting", *FLEET, "--input", "values.txt", "--gateway"]
    assert node.comine(*sent).code == 0
    words = ["frequency", "watch", "outlasting", "--times", 2, "--top", 1, "--every", 0.1]
    watching = Process(*words, cwd=node.folder)
    assert watching.popen.stdout is not None
    assert "5,000 reports" in watching.popen.stdout.readline()
    node.nodes[NODE].kill()
    watching.until("the node of north is away; waiting until it is back")
    node.start()
    assert node.comine(*sent).code == 0
    ran = watching.end()
    assert ran.code == 0, ran.err
    assert "10,000 reports" in ran.out
    assert "the node of north is back" in ran.err


def test_clients_with_ids_are_counted_once_however_often_they_are_sent(node: Deployed) -> None:
    create(node, "known")
    lines = [f"user-{number}\t{LABELS[number % 4]}\n" for number in range(1000)]
    node.write("known.tsv", "".join(lines))
    node.write("more.tsv", "".join(reversed(lines)) + "user-1000\tjam\n")
    words = ["submit", "known", *FLEET, "--gateway", "--ids", "--input"]
    first, again, more = (
        js(node.comine(*words, file, "--json").out) for file in ("known.tsv", "known.tsv", "more.tsv")
    )
    assert [each["counted"] for each in (first, again, more)] == [1000, 0, 1]
    assert [each["acknowledged"] for each in (first, again, more)] == [1000, 1000, 1001]
    assert (node.folder / "pki/fleet.secret").stat().st_mode & 0o777 == 0o600
    node.write("corrected.tsv", "user-0\tjam\n" + "".join(lines[1:]))
    corrected = node.comine(*words, "corrected.tsv", "--json")
    assert (corrected.code, "1 clients have reported another value in this period already" in corrected.err) == (
        10,
        True,
    )
    assert [js(corrected.out)[key] for key in ("changed", "acknowledged", "counted")] == [1, 999, 0]
    other = js(node.comine(*words, "known.tsv", "--secret", "other.secret", "--json").out)
    assert other["counted"] == 1000
    wrong = node.comine(*words, "values.txt")
    assert (wrong.code, "line 1 is not the id of a client, a tab and its value" in wrong.err) == (10, True)


def test_the_budget_of_clients_with_ids_is_what_is_asked_for(node: Deployed) -> None:
    """It holds over all collections, however they are called."""
    node.write("some.tsv", "".join(f"user-{number}\tmilk\n" for number in range(20)))
    done = []
    for name in ("asks", "asks-again", "asks-once-more"):
        create(node, name)
        words = ["submit", name, *FLEET, "--gateway", "--ids", "--secret", "poor.secret", "--input", "some.tsv"]
        done.append(js(node.comine(*words, "--budget", "9", "--json").out))
    assert [(each["counted"], each["over_budget"]) for each in done] == [(20, 0), (20, 0), (0, 20)]
    assert node.comine(*words, "--budget", "some").code == 10


def test_a_closed_collection_is_deleted_and_its_name_is_free(node: Deployed) -> None:
    create(node, "gone")
    is_open = node.comine("delete", "gone")
    assert (is_open.code, "close it first: comine frequency close gone" in is_open.err) == (10, True)
    assert node.comine("close", "gone").code == 0
    ran = node.comine("delete", "gone", "--json")
    assert (ran.code, js(ran.out)["name"]) == (0, "gone"), ran.err
    assert "the node of north has deleted 'gone'" in ran.err
    assert node.comine("estimate", "gone").code == 10
    create(node, "gone")


def test_an_export_has_all_that_the_node_keeps(node: Deployed) -> None:
    create(node, "kept")
    assert node.comine("submit", "kept", *FLEET, "--input", "values.txt", "--gateway").code == 0
    assert node.comine("close", "kept").code == 0
    ran = node.comine("export", "kept", "--states", "--out", "archive", "--json")
    assert ran.code == 0, ran.err
    files = {path.name for path in (node.folder / "archive").iterdir()}
    assert files == set(js(ran.out)["files"])
    assert {"collection.json", "report.html", "manifest.json"} <= files
    sealed = verification([], [node.folder / "archive"], Trust(node.authority.certificate_pem))
    assert (sealed.good, sealed.sealed[0].name) == (True, "hub")
    (state,) = [name for name in files if name.endswith(".state")]
    merged = Aggregator.from_bytes((node.folder / "archive" / state).read_bytes(), oracle("grr", LABELS, 4.0))
    assert len(merged) == 5000
    assert node.comine("export", "kept", "--out", "archive").code == 0
    assert node.comine("export", "kept", "--out", "pki").code == 10


def test_a_load_is_measured_against_the_truth(node: Deployed) -> None:
    create(node, "loaded", "size = 64\n", mechanism="oue")
    ran = node.comine("loadtest", "loaded", *FLEET, "--reports", 20_000, "--batch", 1000, "--json")
    assert ran.code == 0, ran.err
    measured = js(ran.out)
    assert (measured["counted"], measured["refused"]) == (20_000, 0)
    assert 0.5 < measured["rmse"] / measured["theory_rmse"] < 1.6  # 64 values: beyond by chance with less than 1e-6
    assert measured["node_peak_bytes"] > 1 << 20
    assert node.comine("loadtest", "loaded", *FLEET, "--reports", 2, "--connections", 3).code == 0
    assert node.comine("loadtest", "loaded", *FLEET, "--reports", 0).code == 2


def test_a_load_whose_connections_all_fail_is_told_in_a_sentence(node: Deployed) -> None:
    """Each connection is a process; the failures of all but the first are no tracebacks."""
    node.write(
        "barred.toml",
        '[collection]\nname = "barred"\nmechanism = "grr"\nepsilon = 4.0\nsize = 4\n[access]\nsubmit = ["other"]\n',
    )
    assert node.comine("create", "barred.toml").code == 0
    ran = node.comine("loadtest", "barred", *FLEET, "--reports", 90, "--connections", 3)
    assert ran.code not in (0, 70), ran.err
    assert "Traceback" not in ran.err
    for option in ("--reports", "--batch", "--connections"):
        ran = node.comine("loadtest", "barred", *FLEET, option, 2**63)
        assert (ran.code, "Traceback" in ran.err) == (2, False)


def test_rounds_follow_each_other_and_the_page_shows_their_course(node: Deployed) -> None:
    create(node, "daily", window='[window]\nlength = "1s"\ngrace = "1s"\n')
    rounds: set[int] = set()
    while len(rounds) < 2:  # rounds of a second; a fleet without memory reports whenever it is asked to
        sent = js(node.comine("submit", "daily", *FLEET, "--input", "values.txt", "--gateway", "--json").out)
        if sent["acknowledged"] == 5000:
            rounds.add(sent["round"])
    latest = max(rounds)
    ran = node.comine("estimate", "daily", "--round", latest, "--out", "course", "--json")
    assert ran.code == 0, ran.err
    contents = js(ran.out)
    assert contents["round"] == latest
    assert [each["round"] for each in contents["earlier"]] == sorted(rounds - {latest})
    page = taken_apart((node.folder / "course/report.html").read_text())
    assert page.data is not None
    assert page.data["rounds"] == [f"round {number}" for number in sorted(rounds)]
    assert "Over time" in page.text
    before = js(node.comine("estimate", "daily", "--round", min(rounds), "--json").out)
    assert (before["round"], before["reports"] % 5000) == (min(rounds), 0)
    assert node.comine("close", "daily").code == 0


def test_all_nodes_are_asked_who_has_a_collection(node: Deployed) -> None:
    create(node, "somewhere")
    (port,) = free_ports(1)
    wider = (node.folder / "federation.toml").read_text() + f'[[party]]\nname = "west"\naddress = "127.0.0.1:{port}"\n'
    node.write("wider.toml", wider)
    there = ["--federation", "wider.toml"]
    listed = node.comine("list", *there)
    assert "somewhere\tnorth" in listed.out
    assert "west at 127.0.0.1" in listed.err
    sent = node.comine("submit", "somewhere", *FLEET, "--input", "values.txt", "--gateway", *there)
    assert (sent.code, sent.err) == (0, "5,000 of 5,000 reports were counted\n")
    assert node.comine("estimate", "somewhere", *there).out.startswith("value,")
    assert node.comine("estimate", "nowhere", *there).code == 20  # west may have it
    assert node.comine("estimate", "somewhere", "--node", "west", *there).code == 20
    assert node.comine("create", "somewhere.toml", *there).code == 2  # at which node?


KINDS = {
    "mean": ("1bit-mean", "[collection.parameters]\nlow = 0.0\nhigh = 10.0\n", ["5.0"] * 4000),
    "open": ("sfp", "text_bytes = 6\nk = 3\n", ["hello"] * 20_000),
    "typed": ("rappor", "", ["chess"] * 3000 + ["go"] * 1000),
}


@pytest.mark.parametrize("name", KINDS)
def test_means_and_values_that_nobody_knew(node: Deployed, name: str) -> None:
    mechanism, more, values = KINDS[name]
    create(node, name, more or "# an open domain\n", mechanism=mechanism)
    node.write("open.txt", "".join(f"{value}\n" for value in values))
    node.write("candidates.txt", "chess\ngo\nnothing\n")
    sent = node.comine("submit", name, *FLEET, "--input", "open.txt", "--gateway")
    assert sent.code == 0, sent.err
    asked = ["--candidates", "candidates.txt"] if mechanism == "rappor" else []
    ran = node.comine("estimate", name, *asked, "--out", f"{name}-out", "--json")
    assert ran.code == 0, ran.err
    contents = js(ran.out)
    first = contents["estimates"][0]
    expected = {"mean": ("mean", 5.0), "open": ("hello", 20_000), "typed": ("chess", 3000)}[name]
    assert first["value"] == expected[0]
    assert abs(first["estimate"] - expected[1]) < 5.5 * first["variance"] ** 0.5
    assert contents["kind"] == ("mean" if name == "mean" else "found")
    page = taken_apart((node.folder / f"{name}-out/report.html").read_text())
    assert expected[0] in page.text
    if name != "mean":
        assert node.comine("estimate", name, *asked, "--joint").code == 10


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["estimate", "nowhere"], 10, "nowhere"),
        (["estimate", "empty"], 10, "empty"),
        (["estimate", "empty", "--confidence", 1], 2, "--confidence lies between 0 and 1"),
        (["estimate", "empty", "--node", "west"], 10, "no party 'west'"),
        (["list", "--node", "south"], 10, "the federation has no party 'south', only north"),
        (["submit", "empty", *FLEET, "--input", "no.txt", "--gateway"], 10, "there is no file no.txt; name one with"),
        (
            ["submit", "empty", "--certificate", "no.crt", "--ca", "pki/ca.crt", "--input", "values.txt", "--gateway"],
            10,
            "no.crt cannot be read (No such file or directory); check its path",
        ),
        (["create", "empty.toml"], 10, "empty"),
        (["create", "greedy.toml"], 30, "max_epsilon"),
        (["create", "missing.toml"], 10, "does not exist"),
        (["submit", "empty", *FLEET, "--input", "values.txt"], 2, "--client-folder"),
        (["submit", "empty", "--certificate", "pki/hub.crt", "--input", "values.txt", "--gateway"], 10, "role client"),
        (["submit", "empty", *FLEET, "--input", "wrong.txt", "--gateway"], 10, "'milk '"),
        (["submit", "empty", *FLEET, "--input", "values.txt", "--client-folder", "p"], 10, "one value"),
        (["export", "nowhere", "--out", "x"], 10, "nowhere"),
        (["close", "nowhere"], 10, "nowhere"),
        (["delete", "nowhere"], 10, "nowhere"),
        (["submit", "empty", *FLEET, "--input", "values.txt", "--client-folder", "p", "--ids"], 2, "--ids goes with"),
        (["submit", "empty", *FLEET, "--input", "values.txt", "--gateway", "--budget", "9"], 2, "--budget with --ids"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(node: Deployed, words: list[object], code: int, sentence: str) -> None:
    if not (node.folder / "empty.toml").exists():
        create(node, "empty")
        node.write("wrong.txt", "milk \n")
        node.write("greedy.toml", '[collection]\nname = "greedy"\nepsilon = 9.0\nsize = 4\n')
    ran = node.comine(*words)
    assert ran.code == code, ran.err
    assert sentence in ran.err


def test_the_examples_can_be_created(node: Deployed) -> None:
    for path in sorted((EXAMPLES / "frequency").glob("*.toml")):
        spec, _ = CollectionSpec.load(path)
        ran = node.comine("create", path, "--json")
        assert ran.code == 0, ran.err
        assert js(ran.out)["spec"] == js(spec.canonical().decode())
        assert node.comine("close", spec.name).code == 0


def test_names_of_collections_are_completed(node: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    create(node, "completed")
    monkeypatch.chdir(node.folder)
    context = typer.Context(click.Command("estimate"))
    assert collection_names(context, "comple") == ["completed"]
    monkeypatch.chdir(Path("/"))
    assert collection_names(context, "comple") == []
