"""Engines by the names that jobs and policies use.

Engines of other distributions (`names`), classes of `Engine`, are loaded when a job names them, and are never what
`auto` takes.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from link.errors import ConfigurationError
from link.files.printable import enumeration
from link.plugins import load_class
from mining.joint.vertical.engines.engine import Engine
from mining.joint.vertical.engines.names import AUTO, GROUP, HOMES, engine_names


def _made(home: str) -> Engine:
    module, _, name = home.partition(":")
    engine: Engine = getattr(import_module(f"mining.joint.vertical.engines.{module}"), name)()
    return engine


OWN: Final[dict[str, Engine]] = {name: _made(home) for name, home in HOMES.items()}
"""The engines of comine itself."""


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
