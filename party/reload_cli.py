"""`comine party reload`: has the node that runs beside it read its files anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from link.files.quantities import quantity


def reload(
    party_toml: Annotated[Path, typer.Argument(metavar="PARTY_TOML", help="The node's file, e.g. north.toml.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Have the running node take up what its files say now; jobs that run go on as they were approved."""
    import json

    from link.errors import ConfigurationError, from_code
    from party.config import PartyConfig
    from party.reloading import reloaded

    config = PartyConfig.load(party_toml)
    name, answer = config.party.name, reloaded(config, party_toml)
    if answer is None:
        raise ConfigurationError(
            f"no node runs with the state folder {config.party.state_dir}, so there is nothing to reload; a node reads "
            f"its files when it starts, and state_dir only then: comine party serve {party_toml}"
        )
    if answer.code:
        raise from_code(answer.code, answer.message, party=name)
    contents = {"schema": "comine.reload/1", "party": name, "changed": list(answer.changed)}
    lines = [f"{name} goes on with {party_toml}: {quantity(len(answer.changed), 'change')}", *answer.changed]
    text = "\n  ".join(lines) if answer.changed else f"{name} goes on as before: nothing has changed"
    typer.echo(json.dumps(contents, indent=2) if as_json else text)
