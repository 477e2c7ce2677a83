"""The documentation is whole: errors, protocols and tasks have pages, links lead somewhere, examples load."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from jobs.spec import JobSpec
from link.errors import BY_CODE

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    page
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md"))
    if "node_modules" not in page.parts
)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(`{3,}).*?^\1`*\s*$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+\s+(.*?)\s*#*$", re.MULTILINE)
TOML = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)
TASKS = ("itemsets", "rules", "simulate", "three-organisations", "loading-data", "run-a-party")
PROTOCOL_PAGES = {
    "secure_sum": "secure-sum",
    "ring_sum": "ring-sum",
    "set_union": "set-union",
}
HELPERS = {"pairwise", "union_lists", "union_disclosure", "layers"}  # parts of protocols that have pages


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The names that headings of a page get."""
    made = (re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(prose(page)))
    return set(made)


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_every_error_has_a_page() -> None:
    pages = {page.stem: page for page in (ROOT / "docs" / "errors").glob("E*.md")}
    assert set(pages) == set(BY_CODE)
    for code, error in BY_CODE.items():
        assert f"Exit code {error.exit_code}" in pages[code].read_text(), code


def test_every_protocol_has_a_page() -> None:
    modules = {path.stem for path in (ROOT / "crypto" / "protocols").glob("*.py")} - {"__init__"}
    assert modules - HELPERS == set(PROTOCOL_PAGES)
    for page in (*PROTOCOL_PAGES.values(), "joint-itemsets"):
        assert (ROOT / "docs" / "protocols" / f"{page}.md").is_file(), page


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_a_page(task: str) -> None:
    page = ROOT / "docs" / "tasks" / f"{task}.md"
    assert page.is_file()
    assert f"tasks/{task}.md" in (ROOT / "docs" / "index.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(prose(page)):
        if target.startswith(("https://", "mailto:")):
            continue
        file, _, anchor = target.partition("#")
        found = page if not file else (page.parent / file).resolve()
        assert found.exists(), target
        if anchor:
            assert anchor in anchors(found), target


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_toml_in_pages_can_be_read_and_whole_jobs_load(page: Path) -> None:
    for block in TOML.findall(page.read_text(encoding="utf-8")):
        contents = tomllib.loads(block)
        itemsets = contents.get("itemsets", {})
        if "job" in contents and itemsets.get("universe", "frequent-items") in ("frequent-items", "all-items"):
            JobSpec.of(contents, named(page), page.parent)


@pytest.mark.parametrize("job", sorted((ROOT / "examples").rglob("job.toml")), ids=named)
def test_examples_load(job: Path) -> None:
    spec = JobSpec.load(job)
    assert JobSpec.from_canonical(spec.canonical()) == spec
