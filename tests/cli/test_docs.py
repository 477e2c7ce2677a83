"""`comine docs`: the pages as they are installed, and what points to them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from coordinator.cli.pages import folder, names
from tests.cli.conftest import Comine
from tests.product_texts import product_texts

POINTER = re.compile(r"comine docs ([\w/-]+)")


def test_the_path_of_a_page_is_printed(comine: Comine) -> None:
    for page in ("tasks/plan", "plan", "docs/tasks/plan.md"):
        ran = comine("docs", page, "--print")
        assert (ran.code, ran.err) == (0, "")
        assert re.fullmatch(r".*/docs/tasks/plan\.(md|html)", ran.out)
        assert Path(ran.out.strip()).is_file()


def test_where_no_browser_can_be_opened_the_page_is_printed(comine: Comine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webbrowser.open", lambda url: False)
    assert comine("docs", "faq").out.startswith("# Questions that come up\n")
    assert comine("docs").out.startswith("# Documentation\n")


def test_a_site_opens_in_the_browser(comine: Comine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    monkeypatch.setattr("coordinator.cli.pages.of_site", lambda name: tmp_path / f"{name}.html")
    ran = comine("docs", "faq")
    assert (ran.code, ran.out) == (0, "")
    assert opened == [(tmp_path / "faq.html").as_uri()]


@pytest.mark.parametrize(
    ("page", "hint"),
    [
        ("tasks/plann", "there is no page called 'tasks/plann'; there are tasks/plan"),
        (
            "frequency-service",
            "several pages are called 'frequency-service'; there are protocols/frequency-service, tasks/",
        ),
        ("zzzzzzzzzz", "there is no page called 'zzzzzzzzzz'; comine docs, without a name, opens the list of all"),
    ],
)
def test_a_page_that_is_not_there_is_told_with_those_like_it(comine: Comine, page: str, hint: str) -> None:
    ran = comine("docs", page)
    assert ran.code == 2
    assert hint in ran.err


def test_what_the_product_says_points_to_installed_pages_alone() -> None:
    texts = [text for text in product_texts() if "\n\n" not in text]  # docstrings are for who has the code
    assert [text for text in texts if re.search(r"\bdocs/\w|\w\.md\b", text) and " " in text] == []
    pointed = {name for text in product_texts() for name in POINTER.findall(text)}
    assert {"reference-keys", "run-jobs", "write-a-policy"} <= pointed
    last = [name.rpartition("/")[2] for name in names()]
    assert {name for name in pointed if name not in names() and last.count(name) != 1} == set()
    assert (folder() / "index.md").is_file()
