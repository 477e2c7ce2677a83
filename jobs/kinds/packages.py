"""The packages of all kinds of jobs, one line for each, and the tasks and privacy models that these give a meaning.

Other distributions add kinds by entry points in the group `comine.kinds`, each of which names a package like those
here: with `KEYS`, perhaps `PURE`, and a module `kind` with `KIND`. They are looked for only where a job has a key that
no kind of comine's own has, and can replace none of these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Final, get_args

from pydantic import AfterValidator, WithJsonSchema

from jobs.kinds.key import Key, Partition
from link.files.printable import enumeration
from link.plugins import Plugin, plugins

GROUP: Final = "comine.kinds"
_PACKAGES: Final = (
    "jobs.kinds.rows",
    "jobs.kinds.columns",
    "jobs.kinds.reported",
    "jobs.kinds.noisy",
    "jobs.kinds.blended",
    "jobs.kinds.alignment",
    "jobs.kinds.models.rows",
    "jobs.kinds.models.columns",
    "jobs.kinds.release.rows",
    "jobs.kinds.release.columns",
)
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

BUILT_IN: Final[Mapping[Key, str]] = {key: package for package in _PACKAGES for key in import_module(package).KEYS}
"""The package of each key of comine's own."""

TASKS: Final = tuple(dict.fromkeys(key.task for key in BUILT_IN))
MODELS: Final = tuple(dict.fromkeys(key.model for key in BUILT_IN))
_PURE: Final = frozenset(model for package in _PACKAGES for model in getattr(import_module(package), "PURE", ()))


@cache
def added() -> Mapping[Key, Plugin]:
    """By key the kinds that other distributions add.

    Raises:
        ConfigurationError: A plug-in cannot be loaded, or has a key that another kind has.
    """
    found = dict[Key, Plugin]()
    for plugin in plugins(GROUP):
        for key in _keys(plugin):
            said = f'task = "{key.task}", partition = "{key.partition}" and [privacy] model = "{key.model}"'
            if key in BUILT_IN:
                raise plugin.broken(f"is for {said}, as a kind of comine itself is; update or uninstall it")
            if key in found:
                raise plugin.broken(f"is for {said}, as the plug-in '{found[key].name}' is; uninstall one of them")
            found[key] = plugin
    return found


def _keys(plugin: Plugin) -> tuple[Key, ...]:
    listed = getattr(plugin.load(), "KEYS", None)
    if not isinstance(listed, tuple) or not listed or not all(map(_is_key, listed)):
        raise plugin.broken("has no KEYS that are keys of kinds; update or uninstall it")
    return listed


def _is_key(key: Any) -> bool:
    return (
        isinstance(key, Key)
        and key.partition in get_args(Partition)
        and all(isinstance(name, str) and _NAME.fullmatch(name) for name in (key.task, key.model))
    )


def is_pure(model: str) -> bool:
    """Whether a privacy model bounds ε alone, so that no δ belongs to it."""
    if model in MODELS:
        return model in _PURE
    return any(model in getattr(plugin.load(), "PURE", ()) for plugin in added().values())


def _known(what: str, built_in: tuple[str, ...], of: Callable[[Key], str]) -> Callable[[str], str]:
    def check(name: str) -> str:
        if name not in built_in and name not in map(of, added()):
            listed = enumeration([f"'{each}'" for each in built_in])
            raise ValueError(f"there is no {what} of that name; there are {listed}")
        return name

    return check


Task = Annotated[
    str,
    AfterValidator(_known("task", TASKS, lambda key: key.task)),
    WithJsonSchema({"enum": list(TASKS), "type": "string"}),
]
"""The task of some kind, its own or added."""

ModelName = Annotated[str, WithJsonSchema({"enum": list(MODELS), "type": "string"})]
"""What documents call a privacy model: what a job has cost is shown also where its plug-in is gone."""

PrivacyModel = Annotated[ModelName, AfterValidator(_known("privacy model", MODELS, lambda key: key.model))]
"""The privacy model of some kind, its own or added."""
