"""`comine party monitoring`: for those who watch over nodes and relays."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def monitoring(
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where the files go.")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Write alert rules for Prometheus and a dashboard for Grafana, which read what [metrics] shows."""
    from importlib.resources import files

    from party.init_files import write_files

    shipped = files("party.services.metrics") / "monitoring"
    found = {each.name: each.read_text(encoding="utf-8") for each in shipped.iterdir()}
    for path in write_files(out, dict(sorted(found.items())), keep=frozenset(), force=force):
        typer.echo(f"wrote {path}")
