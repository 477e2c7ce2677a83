"""The report in headless Chromium, where it is installed: the page as people use it."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from decimal import Decimal
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from coordinator.comparison.compare import compare
from coordinator.comparison.report import report as comparison_report
from coordinator.jobs.simulation.simulate import simulate_job
from jobs.report.page import report
from jobs.results.result import Result
from jobs.spec.job import JobSpec
from mining.data.transactions import Transactions
from tests.browser import CHROMIUM
from tests.jobs.results.made import consents, made, plan
from tests.mining.joint.hybrid.hybrid_world import PARTIES, baskets, job

pytestmark = [
    pytest.mark.slow,
    pytest.mark.turn(3),
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed; the page is not looked at"),
]

ROWS = [["milk", "bread"], ["milk", "bread", "</script>"], ["milk", "beer"], ["bread"], ["beer", "milk", "bread"]] * 3


def seen(tmp_path: Path, html: str, *, width: int = 1200) -> str:
    """The page's elements after its scripts have run; fails where the browser complains of anything."""
    page = tmp_path / "report.html"
    page.write_text(html, encoding="utf-8")
    ran = subprocess.run(
        [
            str(CHROMIUM),
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'profile'}",
            f"--window-size={width},2400",
            "--virtual-time-budget=8000",
            "--run-all-compositor-stages-before-draw",  # what is drawn in a frame is there when time is up
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    complaints = [line for line in ran.stderr.splitlines() if ":CONSOLE" in line]
    assert complaints == []
    return ran.stdout


def framed(tmp_path: Path, html: str, width: int, script: str) -> Any:
    """What a script finds of `page`, the document in a frame of that width, which may be narrower than any window."""
    html = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", html)
    held = html.replace("&", "&amp;").replace('"', "&quot;")
    dumped = seen(
        tmp_path,
        f"""<!doctype html><title></title>
        <body style="margin:0"><iframe style="border:0;width:{width}px;height:9000px" srcdoc="{held}"></iframe>
        <script type="module">
          const pause = (ms) => new Promise((done) => setTimeout(done, ms));
          if (document.readyState !== "complete") await new Promise((done) => window.addEventListener("load", done));
          const frame = document.querySelector("iframe").contentWindow;
          const page = frame.document;
          for (const event of ["beforeprint", "afterprint"]) frame.dispatchEvent(new Event(event));  // draws at once
          await pause(3500);
          document.title = JSON.stringify(await (async () => {{ {script} }})());
          document.querySelector("iframe").remove();
        </script></body>""",
        width=width,
    )
    title = re.search(r"<title>(.*?)</title>", dumped, re.DOTALL)
    assert title is not None
    return json.loads(unescape(title[1]))


def driven(tmp_path: Path, result: Result, script: str) -> Any:
    """What a script finds that uses the page as a person would; only for it the policy is taken out."""
    html = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", report(result))
    steps = f"""<script type="module">
      const pause = (ms) => new Promise((done) => setTimeout(done, ms));
      const rows = (table) => [...document.querySelectorAll(`#${{table}} .tabulator-row`)].map((row) => row.innerText);
      const enter = (form, name, value) => {{
        const field = document.getElementById(form).elements[name];
        field.value = value;
        field.dispatchEvent(new Event("input", {{ bubbles: true }}));
      }};
      const left = (form) => document.querySelector(`#${{form}} output`).textContent;
      await pause(2000);
      while (document.getElementById("itemsets-table") && !rows("itemsets-table").length) await pause(50);
      const found = await (async () => {{ {script} }})();
      document.title = JSON.stringify(found);
    </script></body>"""
    dumped = seen(tmp_path, html.replace("</body>", steps))
    title = re.search(r"<title>(.*?)</title>", dumped, re.DOTALL)
    assert title is not None
    return json.loads(unescape(title[1]))


@pytest.mark.parametrize("width", [360, 1600])
def test_everything_is_drawn_without_a_complaint(tmp_path: Path, width: int) -> None:
    dumped = seen(tmp_path, report(made(rules=True, rows=ROWS, plan=plan(), **consents())), width=width)
    assert dumped.count("<canvas") >= 2
    assert dumped.count("tabulator-row ") >= 10
    assert "&lt;/script&gt;" in dumped


LONG = [
    *(f"third-party liability insurance for {whom}" for whom in ("agriculture", "private persons", "firms", "clubs")),
    *(f"disability insurance of employees, category {letter}" for letter in "AB"),
    *(f"fire insurance with a very long name, form {number}" for number in range(14)),
]
LONG_ROWS = [[LONG[place], LONG[(3 * place + 1) % 20], LONG[(7 * place + 2) % 20]] for place in range(20)] * 3
BOXES = """
    const chart = page.getElementById("pairs-chart").chart;
    const drawn = chart.getZr().storage.getDisplayList();
    const texts = drawn.filter((each) => each.type === "tspan" && !each.ignore && each.style.text);
    const boxes = texts.map((each) => {
      const box = each.getBoundingRect().clone();
      if (each.transform) box.applyTransform(each.transform);
      return { text: each.style.text, left: box.x, right: box.x + box.width, top: box.y, bottom: box.y + box.height };
    });
    const root = page.scrollingElement;
    const clipped = [...page.querySelectorAll(".tabulator-col-title, .figure, h1, h2, nav ~ * th")]
      .filter((each) => each.offsetParent && each.scrollWidth > each.clientWidth + 1 && each.clientWidth)
      .map((each) => each.textContent);
    const items = chart.getOption().series[0].data.length;
    const wide = root.scrollWidth - root.clientWidth;
    return { boxes, items, width: chart.getWidth(), wide, clipped };
"""


@pytest.mark.parametrize("width", [390, 1200])
def test_no_labels_collide_no_names_are_alike_and_nothing_is_wider_than_the_page(tmp_path: Path, width: int) -> None:
    found = framed(tmp_path, report(made(rules=True, rows=LONG_ROWS, min_count=3)), width, BOXES)
    boxes = found["boxes"]
    assert len(boxes) >= 0.8 * found["items"] >= 8
    assert len({box["text"] for box in boxes}) == len(boxes)
    for place, box in enumerate(boxes):
        assert 0 <= box["left"] < box["right"] <= found["width"], box
        for other in boxes[:place]:
            beside = box["right"] <= other["left"] or other["right"] <= box["left"]
            assert beside or box["bottom"] <= other["top"] or other["bottom"] <= box["top"], (box, other)
    used = max(box["right"] for box in boxes) - min(box["left"] for box in boxes)
    assert used > 0.8 * found["width"]
    assert found["wide"] <= 0
    assert found["clipped"] == []


def test_paper_has_charts_of_its_width_in_light_colours(tmp_path: Path) -> None:
    steps = """
        frame.dispatchEvent(new Event("beforeprint"));
        const charts = [...page.querySelectorAll(".chart")].map((holder) => holder.chart.getWidth());
        const closed = page.querySelectorAll("details:not([open])").length;
        const printed = [...page.styleSheets].flatMap((sheet) => [...sheet.cssRules])
          .filter((rule) => rule.media && rule.media.mediaText === "print").flatMap((rule) => [...rule.cssRules]);
        const moved = [...page.querySelectorAll("figcaption, .caption, p, div")]
          .filter((each) => !each.children.length || each.querySelector(":scope > .on-screen"))
          .filter((each) => /Drag|Draw|click/.test(each.textContent));
        const shown = moved.filter((each) => !printed.some((rule) => rule.style.display === "none"
          && [...each.querySelectorAll(rule.selectorText)].some((part) => /Drag|Draw|click/.test(part.textContent))));
        return [charts, closed, page.documentElement.className, moved.length, shown.length];
    """
    charts, closed, name, moved, shown = framed(tmp_path, report(made(rules=True, rows=ROWS)), 1200, steps)
    assert set(charts) == {680}
    assert closed == 0
    assert "printing" in name
    assert moved == 2
    assert not shown  # what only a pointer can do is not printed


@pytest.mark.parametrize(
    "result",
    [
        pytest.param(made(rules=True, min_count=4), id="nothing found"),
        pytest.param(made(rules=True, rows=[["a"]]), id="one item"),
        pytest.param(made(rules=True, elsewhere=True), id="result elsewhere"),
        pytest.param(made(rows=ROWS), id="itemsets only"),
        pytest.param(made(rules=True, rows=ROWS, counted=False), id="no supports"),
    ],
)
def test_pages_with_less_in_them_work_too(tmp_path: Path, result: Result) -> None:
    dumped = seen(tmp_path, report(result))
    assert ("No two items are frequent together" in dumped) == (result.finding is not None)
    assert "Run it again" in dumped


def test_tables_sort_and_filter(tmp_path: Path) -> None:
    found = driven(
        tmp_path,
        made(rules=True, rows=ROWS),
        """
        const first = rows("itemsets-table")[0];
        document.querySelector('#itemsets-table [tabulator-field="Length"] button').click();
        await pause(300);
        const longest = rows("itemsets-table")[0];
        enter("itemsets-filters", "text", "MILK, bre");
        await pause(600);
        const searched = [left("itemsets-filters"), rows("itemsets-table").length];
        enter("itemsets-filters", "long", "2");
        await pause(600);
        const pair = rows("itemsets-table");
        enter("itemsets-filters", "support", "99");
        await pause(600);
        const none = left("itemsets-filters");
        document.getElementById("itemsets-filters").reset();
        await pause(600);
        const all = left("itemsets-filters");
        enter("rules-filters", "side", "consequent");
        enter("rules-filters", "text", "beer");
        await pause(600);
        const rules = left("rules-filters");
        enter("rules-filters", "measure-confidence", "1");
        await pause(600);
        return { first, longest, searched, pair, none, all, rules, certain: left("rules-filters") };
        """,
    )
    result = made(rules=True, rows=ROWS)
    assert result.tables.get("itemsets") is not None
    assert result.tables.get("rules") is not None
    sets = result.tables["itemsets"].to_pylist()
    both = [row for row in sets if {"milk", "bread"} <= set(row["itemset"])]
    assert found["first"].startswith(("milk", "bread"))
    assert all(item in found["longest"] for item in ("milk", "bread", "</script>"))
    assert found["searched"] == [f"{len(both)} of {len(sets)} itemsets", len(both)]
    assert len(found["pair"]) == 1
    assert found["none"] == f"0 of {len(sets)} itemsets"
    assert found["all"] == f"{len(sets)} itemsets"
    rules = [row for row in result.tables["rules"].to_pylist() if "beer" in row["consequent"]]
    certain = [row for row in rules if row["confidence"] == 1]
    total = len(result.tables.get("rules"))
    assert found["rules"] == f"{len(rules)} of {total} rules"
    assert found["certain"] == f"{len(certain)} of {total} rules"


def test_a_page_without_supports_sorts_filters_and_draws(tmp_path: Path) -> None:
    result = made(rules=True, rows=ROWS, counted=False)
    found = driven(
        tmp_path,
        result,
        """
        const first = rows("itemsets-table")[0];
        enter("itemsets-filters", "text", "milk, bre");
        enter("rules-filters", "side", "consequent");
        enter("rules-filters", "text", "beer");
        await pause(600);
        const told = [left("itemsets-filters"), left("rules-filters")];
        const captions = [document.getElementById("pairs-caption").textContent];
        for (const [name, value] of [["links", "rules"], ["view", "matrix"]]) {
          document.querySelector(`#pairs-choices [name=${name}][value=${value}]`).click();
          await pause(300);
          captions.push(document.getElementById("pairs-caption").textContent);
        }
        return { first, told, captions };
        """,
    )
    assert result.tables.get("itemsets") is not None
    assert result.tables.get("rules") is not None
    sets, rules = (
        result.tables["itemsets"]["itemset"].to_pylist(),
        result.tables["rules"]["consequent"].to_pylist(),
    )
    both = [items for items in sets if {"milk", "bread"} <= set(items)]
    assert all(item in found["first"] for item in ("milk", "bread"))
    assert found["told"] == [
        f"{len(both)} of {len(sets)} itemsets",
        f"{sum('beer' in items for items in rules)} of {len(rules)} rules",
    ]
    assert [caption.split(":")[0].split(",")[0] for caption in found["captions"]] == [
        "The 5 pairs in most itemsets",
        "The links of most rules",
        "The 4 items with the pairs in most itemsets",
    ]


def test_network_and_matrix_take_turns(tmp_path: Path) -> None:
    found = driven(
        tmp_path,
        made(rules=True, rows=ROWS),
        """
        const told = [];
        for (const [name, value] of [["view", "matrix"], ["view", "network"], ["by", "count"], ["links", "rules"]]) {
          told.push(document.getElementById("pairs-caption").textContent);
          document.querySelector(`#pairs-choices [name=${name}][value=${value}]`).click();
          await pause(300);
        }
        told.push(document.getElementById("pairs-caption").textContent);
        return told;
        """,
    )
    assert [caption.split(":")[0].split(",")[0] for caption in found] == [
        "The 5 pairs of highest lift",
        "The 4 items with the pairs of highest lift",
        "The 5 pairs of highest lift",
        "The 5 pairs of highest count",
        "The rules of highest count",
    ]


def test_estimates_are_drawn_with_intervals(tmp_path: Path) -> None:
    spec = job(job={"task": "rules"}, rules={"min_confidence": "0.1"}, itemsets={"top_k": 8})
    data = {party: Transactions.from_rows(baskets(500, place)) for place, party in enumerate(PARTIES)}
    dumped = seen(tmp_path, report(asyncio.run(simulate_job(spec, data, seed=1))))
    assert re.search(r'id="intervals".*?<canvas', dumped, re.DOTALL)
    assert "Confidence low" in dumped


@pytest.mark.parametrize("epsilons", [(), (Decimal(1), Decimal(4))], ids=["one epsilon", "two"])
def test_a_comparison_is_drawn_without_a_complaint(tmp_path: Path, epsilons: tuple[Decimal, ...]) -> None:
    data = {party: Transactions.from_rows(baskets(500, place)) for place, party in enumerate(PARTIES)}
    spec = job(privacy={"model": "distributed", "epsilon": "2", "delta": "1e-6"}, itemsets={"min_support": "0.2"})

    async def run(changed: JobSpec, seed: int | None) -> Result:
        return await simulate_job(changed, data, seed=seed)

    made = asyncio.run(compare(spec, ("local", "distributed"), epsilons, run, (1,)))
    dumped = seen(tmp_path, comparison_report(made))
    assert dumped.count("<canvas") == 2
    assert "tabulator-row " in dumped
