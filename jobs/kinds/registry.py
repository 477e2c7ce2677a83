"""Which kind a job is of."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from jobs.kinds.key import Key
from jobs.kinds.kind import Facet, Kind
from jobs.kinds.packages import BUILT_IN, TASKS, added
from jobs.spec.job import JobSpec
from jobs.spec.toml import validate
from link.errors import ConfigurationError
from link.plugins import Plugin


def kind_of(spec: JobSpec) -> Kind:
    """The kind of a job.

    Raises:
        ConfigurationError: No kind does what the job asks for, or the plug-in that does cannot be loaded.
    """
    return kind_at(_key(spec))


def kind_at(key: Key) -> Kind:
    """The kind of a key; errors as in `kind_of`."""
    if (package := BUILT_IN.get(key)) is not None:
        return _kind(package)
    if (plugin := added().get(key)) is not None:
        return _added_kind(plugin)
    raise ConfigurationError(_unknown(key))


def plugin_of(spec: JobSpec) -> str | None:
    """The name of the plug-in that adds the kind of a job; None where comine has the kind itself."""
    key = _key(spec)
    return None if key in BUILT_IN else added()[key].name


def read_spec(contents: Any, where: str) -> JobSpec:
    """A job from the tables of its file, which are those that its kind has; nothing else of it is checked.

    Args:
        contents: The tables.
        where: What errors call them.

    Raises:
        ConfigurationError: Something is missing, unknown or wrong.
    """
    return validate(_specification(contents), contents, where)


def kinds() -> tuple[Kind, ...]:
    """All kinds, those of other distributions at the end.

    Raises:
        ConfigurationError: A plug-in cannot be loaded.
    """
    own, others = dict.fromkeys(BUILT_IN.values()), dict.fromkeys(added().values())
    return (*map(_kind, own), *map(_added_kind, others))


def coordinator_learns(spec: JobSpec) -> bool:
    """Whether the coordinator gets what a job finds: it is a recipient, and the job finds something."""
    return spec.to_coordinator and kind_of(spec).finds is not None


def opens(spec: JobSpec, facet: Facet) -> bool:
    """Whether a job opens something of the kind, in the words of policies."""
    return facet in kind_of(spec).facets(spec)


def _key(spec: JobSpec) -> Key:
    return Key(spec.job.task, spec.job.partition, spec.privacy.model)


def _specification(contents: Any) -> type[JobSpec]:
    """The model of a job file: that of its kind, or of another kind of its task, so that this says what is wrong."""
    try:
        job, privacy = contents["job"], contents.get("privacy") or {}
        key = Key(job["task"], job.get("partition", "horizontal"), privacy.get("model", "exact"))
        if (package := BUILT_IN.get(key)) is not None:
            return _kind(package).specification
        plugin = added().get(key)
    except (KeyError, TypeError, AttributeError):
        return JobSpec
    if plugin is None and key.task not in TASKS:
        plugin = next((each for other, each in added().items() if other.task == key.task), None)
    return JobSpec if plugin is None else _added_kind(plugin).specification


def _unknown(key: Key) -> str:
    """Why no job has such a key, and what to change."""
    known = (*BUILT_IN, *added())
    same = [other for other in known if (other.task, other.model) == (key.task, key.model)]
    if not same:
        return f'[privacy] model = "{key.model}" means nothing with task = "{key.task}"; leave the table out'
    partitions = " or ".join(f'"{name}"' for name in dict.fromkeys(other.partition for other in same))
    asking = f'task = "{key.task}"' if key.model == "exact" else f'[privacy] model = "{key.model}"'
    return f"{asking} needs partition = {partitions}"


@cache
def _kind(package: str) -> Kind:
    """What it takes is loaded for the first job of its kind."""
    kind: Kind = import_module(f"{package}.kind").KIND
    return kind


@cache
def _added_kind(plugin: Plugin) -> Kind:
    kind = getattr(plugin.load("kind"), "KIND", None)
    if not isinstance(kind, Kind) or not issubclass(kind.specification, JobSpec):
        raise plugin.broken("has no KIND that is a kind of job; update or uninstall it")
    return kind
