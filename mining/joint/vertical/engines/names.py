"""The names of engines, by which jobs and policies call them; no engine is loaded.

Other distributions bring engines as entry points of the group `comine.engines`, by their names. They take no name that
is in use here.
"""

from __future__ import annotations

from typing import Final

from link.plugins import names

GROUP: Final = "comine.engines"
AUTO: Final = "auto"
OWN_NAMES: Final = ("paillier", "ot", "replicated")
"""Of the engines of comine itself, in the order of `registry.OWN`."""


def engine_names() -> tuple[str, ...]:
    """The names of all engines, those of other distributions last."""
    return (*OWN_NAMES, *(name for name in names(GROUP) if name not in OWN_NAMES and name != AUTO))
