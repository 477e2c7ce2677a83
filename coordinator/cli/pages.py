"""The pages of the documentation as they are installed: Markdown always, the site where its tools built the wheel."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).parents[1]
_CHECKOUT: Final = _PACKAGE.parent
_MARKDOWN: Final = (_PACKAGE / "docs", _CHECKOUT / "docs")  # as installed, and in a checkout
_SITES: Final = (_PACKAGE / "site", _CHECKOUT / "build" / "site")


def folder() -> Path:
    """The folder of the pages as Markdown."""
    return next(folder for folder in _MARKDOWN if folder.is_dir())


def names() -> list[str]:
    """The pages by their paths without a suffix, such as `tasks/plan`."""
    return sorted(page.relative_to(folder()).with_suffix("").as_posix() for page in folder().rglob("*.md"))


def of_site(name: str) -> Path | None:
    """The page in the site; None where there is no site.

    Args:
        name: As of `names`; the first page of the site where it is empty.
    """
    path = f"docs/{name}.html" if name else "index.html"
    return next((site / path for site in _SITES if (site / path).is_file()), None)


def show(markdown: str) -> None:
    """Writes a page to standard output, in colours where that is a terminal."""
    import sys

    from coordinator.cli.terminal.console import write

    if sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(markdown))
    else:
        write(markdown)
