"""What other distributions add to comine: entry points of theirs, which name modules to import."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType
from typing import NamedTuple

from link.errors import ConfigurationError


class Plugin(NamedTuple):
    """One entry point of another distribution.

    Attributes:
        name: Of the entry point.
        module: That it names.
        distribution: That has it.
    """

    name: str
    module: str
    distribution: str

    def load(self, submodule: str = "") -> ModuleType:
        """Its module, or one inside of it.

        Raises:
            ConfigurationError: It cannot be imported. The sentence may cross the wire, so the cause is not in it.
        """
        module = f"{self.module}.{submodule}" if submodule else self.module
        try:
            return import_module(module)
        except (Exception, SystemExit) as error:  # whatever foreign code may raise
            raise self.broken(
                f"cannot be imported ({type(error).__name__}); see why with: python -c 'import {module}'"
            ) from None

    def broken(self, why: str) -> ConfigurationError:
        """That it cannot be used."""
        return ConfigurationError(f"the plug-in '{self.name}' of the distribution '{self.distribution}' {why}")


def plugins(group: str) -> tuple[Plugin, ...]:
    """The plug-ins of a group, in the order of their names.

    Raises:
        ConfigurationError: Two have one name.
    """
    found = dict[str, Plugin]()
    for entry in entry_points(group=group):
        plugin = Plugin(entry.name, entry.module, entry.dist.name if entry.dist else "")
        if plugin.name in found:
            raise plugin.broken(
                f"has the name of one of '{found[plugin.name].distribution}'; uninstall one of these distributions"
            )
        found[plugin.name] = plugin
    return tuple(found[name] for name in sorted(found))
