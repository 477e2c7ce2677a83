"""The names of engines, by which jobs and policies call them; no engine is loaded.

Other distributions bring engines as entry points of the group `comine.engines`, by their names. They take no name that
is in use here.
"""

from __future__ import annotations

from typing import Final

from link.plugins import names

GROUP: Final = "comine.engines"
AUTO: Final = "auto"
HOMES: Final = {
    "paillier": "paillier.engine:Paillier",
    "ot": "transfers.engine:Transfers",
    "replicated": "replicated.engine:Replicated",
}
"""Where in this package the engines of comine itself are. Of equally quick and cheap ones `auto` takes the last."""
OWN_NAMES: Final = tuple(HOMES)


def engine_names() -> tuple[str, ...]:
    """The names of all engines, those of other distributions last."""
    return (*OWN_NAMES, *(name for name in names(GROUP) if name not in OWN_NAMES and name != AUTO))
