"""Which kind a job is of: one line for each kind."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final

from jobs.kinds.key import Key
from jobs.kinds.kind import Facet, Kind
from jobs.spec.job import JobSpec
from link.errors import ConfigurationError

_PACKAGES: Final = (
    "jobs.kinds.rows",
    "jobs.kinds.columns",
    "jobs.kinds.reported",
    "jobs.kinds.noisy",
    "jobs.kinds.blended",
    "jobs.kinds.models",
    "jobs.kinds.release",
    "jobs.kinds.alignment",
)


def kind_of(spec: JobSpec) -> Kind:
    """The kind of a job.

    Raises:
        ConfigurationError: No kind does what the job asks for.
    """
    key = Key(spec.job.task, spec.job.partition, spec.privacy.model)
    package = _packages().get(key)
    if package is None:
        raise ConfigurationError(_unknown(key))
    return _kind(package)


def _unknown(key: Key) -> str:
    """Why no job has such a key, and what to change."""
    same = [other for other in _packages() if (other.task, other.model) == (key.task, key.model)]
    if not same:
        return f'[privacy] model = "{key.model}" means nothing with task = "{key.task}"; leave the table out'
    partitions = " or ".join(f'"{name}"' for name in dict.fromkeys(other.partition for other in same))
    asking = f'task = "{key.task}"' if key.model == "exact" else f'[privacy] model = "{key.model}"'
    return f"{asking} needs partition = {partitions}"


def kinds() -> tuple[Kind, ...]:
    """All kinds."""
    return tuple(map(_kind, _PACKAGES))


@cache
def _packages() -> dict[Key, str]:
    """The package of each key; what it takes is loaded for the first job of its kind."""
    return {key: package for package in _PACKAGES for key in import_module(package).KEYS}


@cache
def _kind(package: str) -> Kind:
    kind: Kind = import_module(f"{package}.kind").KIND
    return kind


def tells_coordinator(spec: JobSpec) -> bool:
    """Whether the coordinator gets what a job finds: it is a recipient, and the job finds something."""
    return spec.to_coordinator and kind_of(spec).finds is not None


def opens(spec: JobSpec, facet: Facet) -> bool:
    """Whether a job opens something of the kind, in the words of policies."""
    return facet in kind_of(spec).facets(spec)
