"""`comine explain`: what an error code means and what to do about it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coordinator.cli.options import AsJson
from coordinator.cli.terminal.completion import error_codes

_PACKAGE = Path(__file__).parents[1]
_PAGES = (_PACKAGE / "errors", _PACKAGE.parent / "docs" / "errors")  # as installed, and in a checkout


def explain(
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="[CODE]", help="An error code such as E101; without it, all are listed.", autocompletion=error_codes
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Explain an error code: what it means, typical causes, what to do; or list all codes."""
    import sys

    from coordinator.cli.terminal.console import write, write_json, write_table
    from link.errors import BY_CODE, UsageError

    if code is None:
        if as_json:
            write_json({"schema": "comine.explain-list/1", "errors": [_summary(each) for each in sorted(BY_CODE)]})
        else:
            rows = [[each, str(BY_CODE[each].exit_code), _title(_page(each))] for each in sorted(BY_CODE)]
            write_table(["code", "exit code", "meaning"], rows)
        return
    wanted = code.strip().upper()
    wanted = wanted if wanted.startswith("E") else f"E{wanted}"
    if wanted not in BY_CODE:
        raise UsageError(f"there is no error code '{code}'; there are {', '.join(sorted(BY_CODE))}")
    if as_json:
        write_json({"schema": "comine.explain/1", **_summary(wanted), "page": _page(wanted)})
    elif sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(_page(wanted)))
    else:
        write(_page(wanted))


def _summary(code: str) -> dict[str, str | int]:
    from link.errors import BY_CODE

    return {"code": code, "exit_code": BY_CODE[code].exit_code, "title": _title(_page(code))}


def _page(code: str) -> str:
    page = next(folder / f"{code}.md" for folder in _PAGES if (folder / f"{code}.md").is_file())
    return page.read_text(encoding="utf-8")


def _title(page: str) -> str:
    return page.partition("\n")[0].partition(": ")[2]
