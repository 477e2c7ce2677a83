"""Builds the documentation site of the Markdown pages: `python scripts/documentation.py FOLDER`.

The pages keep their places, so their links hold here, on the site and where a forge shows them. What is new in a folder
is in the navigation by itself: pages stand in the order in which `docs/index.md` links them, others after these. The
site loads nothing from elsewhere, and its search works from the file system.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
LINK: Final = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
_HEADING: Final = re.compile(r"^# (.+)$", re.MULTILINE)
_FENCE: Final = re.compile(r"^```(\w+)[^\n]*$", re.MULTILINE)
_EXAMPLE: Final = re.compile(r"^( +)Example:$", re.MULTILINE)
_PYTHON: Final = ("comine", "ldp", "anonymize", "client")
_SECTIONS: Final = {  # those of the navigation: their folders, or their pages
    "Paths": "docs/paths",
    "Tasks": "docs/tasks",
    "Reference": "docs",
    "Errors": "docs/errors",
    "Python": "python",
    "Protocols": "docs/protocols",
    "Local differential privacy": "docs/ldp",
    "Anonymisation": "docs/anonymize",
    "Examples": "examples",
    "Project": ".",
}
_HOME: Final = "README.md"
_SHIM: Final = "https://unpkg.com/iframe-worker/shim"
_WORKER: Final = "assets/javascripts/iframe-worker.js"


def build(site: Path, *, strict: bool) -> None:
    """Writes the site.

    Args:
        site: The folder, replaced if it is there.
        strict: Whether a link that leads nowhere is a failure.

    Raises:
        subprocess.CalledProcessError: zensical fails; it has said why.
    """
    work = ROOT / "build" / f"docs-{os.getpid()}"
    try:
        pages = _assembled(work / "pages")
        _sources(work / "sources")
        configuration = work / "mkdocs.yml"  # YAML, of which JSON is a part
        configuration.write_text(json.dumps(_settings(work / "pages", pages)), encoding="utf-8")
        command = [sys.executable, "-m", "zensical", "build", "--clean", "--config-file", str(configuration)]
        subprocess.run([*command, *(["--strict"] if strict else [])], cwd=ROOT, check=True)
        _offline(work / "site")
        shutil.rmtree(site, ignore_errors=True)
        shutil.copytree(work / "site", site)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _offline(site: Path) -> None:
    """Replaces what the pages would load from elsewhere by the copy here: the worker of their search for `file:`."""
    shutil.copyfile(ROOT / "scripts/vendor/iframe-worker.js", site / _WORKER)
    (site / "search.json").unlink()  # the same as search.js, which pages of files can load
    for page in site.rglob("*.html"):
        up = "../" * (len(page.relative_to(site).parts) - 1)
        page.write_text(page.read_text(encoding="utf-8").replace(_SHIM, up + _WORKER), encoding="utf-8")


def _assembled(folder: Path) -> list[str]:
    """Copies all pages, and what they show and link, to `folder`; gives the paths of the pages."""
    sources = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    pages = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in sorted(sources)}
    pages |= {f"python/{name}.md": _reference(name) for name in _PYTHON}
    pages["docs/errors/index.md"] = "# Errors\n\n" + "".join(
        f"* [{_title(text)}]({path.rpartition('/')[2]})\n"
        for path, text in pages.items()
        if path.startswith("docs/errors/")
    )
    for path, text in pages.items():
        to = folder / path
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(_linked(_fenced(text), path, pages, folder), encoding="utf-8")
    return list(pages)


def _reference(package: str) -> str:
    """A page of a package: what its docstring says, and each public name."""
    tree = ast.parse((ROOT / package / "__init__.py").read_text(encoding="utf-8"))
    (named,) = (
        statement.value
        for statement in tree.body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__"
    )
    names = "".join(f"::: {package}.{name}\n\n" for name in ast.literal_eval(named))
    return f"# {package}\n\n{ast.get_docstring(tree)}\n\n{names}"


def _sources(folder: Path) -> None:
    """Copies the packages; a section `Example:` of a docstring becomes `Examples:`, which griffe shows as code."""
    for package in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"][
        "packages"
    ]:
        for source in (ROOT / package).rglob("*.py"):
            to = folder / source.relative_to(ROOT)
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text(_EXAMPLE.sub(r"\1Examples:", source.read_text(encoding="utf-8")), encoding="utf-8")


def _linked(text: str, page: str, pages: dict[str, str], folder: Path) -> str:
    return LINK.sub(lambda link: _leading(link, page, pages, folder), text)


def _leading(link: re.Match[str], page: str, pages: dict[str, str], folder: Path) -> str:
    """The link as the site has it: to a page or a copy of a file; of a folder without a page only the words remain."""
    target = os.path.normpath(os.path.join(os.path.dirname(page), link[3]))
    if "://" in link[3] or target in pages:
        return link[0]
    if f"{target}/index.md" in pages:
        return f"[{link[2]}]({link[3].rstrip('/')}/index.md)"
    if (ROOT / target).is_file():
        (folder / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / target, folder / target)
        return link[0]
    return link[2]


def _fenced(text: str) -> str:
    """Fences name a language alone; what else they say is for the tests that run them."""
    return _FENCE.sub(r"```\1", text)


def _title(text: str) -> str:
    found = _HEADING.search(text)
    return found[1] if found else "comine"


def _settings(folder: Path, pages: list[str]) -> dict[str, Any]:
    return {
        "site_name": "comine",
        "docs_dir": folder.name,
        "site_dir": "site",
        "use_directory_urls": False,
        "extra": {"generator": False},
        "theme": {
            "name": "material",
            "language": "en",
            "font": False,
            "features": ["navigation.tabs", "navigation.top", "content.code.copy", "toc.follow", "search.highlight"],
            "palette": [
                {"media": "(prefers-color-scheme: light)", "scheme": "default"},
                {"media": "(prefers-color-scheme: dark)", "scheme": "slate"},
            ],
        },
        "plugins": [
            "search",
            "offline",
            {
                "mkdocstrings": {
                    "handlers": {"python": {"paths": [str(folder.parent / "sources")], "options": _docstrings()}}
                }
            },
        ],
        "markdown_extensions": [
            "attr_list",
            "tables",
            "toc",
            "pymdownx.superfences",
            {"pymdownx.highlight": {"anchor_linenums": False}},
        ],
        "nav": list(_navigation(folder, pages)),
    }


def _docstrings() -> dict[str, Any]:
    return {
        "docstring_style": "google",
        "show_source": False,
        "show_root_heading": True,
        "show_root_full_path": False,
        "preload_modules": ["anonymize", "crypto", "jobs", "ldp", "link", "mining"],
        "heading_level": 2,
        "merge_init_into_class": True,
        "separate_signature": True,
        "show_signature_annotations": True,
    }


def _navigation(folder: Path, pages: list[str]) -> Iterator[dict[str, Any]]:
    yield {"comine": _HOME}
    index = (folder / "docs/index.md").read_text(encoding="utf-8")
    order = [os.path.normpath(f"docs/{link[3]}") for link in LINK.finditer(index)]

    def place(page: str) -> tuple[bool, int, str]:
        first = page.endswith("/index.md")
        return not first, order.index(page) if page in order else len(order), page

    for name, section in _SECTIONS.items():
        inside = [page for page in pages if page != _HOME and os.path.normpath(section) == _room(page)]
        entries = [{_title((folder / page).read_text(encoding="utf-8")): page} for page in sorted(inside, key=place)]
        yield {name: entries}


def _room(page: str) -> str:
    """The folder in whose section a page stands: its own; each example has one for itself."""
    above = os.path.dirname(page) or "."
    return "examples" if above.startswith("examples") else above


if __name__ == "__main__":
    build(Path(sys.argv[1]), strict=True)
