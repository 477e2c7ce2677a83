"""`report.html` of releases and explorations: whole, safe, and with the figures of the release."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.columns import Column
from anonymize.fulldomain.optimal import optimal
from anonymize.hierarchies.builders import flat, intervals
from anonymize.models import KAnonymity, Requirements
from anonymize.roles import Roles
from anonymize.tables import Table
from jobs.anonymization.api import anonymize
from jobs.anonymization.distributions import class_sizes, distributions
from jobs.anonymization.exploring import document, explore
from jobs.anonymization.folder import write_folder
from jobs.anonymization.frontier_page import report as frontier_report
from jobs.anonymization.inputs import load
from jobs.anonymization.plots import HEIGHT, paired_bars
from jobs.anonymization.running import run
from jobs.anonymization.wording import protections
from jobs.report import text
from tests.jobs.anonymization.released import JOBS, release_here
from tests.jobs.report.pages import Page, taken_apart

EVIL = "<script>alert(1)</script>"
ROWS = [
    (20 + i * 7 % 45, ("Oslo", "Rome", EVIL)[i % 3], ("flu", "HIV", "a & b")[(i * 5 + i // 4) % 3]) for i in range(90)
]
CONFIG = """[anonymize]
source = "rows.csv"
quasi_identifiers = ["age", "city"]
sensitive = ["disease"]
algorithm = "{algorithm}"
{top}
[anonymize.columns]
age = {{ kind = "numeric" }}
[anonymize.hierarchies]
age = {{ builder = "intervals", widths = [10, 20], range = [0, 99] }}
city = {{ builder = "flat" }}
{more}
"""


def written(folder: Path, algorithm: str = "optimal", top: str = "", more: str = "[anonymize.model]\nk = 4\n") -> Path:
    lines = ["age,city,disease", *(",".join(map(str, row)) for row in ROWS)]
    (folder / "rows.csv").write_text("\n".join(lines) + "\n")
    (folder / "a.toml").write_text(CONFIG.format(algorithm=algorithm, top=top, more=more))
    return folder / "a.toml"


def page(folder: Path, **more: str) -> tuple[Page, Any]:
    inputs = load(written(folder, **more))
    certificate = write_folder(folder / "out", inputs, run(inputs))
    found = taken_apart((folder / "out/report.html").read_text(encoding="utf-8"))
    assert found.unclosed == []
    return found, certificate


def test_the_page_tells_the_figures_of_the_certificate(tmp_path: Path) -> None:
    found, certificate = page(tmp_path)
    for words in (
        certificate.statement,
        certificate.digest,
        f"{certificate.metrics['gcp']:.4f}",
        "at least 4 rows that could be theirs",
        "not for publication",
        "If these rows agree in a sensitive value, it is known all the same.",
        f"level {certificate.node['age']} of 3",
    ):
        assert words in found.text, words
    assert found.data is None
    assert found.code("script") == []
    assert "script-src 'none'" in found.policy


def test_the_policy_allows_the_style_and_nothing_else(tmp_path: Path) -> None:
    found, _ = page(tmp_path)
    (style,) = found.code("style")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in found.policy
    assert found.policy.startswith("default-src 'none'")
    assert not [a for _, attributes in found.elements for a in attributes if a in ("style", "onclick", "src")]


def test_values_stay_text(tmp_path: Path) -> None:
    found, _ = page(tmp_path, algorithm="mondrian")
    assert not [name for name, _ in found.elements if name == "script"]
    assert EVIL[:14] in found.text


@pytest.mark.parametrize(
    ("algorithm", "more", "words"),
    [
        ("mondrian", "[anonymize.model]\nk = 4\nl = 2\n", "Each class has at least 2 values of disease"),
        ("local-recoding", "[anonymize.model]\nk = 4\n", "local-recoding"),
        (
            "ppir",
            "[anonymize.ppir]\nranges = { age = 3, city = 1 }\n",
            "There is no formal guarantee",
        ),
        ("gpkc", "[anonymize.model]\nk = 4\np = 2\n", "Each class has at least 2 values of every one of: disease"),
    ],
)
def test_every_kind_of_release_has_a_page(tmp_path: Path, algorithm: str, more: str, words: str) -> None:
    found, certificate = page(tmp_path, algorithm=algorithm, more=more, top="seed = 1")
    assert words in found.text
    assert ("Rows by the size of their class" in found.text) == (certificate.classes is not None)
    assert ("Anybody who knows or guesses it" in found.text) == (algorithm in ("ppir", "gpkc"))


def test_the_page_of_an_exploration(tmp_path: Path) -> None:
    inputs = load(written(tmp_path))
    told = document(inputs, explore(inputs, {"k": [2, 4, 8, 500]}))
    found = taken_apart(frontier_report(told))
    assert found.unclosed == []
    assert found.data is not None
    assert [each["name"] for each in found.data["points"]] == ["k = 2", "k = 4", "k = 8"]
    assert "k = 500 cannot be met: the table has 90 records only" in found.text
    for script in found.code("script"):
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in found.policy


# -- distributions ----------------------------------------------------------------------------------------------------
TREES = {"age": intervals(range(100), (10, 20), name="age"), "city": flat(("Oslo", "Rome", EVIL), name="city")}


def test_distributions_by_hand() -> None:
    table = Table.of({"age": [21, 22, 35, 36], "d": ["x", "x", "x", "y"]}, Roles((), ("age",), ("d",)))
    release = optimal(table, TREES, Requirements((KAnonymity(2),)))
    age, disease = distributions(table, release, TREES)
    assert [(bar.label, bar.before) for bar in age.bars] == [("21", 0.25), ("22", 0.25), ("35", 0.25), ("36", 0.25)]
    # The two rows of each decade are spread over the values of it that there are.
    assert [bar.after for bar in age.bars] == pytest.approx([0.25] * 4)
    assert age.loss == pytest.approx(9 / 99)
    assert [(bar.label, bar.before, bar.after) for bar in disease.bars] == [("x", 0.75, 0.75), ("y", 0.25, 0.25)]
    assert (disease.role, disease.distance, disease.distinct, disease.loss) == ("sensitive", 0, (2, 2), None)


@given(st.lists(st.integers(0, 99), min_size=6, max_size=60), st.integers(1, 3))
def test_before_is_the_whole_and_after_no_more(ages: list[int], k: int) -> None:
    table = Table.of({"age": ages}, Roles(quasi_identifiers=("age",)))
    (found,) = distributions(table, optimal(table, TREES, Requirements((KAnonymity(k),))), TREES)
    assert sum(bar.before for bar in found.bars) == pytest.approx(1)
    assert sum(bar.after for bar in found.bars) <= 1 + 1e-9
    assert len(found.bars) <= 21


def test_class_sizes_are_shares_of_rows() -> None:
    bars = class_sizes(np.array([1, 1, 2, 6]), np.array([4, 6]))
    assert [(bar.label, bar.before, bar.after) for bar in bars] == [
        *(("1", 0.2, 0), ("2", 0.2, 0), ("3–4", 0, 0.4), ("5–9", 0.6, 0.6))
    ]


def test_the_highest_bar_fills_the_plot() -> None:
    bars = class_sizes(np.array([1, 3]), np.array([4]))
    plot = paired_bars(bars)
    assert max(max(bar.before, bar.after) for bar in plot.bars) == HEIGHT
    assert plot.ticks[-1][1] == text.percent(1.0)
    assert paired_bars([]).bars == ()


def test_every_model_is_told_in_words() -> None:
    column = Column.of("d", Table.of({"d": ["a", "b"]}, Roles(sensitive=("d",))).data.column("d"))
    assert column.size == 2
    from anonymize import models

    built = {
        "KAnonymity": (3,),
        "DistinctDiversity": (2, "d"),
        "EntropyDiversity": (2, "d"),
        "RecursiveDiversity": (2, 2, "d"),
        "TCloseness": (0.2, "d"),
        "PSensitive": (2, ("d", "e")),
        "AlphaK": (0.5, "d"),
        "SensitiveLevels": (1, (("a",), ("b",)), "d"),
        "BetaLikeness": (1, "d"),
        "DeltaDisclosure": (1, "d"),
    }
    assert set(built) == set(models.__all__) - {"Model", "Requirements"}
    every = tuple(getattr(models, name)(*arguments) for name, arguments in built.items())
    told = protections(every, "optimal", 3)
    assert [name for name, _ in told] == [model.name for model in every]
    assert not [each for _, each in told if "{" in each.holds + each.open]
    assert json.dumps([each.holds for _, each in told]).count(" d ") >= 5


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [("incognito", "Minimal nodes"), ("datafly", "Nodes passed"), ("local-recoding", "Nodes of the rounds")],
)
def test_the_search_is_told(tmp_path: Path, algorithm: str, words: str) -> None:
    found, certificate = page(tmp_path, algorithm=algorithm, top="max_suppression = 0.1")
    assert words in found.text
    assert f"nodes examined {certificate.statistics['checked']}" in " ".join(found.text.split())


def test_a_release_shows_itself_in_a_notebook(tmp_path: Path) -> None:
    rows = ["id,job,disease", *(f"{i},{JOBS[i % 6]},<b>flu</b>" for i in range(60))]
    release_here(tmp_path / "out", tmp_path)
    (tmp_path / "people.csv").write_text("\n".join(rows) + "\n")
    shown = anonymize(tmp_path / "anonymize.toml")._repr_html_()
    assert shown.startswith("<div><b>60 rows that may be published</b>, 2 classes; optimal</div>")
    assert "<tr><th>job</th><th>disease</th></tr>" in shown
    assert shown.count("<tr>") == 6
    assert "&lt;b&gt;flu" in shown
    assert "<b>flu" not in shown
