"""The documentation site: strict, without anything from elsewhere, and with every key and every page."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from jobs.federation import Federation
from jobs.schema import generate
from party.config import PartyConfig

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / ".venv-docs" / "bin" / "python"
LOADED = re.compile(
    r"""<(?:script|img|iframe|source|embed)[^>]*\bsrc=["']?([^"' >]+)|<link[^>]*\bhref=["']?([^"' >]+)"""
)
IN_STYLES = re.compile(r"url\(([^)]+)\)")


@pytest.fixture(scope="module")
def keys() -> ModuleType:
    found = importlib.util.spec_from_file_location("reference_keys", ROOT / "scripts" / "reference_keys.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page(keys: ModuleType) -> str:
    made: str = keys.page()
    return made


def test_the_reference_of_keys_is_fresh(keys: ModuleType, page: str) -> None:
    assert keys.PAGE.read_text(encoding="utf-8") == page, "run python scripts/reference_keys.py"


def test_no_key_is_absent_and_each_has_a_meaning(page: str) -> None:
    rows = re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", page, re.MULTILINE)
    assert [key for key, meaning in rows if not meaning.strip()] == []
    headings = " ".join(re.findall(r"^### .*$", page, re.MULTILINE))
    named = {key for key, _ in rows} | set(re.findall(r"[\w-]+", headings))
    for schema in (
        json.loads(generate("job")),
        json.loads(generate("collection")),
        PartyConfig.model_json_schema(),
        Federation.model_json_schema(),
    ):
        assert set(properties(schema)) - named == set()


def properties(schema: Any) -> Iterator[str]:
    """All keys of all tables of a schema."""
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict):
            yield from schema["properties"]
        for part in schema.values():
            yield from properties(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from properties(part)


@pytest.mark.slow
@pytest.mark.skipif(not TOOLS.exists(), reason="the tools of the site are not installed: make docs-tools")
def test_the_site_is_built_strictly_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    site = tmp_path / "site"
    done = subprocess.run(
        [TOOLS, ROOT / "scripts" / "documentation.py", site], capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {page.relative_to(site).as_posix(): page.read_text(encoding="utf-8") for page in site.rglob("*.html")}
    loaded = {address for text in pages.values() for pair in LOADED.findall(text) for address in pair if address}
    styles = {address for sheet in site.rglob("*.css") for address in IN_STYLES.findall(sheet.read_text())}
    assert {address for address in loaded | styles if re.match(r"(?:https?:)?//", address.strip("\"'"))} == set()
    assert any(address.endswith("iframe-worker.js") for address in loaded)
    assert (site / "search.js").is_file()
    for source in (ROOT / "docs").rglob("*.md"):
        name = source.relative_to(ROOT).with_suffix(".html").as_posix()
        assert name in pages
        assert f'href="./{name}" class="md-nav__link' in pages["index.html"], source
    assert "simulate" in pages["python/comine.html"]
    assert "Transactions" in pages["python/comine.html"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed")
def test_pictures_of_pages_can_be_made_anew(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "screenshots.py", tmp_path],
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    made = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert all(20_000 < size < 400_000 for size in made.values())
    kept = {path.name for path in (ROOT / "docs" / "images").glob("*.png")}
    assert set(made) == {name for name in kept if not name.startswith("console-")}
