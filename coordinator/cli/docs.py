"""`comine docs`: the installed documentation, without a network."""

from __future__ import annotations

from typing import Annotated

import typer

from coordinator.cli.terminal.completion import page_names


def docs(
    page: Annotated[
        str | None,
        typer.Argument(
            metavar="[PAGE]",
            help="Such as tasks/plan, or plan alone; without it, the first page.",
            autocompletion=page_names,
        ),
    ] = None,
    print_path: Annotated[bool, typer.Option("--print", help="Print the page's path and open nothing.")] = False,
) -> None:
    """Open the installed documentation in a browser; where there is none, print a page."""
    import webbrowser

    from coordinator.cli import pages
    from coordinator.cli.terminal.console import note, write

    name = "" if page is None else _found(page)
    markdown = pages.folder() / f"{name or 'index'}.md"
    site = pages.of_site(name)
    if print_path:
        write(str(site or markdown))
    elif site is not None and webbrowser.open(site.as_uri()):
        note(f"{site} opens in the browser")
    else:
        pages.show(markdown.read_text(encoding="utf-8"))


def _found(page: str) -> str:
    """The whole name of a page, of which the last part is enough where only one has it."""
    from difflib import get_close_matches

    from coordinator.cli import pages
    from link.errors import UsageError

    wanted, known = page.strip("/").removesuffix(".md").removeprefix("docs/"), pages.names()
    found = [name for name in known if wanted in (name, name.rpartition("/")[2])]
    found = [name for name in found if name == wanted] or found
    if len(found) == 1:
        return found[0]
    like = found or [name for name in known if wanted in name] or get_close_matches(wanted, known, 3)
    hint = f"; there are {', '.join(like[:5])}" if like else "; comine docs, without a name, opens the list of all"
    raise UsageError(f"{'several pages are' if found else 'there is no page'} called '{page}'{hint}")
