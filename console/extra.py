"""Whether the packages are installed that a console needs, and nothing else does."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from link.errors import ConfigurationError

_NEEDED: Final = ("argon2", "authlib", "httpx2", "starlette", "tomlkit", "uvicorn")


def check_installed() -> None:
    """Refuses to go on without them.

    Raises:
        ConfigurationError: One is missing.
    """
    if any(find_spec(name) is None for name in _NEEDED):
        raise ConfigurationError(
            "The console needs packages of its own; install them with: pip install 'comine[console]'"
        )
