"""The command `comine quickstart`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coordinator.cli.terminal.completion import words


def quickstart(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE]…",
            help="Transactions, a file for each party; one file is dealt to three parties.",
            show_default=False,
        ),
    ] = None,
    task: Annotated[
        str, typer.Option("--task", help="rules or itemsets.", autocompletion=words("rules", "itemsets"))
    ] = "rules",
    min_support: Annotated[
        str | None,
        typer.Option("--min-support", help="A fraction of all rows, or a count; by default what suits the data."),
    ] = None,
    min_confidence: Annotated[str, typer.Option("--min-confidence", help="Of rules, a fraction.")] = "0.5",
    encoding: Annotated[str | None, typer.Option("--encoding", help="Of text that is not in UTF-8.")] = None,
    sheet: Annotated[str | None, typer.Option("--sheet", help="Of workbooks; the first by default.")] = None,
    folder: Annotated[
        Path,
        typer.Option(
            "--folder", metavar="DIR", help="Folder of the federation and the result; an earlier one is replaced."
        ),
    ] = Path("quickstart-out"),
    serve: Annotated[
        bool, typer.Option("--serve", help="Start the nodes of an earlier quickstart again, until Ctrl-C.")
    ] = False,
) -> None:
    """Mine your own files as a federation on this machine: a node for each, throwaway certificates, one result.

    Without files, it takes the data of the demo.
    """
    import os

    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # every fault is reported in comine's own words
    from comine.quickstart.run import run, serve_again
    from comine.quickstart.task import Wanted
    from link.errors import UsageError
    from mining.data.source_options import SourceOptions

    if serve:
        if files:
            raise UsageError("--serve starts the nodes of an earlier quickstart again; leave out the files")
        serve_again(folder)
    else:
        run(files or [], folder, Wanted.of(task, min_support, min_confidence), SourceOptions(encoding, sheet))
