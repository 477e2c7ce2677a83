"""`comine explain`: what an error code means and what to do about it."""

from __future__ import annotations

from typing import Annotated

import typer

from coordinator.cli.options import AsJson
from coordinator.cli.terminal.completion import error_codes


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
    from coordinator.cli.pages import show
    from coordinator.cli.terminal.console import write_json, write_table
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
    else:
        show(_page(wanted))


def _summary(code: str) -> dict[str, str | int]:
    from link.errors import BY_CODE

    return {"code": code, "exit_code": BY_CODE[code].exit_code, "title": _title(_page(code))}


def _page(code: str) -> str:
    from coordinator.cli.pages import folder

    return (folder() / "errors" / f"{code}.md").read_text(encoding="utf-8")


def _title(page: str) -> str:
    return page.partition("\n")[0].partition(": ")[2]
