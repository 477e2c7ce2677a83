"""`comine support-bundle`: for those who are asked for help with a node, a relay or a coordinator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def support_bundle(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The file of a node, a relay, or the federation: party.toml and so on."),
    ],
) -> None:
    """Print what helps others find a fault, as JSON: versions, settings without texts, counts, sizes."""
    import json

    from jobs.spec.toml import read_toml

    tables = read_toml(file)
    if "party" in tables and not isinstance(tables["party"], list):
        from party.support import support_bundle as bundle
    elif isinstance(tables.get("relay"), dict) and "listen" in tables["relay"]:
        from relay.support import support_bundle as bundle
    else:
        from coordinator.support import support_bundle as bundle
    typer.echo(json.dumps(bundle(file), indent=2))
