"""`comine explain`: what an error code means and what to do about it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_PACKAGE = Path(__file__).parents[1]
_PAGES = (_PACKAGE / "errors", _PACKAGE.parent / "docs" / "errors")  # as installed, and in a checkout


def explain(
    code: Annotated[str, typer.Argument(metavar="CODE", help="An error code such as E101.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Explain an error code: what it means, typical causes, what to do."""
    import sys

    from coordinator.cli.console import write, write_json
    from link.errors import BY_CODE, UsageError

    wanted = code.strip().upper()
    wanted = wanted if wanted.startswith("E") else f"E{wanted}"
    if wanted not in BY_CODE:
        raise UsageError(f"there is no error code '{code}'; there are {', '.join(sorted(BY_CODE))}")
    page = next(folder / f"{wanted}.md" for folder in _PAGES if (folder / f"{wanted}.md").is_file())
    text = page.read_text(encoding="utf-8")
    if as_json:
        heading = text.partition("\n")[0]
        write_json(
            {
                "schema": "comine.explain/1",
                "code": wanted,
                "exit_code": BY_CODE[wanted].exit_code,
                "title": heading.removeprefix(f"# {wanted}: "),
                "page": text,
            }
        )
    elif sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(text))
    else:
        write(text)
