"""What other distributions add to comine: their entry points, which name modules, classes or functions."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any, Final, NamedTuple, TypeVar

from link.errors import ConfigurationError

T = TypeVar("T")
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")


class Plugin(NamedTuple):
    """One entry point of another distribution.

    Attributes:
        name: Of the entry point.
        module: That it names.
        distribution: That has it.
        attribute: Of the module, where a class or a function is named.
    """

    name: str
    module: str
    distribution: str
    attribute: str = ""

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

    def named(self) -> object:
        """The class or function that it names.

        Raises:
            ConfigurationError: Its module cannot be imported, or lacks it.
        """
        found = getattr(self.load(), self.attribute, None)
        if found is None:
            raise self.broken(f"names '{self.attribute}', which its module {self.module} does not have")
        return found

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
        plugin = Plugin(entry.name, entry.module, entry.dist.name if entry.dist else "", entry.attr)
        if plugin.name in found:
            raise plugin.broken(
                f"has the name of one of '{found[plugin.name].distribution}'; uninstall one of these distributions"
            )
        found[plugin.name] = plugin
    return tuple(found[name] for name in sorted(found))


def names(group: str) -> tuple[str, ...]:
    """The names of a group's plug-ins; none is loaded.

    What is no word is left out: such names appear in sentences, and may be those of folders.

    Raises:
        ConfigurationError: Two have one name.
    """
    return tuple(each.name for each in plugins(group) if _WORD.fullmatch(each.name))


def load_class(group: str, name: str, base: type[T], *, called: bool = False) -> type[T] | None:
    """The class that a plug-in names; None if there is none of that name.

    Args:
        group: Of entry points, such as "comine.mechanisms".
        name: Of the plug-in.
        base: What the class must be derived from; it must leave none of its methods out.
        called: Whether the class's attribute `name` must be the plug-in's.

    Raises:
        ConfigurationError: It cannot be imported, or is something else.
    """
    if (plugin := _plugin(group, name)) is None:
        return None
    found = plugin.named()
    if not (isinstance(found, type) and issubclass(found, base)):
        raise plugin.broken(f"is no {base.__name__}")
    if lacking := sorted(getattr(found, "__abstractmethods__", ())):
        raise plugin.broken(f"lacks {', '.join(lacking)}")
    if called and getattr(found, "name", None) != name:
        raise plugin.broken("has a class of another name")
    return found


def load_function(group: str, name: str) -> Callable[..., Any] | None:
    """The function that a plug-in names; None if there is none of that name.

    Raises:
        ConfigurationError: It cannot be imported, or is something else.
    """
    if (plugin := _plugin(group, name)) is None:
        return None
    found = plugin.named()
    if not callable(found):
        raise plugin.broken("is no function")
    return found


def _plugin(group: str, name: str) -> Plugin | None:
    return next((each for each in plugins(group) if each.name == name and _WORD.fullmatch(name)), None)
