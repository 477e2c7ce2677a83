"""Has the node that runs beside its files read them anew."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Final

from link.errors import PeerError
from party.config import PartyConfig
from party.state.database import is_locked
from party.state.node_database import FILE
from party.state.reloads import Answer, Reloads

ANSWER_S: Final = 60.0
_LOOK_S: Final = 0.1


def reloaded(config: PartyConfig, path: Path) -> Answer | None:
    """What a running node answers; None where none runs.

    Args:
        config: The node's file.
        path: Where that is.

    Raises:
        PeerError: The node does not answer in time.
        ResourceError: Its database cannot be used.
    """
    name, database = config.party.name, config.party.state_dir / FILE
    if not is_locked(database):
        return None
    until = time.monotonic() + ANSWER_S
    with contextlib.closing(Reloads.open_beside(database, database)) as requests:
        number = requests.ask(str(path.absolute()))
        while (answer := requests.answered(number)) is None:
            if time.monotonic() > until:
                raise PeerError(f"the node of {name} has not answered within {ANSWER_S:.0f} s; see its log", party=name)
            time.sleep(_LOOK_S)
    return answer
