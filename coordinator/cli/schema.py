"""`comine schema`: the published JSON Schemas."""

from __future__ import annotations

from typing import Annotated

import typer

from coordinator.cli.terminal.completion import schema_names


def schema(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Such as job for job files, or result for result.json.",
            autocompletion=schema_names,
        ),
    ],
) -> None:
    """Print a published JSON Schema."""
    from coordinator.cli.terminal.console import write
    from jobs.schema import NAMES, published
    from link.errors import UsageError

    if name not in NAMES:
        raise UsageError(f"there is no schema '{name}'; there are {', '.join(NAMES)}")
    write(published(name))
