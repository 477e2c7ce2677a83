"""`comine party reload`: has the node that runs beside it read its files anew."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from party.state.reloads import Answer, Reloads

ANSWER_S: Final = 60.0
_LOOK_S: Final = 0.1


def reload(
    party_toml: Annotated[Path, typer.Argument(metavar="PARTY_TOML", help="The node's file, e.g. north.toml.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Have the running node take up what its files say now; jobs that run go on as they were approved."""
    import contextlib
    import json

    from link.errors import ConfigurationError, from_code
    from party.config import PartyConfig
    from party.state.database import is_locked
    from party.state.node_database import FILE
    from party.state.reloads import Reloads

    config = PartyConfig.load(party_toml)
    name, database = config.party.name, config.party.state_dir / FILE
    if not is_locked(database):
        raise ConfigurationError(
            f"no node runs with the state folder {config.party.state_dir}, so there is nothing to reload; a node reads "
            f"its files when it starts, and state_dir only then: comine party serve {party_toml}"
        )
    with contextlib.closing(Reloads.open_beside(database, database)) as requests:
        answer = _awaited(requests, requests.ask(str(party_toml.absolute())), name)
    if answer.code:
        raise from_code(answer.code, answer.message, party=name)
    contents = {"schema": "comine.reload/1", "party": name, "changed": list(answer.changed)}
    lines = [f"{name} goes on with {party_toml}: {len(answer.changed)} changes", *answer.changed]
    text = "\n  ".join(lines) if answer.changed else f"{name} goes on as before: nothing has changed"
    typer.echo(json.dumps(contents, indent=2) if as_json else text)


def _awaited(requests: Reloads, number: int, name: str) -> Answer:
    import time

    from link.errors import PeerError

    until = time.monotonic() + ANSWER_S
    while (answer := requests.answered(number)) is None:
        if time.monotonic() > until:
            raise PeerError(f"the node of {name} has not answered within {ANSWER_S:.0f} s; see its log", party=name)
        time.sleep(_LOOK_S)
    return answer
