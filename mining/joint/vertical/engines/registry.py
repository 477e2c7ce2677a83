"""Engines by the names that jobs and policies use.

Engines of other distributions (`names`), classes of `Engine`, are loaded when a job names them, and are never what
`auto` takes.
"""

from __future__ import annotations

from typing import Final

from link.errors import ConfigurationError
from link.files.printable import enumeration
from link.plugins import load_class
from mining.joint.vertical.engines.engine import Engine
from mining.joint.vertical.engines.names import AUTO, GROUP, engine_names
from mining.joint.vertical.engines.paillier.engine import Paillier
from mining.joint.vertical.engines.replicated.engine import Replicated
from mining.joint.vertical.engines.transfers.engine import Transfers

OWN: Final[dict[str, Engine]] = {engine.name: engine for engine in (Paillier(), Transfers(), Replicated())}
"""The engines of comine itself. Of those that are equally quick and send equally much, `auto` takes the last."""


def engine_named(name: str) -> Engine:
    """The engine of a name.

    Raises:
        ConfigurationError: There is none, or what another distribution brings cannot be used.
    """
    if name in OWN:
        return OWN[name]
    brought = None if name == AUTO else load_class(GROUP, name, Engine, called=True)  # type: ignore[type-abstract]
    if brought is None:
        raise ConfigurationError(
            f"there is no engine '{name}' on this machine; take one of {enumeration(engine_names())}"
        )
    return brought()
