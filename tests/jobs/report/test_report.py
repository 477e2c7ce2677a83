"""The report: all that belongs in it, nothing that loads or runs but its own, whatever the items are called."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import escape

import jobs.kinds.itemsets_finding
import jobs.report
import jobs.report.tables
from jobs.documents.result import document
from jobs.report.page import page_data, report
from jobs.report.tables import embedded
from jobs.report.text import visible
from jobs.results.result import Result
from jobs.schema import generate
from jobs.statement import statement
from tests.jobs.report.pages import Page, taken_apart
from tests.jobs.results.made import consents, made, plan

pytestmark = pytest.mark.turn(5)

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]>",
    "\"onmouseover='alert(1)'",
    "'><img src=x onerror=alert(1)>",
    "\u202egnp.exe",
    "\u2066isolated",
    "two\nlines\u2028three",
    "{{ 7 * 7 }}",
    "x" * 3000,
    " ",
    "&amp;",
    "Äpfel 🍎",
]
VENDOR = Path(jobs.report.__file__).parent / "vendor"
OPENS = re.compile("[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b-\x1f\u2028]")


def page_of(result: Result) -> Page:
    return taken_apart(report(result, written=datetime(2026, 1, 2, 3, 4, tzinfo=UTC)))


def sets_of(packed: dict[str, Any], items: list[str]) -> list[list[str]]:
    flat = iter(packed["items"])
    return [[items[next(flat)] for _ in range(length)] for length in packed["lengths"]]


def some_results() -> list[Any]:
    return [
        pytest.param(made(), id="itemsets"),
        pytest.param(made(rules=True), id="rules"),
        pytest.param(made(rules=True, min_count=4), id="nothing found"),
        pytest.param(made(rules=True, rows=[["a"]]), id="one item"),
        pytest.param(made(rules=True, rows=[["a", "b"]]), id="one pair"),
        pytest.param(made(rules=True, elsewhere=True), id="result elsewhere"),
        pytest.param(made(rules=True, rows=[HOSTILE[:5], HOSTILE[5:9]]).of_simulation(7), id="hostile"),
        pytest.param(made(rules=True, plan=plan(), **consents()), id="all there is"),
        pytest.param(made(counted=False), id="which itemsets are frequent"),
        pytest.param(made(rules=True, counted=False, plan=plan(), **consents()), id="which rules hold"),
        pytest.param(made(rules=True, min_count=4, counted=False), id="none found, no supports"),
        pytest.param(made(rules=True, rows=[HOSTILE[:5], HOSTILE[5:9]], counted=False), id="hostile, no supports"),
    ]


@pytest.mark.parametrize("result", some_results())
def test_the_page_loads_nothing_and_runs_only_its_own(result: Result) -> None:
    page = page_of(result)
    assert page.unclosed == []
    for name, attributes in page.elements:
        assert name not in ("link", "img", "iframe", "object", "embed", "base", "audio", "video")
        assert "src" not in attributes
        assert "style" not in attributes
        assert not any(key.startswith("on") for key in attributes)
        assert (attributes.get("href") or "#").startswith("#")
    directives = dict(part.split(" ", 1) for part in page.policy.split("; "))
    assert directives["default-src"] == "'none'"
    for name in ("style", "script"):
        allowed = [
            f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'" for code in page.code(name)
        ]
        assert directives[f"{name}-src"].split() == (allowed or ["'none'"])


@pytest.mark.parametrize("result", some_results())
def test_every_link_of_the_page_has_its_place(result: Result) -> None:
    page = page_of(result)
    places = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    links = {(attributes["href"] or "")[1:] for name, attributes in page.elements if name == "a"}
    assert links <= places
    labels = {a["aria-labelledby"] for _, a in page.elements if "aria-labelledby" in a}
    assert labels <= places


@pytest.mark.parametrize("result", some_results())
def test_the_data_are_the_tables(result: Result) -> None:
    data = page_of(result).data
    if result.tables.get("itemsets") is None:
        assert data is None
        return
    assert data is not None
    expected = [[visible(item) for item in row] for row in result.tables["itemsets"]["itemset"].to_pylist()]
    assert sets_of(data["itemsets"], data["items"]) == expected
    assert result.finding is not None
    assert data["counted"] == result.finding.itemsets.counted
    counts = result.tables["itemsets"]["count"].to_pylist()
    assert data["itemsets"]["count"] == (counts if result.finding.itemsets.counted else None) or not counts
    if result.tables.get("rules") is None:
        assert data["rules"] is None
        return
    for side in ("antecedent", "consequent"):
        expected = [[visible(item) for item in row] for row in result.tables["rules"][side].to_pylist()]
        assert sets_of(data["rules"][side], data["items"]) == expected
    if not result.finding.itemsets.counted and len(result.tables.get("rules")):
        assert data["rules"]["count"] is data["rules"]["antecedentCount"] is data["rules"]["consequentCount"] is None
        assert data["rules"]["measures"] == {}
    for name, values in data["rules"]["measures"].items():
        whole = [None if abs(value) == float("inf") else value for value in result.tables["rules"][name].to_pylist()]
        assert values == [None if value is None else pytest.approx(value, rel=1e-5) for value in whole]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_only_text(name: str) -> None:
    result = made(rules=True, rows=[[name, "milk"], [name]], name=name[:200], **consents(by=name))
    html = report(result)
    page = taken_apart(html)
    assert page.unclosed == []
    assert visible(name) in page.text
    assert page.data is not None
    assert visible(name) in page.data["items"]
    assert not OPENS.search(html)
    assert len(page.raw) == 4  # a style, the data, the libraries, the page's own script
    fragment = result._repr_html_()
    assert not OPENS.search(fragment)
    assert visible(name) in taken_apart(fragment).text


@settings(max_examples=60)
@given(st.lists(st.lists(st.text(max_size=8), max_size=3), max_size=4))
def test_any_json_can_stand_in_the_page(names: list[list[str]]) -> None:
    text = embedded(names)
    assert json.loads(text) == names
    assert not set("<>&") & set(text)


@given(st.text())
def test_whatever_is_not_seen_is_shown_as_a_sign(text: str) -> None:
    shown = visible(text)
    assert shown
    assert visible(shown) == shown
    shown.encode()


def test_a_coordinator_that_is_no_recipient_gets_all_but_the_tables() -> None:
    page = page_of(made(rules=True, elsewhere=True, **consents()))
    assert page.code("script") == []
    assert "The result went to north." in page.text
    for title in ("What it cost", "Who learnt what", "Consents", "Receipts", "Parameters", "Run it again"):
        assert title in page.text
    assert "Itemsets by length" not in page.text


def test_nothing_found_is_said() -> None:
    text = page_of(made(rules=True, min_count=4)).text
    assert "No itemset reaches the minimum support" in text
    assert "No rule reaches the minimum confidence" in text


def test_what_does_not_fit_the_page_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (jobs.report.tables, jobs.kinds.itemsets_finding):
        monkeypatch.setattr(module, "MOST_ROWS", 3)
    result = made(rules=True)
    page = page_of(result)
    assert page.data is not None
    assert len(page.data["itemsets"]["count"]) == len(page.data["rules"]["count"]) == 3
    assert result.tables.get("itemsets") is not None
    counts = result.tables["itemsets"]["count"].to_pylist()
    assert sorted(page.data["itemsets"]["count"]) == sorted(counts)[-3:]
    assert f"This page holds the 3 of highest count; all {len(counts)} are in itemsets.csv." in page.text


def test_supports_that_are_not_disclosed_are_nowhere_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    page = page_of(made(rules=True, counted=False))
    text = " ".join(page.text.split())
    assert "Supports are not disclosed: the job reveals which itemsets are frequent, and no count." in text
    assert "Confidences are not disclosed" in text
    assert "supports not disclosed: only which itemsets are frequent" in text
    assert "length itemsets share of the most 1 3 2 3 3 1" in text
    assert "Items in most itemsets item itemsets share of the most <i> 4 a 4 b 4" in text
    assert "Items to which most rules lead" in text
    assert "The longest" not in text  # all are shown
    headings = page.text.split("Frequent itemsets")[1].split("What it cost")[0]
    assert not any(word in headings for word in ("None", "nan", "support", "confidence (", "lift", "∞", "%"))
    fields = {attributes.get("name") for name, attributes in page.elements if name == "input"}
    assert not {"support", "measure-confidence", "measure-lift"} & fields
    assert "scatter" not in {attributes.get("id") for _, attributes in page.elements}
    fragment = " ".join(taken_apart(made(rules=True, counted=False)._repr_html_()).text.split())
    assert "Supports are not disclosed by this job" in fragment
    assert "Longest itemsets of two or more items itemset <i>ab" in fragment
    assert "The first rules" in fragment
    assert "None" not in fragment
    for module in (jobs.report.tables, jobs.kinds.itemsets_finding):
        monkeypatch.setattr(module, "MOST_ROWS", 3)
    page = page_of(made(rules=True, counted=False))
    assert page.data is not None
    assert len(page.data["itemsets"]["lengths"]) == len(page.data["rules"]["antecedent"]["lengths"]) == 3
    assert "This page holds the first 3; all 7 are in itemsets.csv." in page.text


def test_consents_are_told() -> None:
    text = " ".join(page_of(made(**consents(by="Anna <anna@north.example>"))).text.split())
    assert "Proposed by analyst, to be started before 2027-01-15 08:00 UTC" in text
    assert "north Anna <anna@north.example> 2026-09-21 14:13 UTC" in text
    assert "agreed 2026-09-21 14:13 UTC" in text
    assert "its policy" in page_of(made(**consents())).text
    assert "A simulation asks nobody." in page_of(made().of_simulation(None)).text


def test_costs_are_told_beside_the_plan() -> None:
    text = " ".join(page_of(made(plan=plan())).text.split())
    assert "north 10 B plan 40 B (×4.00) 20 B plan 10 B (×0.50) 3 plan 3 (×1.00) 0.25 s plan 0.50 s (×2.00)" in text
    assert "the <parties> are idle" in text
    assert "plan" not in page_of(made()).text.split("What it cost")[1].split("Who learnt what")[0]


def test_receipts_tell_who_agrees_and_on_what() -> None:
    text = " ".join(page_of(made()).text.split())
    assert f"north – ✓agrees {'07' * 8}…" in text
    assert "comine audit verify" in text
    assert bytes(range(32)).hex() in text


def test_the_statement_is_a_matrix_of_those_who_learn_alike() -> None:
    page = page_of(made())
    headings = page.text.split("Each line of the statement")[1].split("result")[0]
    assert "coordinator" in headings
    assert "north" in headings
    assert page.text.count("Not covered: ") == 3


def test_each_line_of_the_statement_has_its_exact_form_under_it() -> None:
    result = made()
    page = report(result, written=datetime(2026, 1, 2, tzinfo=UTC))
    lines = statement(result.spec).learned
    assert any(line.detail for line in lines)
    for line in lines:
        under = f"<details><summary>exact form</summary>{escape(line.detail)}</details>" if line.detail else ""
        assert f"<div>{escape(line.what)}{under}</div>" in page


def test_result_json_holds_consents_and_the_plan_beside_the_costs() -> None:
    contents = document(made(plan=plan(), **consents()))
    jsonschema.validate(contents, json.loads(generate("result")))
    assert contents["plan"]["north"]["bytes_sent"] == {"predicted": 40, "actual": 10, "ratio": 4}
    assert [entry["party"] for entry in contents["consents"]["approvals"]] == ["north", "south"]
    plain = document(made())
    jsonschema.validate(plain, json.loads(generate("result")))
    assert plain["plan"] is None
    assert plain["consents"] is None


def test_the_libraries_are_those_that_were_built() -> None:
    told = (VENDOR / "README.md").read_text(encoding="utf-8")
    for path in sorted(VENDOR.glob("libraries.min.*")):
        assert f"| `{path.name}` | `{hashlib.sha256(path.read_bytes()).hexdigest()}` |" in told
        assert "</script" not in path.read_text(encoding="utf-8").lower()
        assert "</style" not in path.read_text(encoding="utf-8").lower()
    pinned = json.loads((VENDOR / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert not any("resolved" in package for package in pinned.values())
    for name, package in pinned.items():
        if name in ("node_modules/echarts", "node_modules/tabulator-tables", "node_modules/zrender"):
            assert f"| {package['version']} |" in told


@pytest.mark.parametrize("result", some_results())
def test_a_notebook_shows_the_figures_and_loads_nothing(result: Result) -> None:
    fragment = result._repr_html_()
    page = taken_apart(fragment)
    assert page.unclosed == []
    assert not {"script", "link", "img"} & {name for name, _ in page.elements}
    assert "http" not in fragment
    assert "Who learnt what" in page.text
    assert '.save("folder")' in page.text
    assert ("no recipient" in page.text) == (result.finding is None)


def test_a_result_names_itself() -> None:
    assert repr(made(name="weekly")) == "Result('weekly', itemsets, 2 parties, 4 rows, 7 itemsets)"
    assert repr(made(name="weekly", elsewhere=True)).endswith("result elsewhere)")


def test_the_page_packs_tightly() -> None:
    """A number for each item of each itemset, its length and its count, and each name once."""
    data = json.loads(embedded(page_data(made())))
    assert data["itemsets"] == {
        "lengths": [1, 1, 1, 2, 2, 2, 3],
        "items": [0, 1, 2, 0, 1, 0, 2, 1, 2, 0, 1, 2],
        "count": [2, 3, 3, 1, 2, 2, 1],
    }
