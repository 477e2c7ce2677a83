"""`comine party monitoring|peers`: for those who watch over nodes and relays."""

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


def peers(
    party_toml: Annotated[Path, typer.Argument(metavar="PARTY_TOML", help="The node's file, e.g. north.toml.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show whom the node knows: the parties, who has proposed jobs, and until when certificates are valid."""
    import json

    from party.desk import at_desk
    from party.peers import peers_rows
    from party.policy.inbox_text import columns

    with at_desk(party_toml) as desk:
        contents = desk.peers()
    if as_json:
        typer.echo(json.dumps(contents, indent=2, ensure_ascii=False))
        return
    for line in columns(peers_rows(contents)):
        typer.echo(line)
    if contents["revocations"]["warning"]:
        typer.echo(contents["revocations"]["warning"])
