"""`comine schema`: the JSON Schema of job files and results."""

from __future__ import annotations

from typing import Annotated

import typer


def schema(name: Annotated[str, typer.Argument(metavar="job|result", help="Of job files, or of result.json.")]) -> None:
    """Print a published JSON Schema."""
    from coordinator.cli.console import write
    from jobs.schema import NAMES, published
    from link.errors import UsageError

    if name not in NAMES:
        raise UsageError(f"there is no schema '{name}'; there are {', '.join(NAMES)}")
    write(published(name))
