"""Reads jobs from files and from Python values; what is wrong with one is said here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jobs.kinds.registry import read_spec
from jobs.proposed import check_job
from jobs.spec.job import MAX_SPEC_BYTES, UNIVERSES, JobSpec
from jobs.spec.toml import read_toml
from link.errors import ConfigurationError
from link.files.printable import why_not_read


def load_job(path: Path) -> JobSpec:
    """Reads a job file and the public catalogue that it may name.

    Raises:
        ConfigurationError: Something in the file is missing, unknown or wrong.
    """
    spec = load_envelope(path)
    check_job(spec, str(path))
    return spec


def load_envelope(path: Path) -> JobSpec:
    """The same without a look at what its kind makes of it: of a job that says something for several privacy models.

    Raises:
        ConfigurationError: A key is unknown or wrong by itself.
    """
    return envelope(read_toml(path), str(path), path.parent)


def job_of(contents: dict[str, Any], where: str, folder: Path) -> JobSpec:
    """A job from the contents of its file; a catalogue and hierarchies are looked for in `folder`.

    Raises:
        ConfigurationError: As in `load_job`.
    """
    spec = envelope(contents, where, folder)
    check_job(spec, where)
    return spec


def envelope(contents: dict[str, Any], where: str, folder: Path) -> JobSpec:
    """A job from the contents of its file, as `load_envelope` reads it; errors as there."""
    if "anonymize" in contents:  # hardly any job has hierarchies, and what reads them takes long to load
        from jobs.kinds.release.hierarchies import with_hierarchies

        contents = with_hierarchies(contents, folder)
    spec = read_spec(contents, where)
    given = spec.itemsets_
    if given is not None and given.universe not in UNIVERSES and given.catalogue is None:
        named = {"catalogue": _read_catalogue(folder / given.universe), "universe": Path(given.universe).name}
        spec = spec.model_copy(update={"itemsets_": given.model_copy(update=named)})
    if len(spec.canonical()) > MAX_SPEC_BYTES:
        if spec.anonymize is not None:
            raise ConfigurationError(f"{where}: the hierarchies are too long for a job; take coarser leaves")
        raise ConfigurationError(
            f'{where}: the catalogue and the lists are too long for a job; use universe = "frequent-items"'
        )
    return spec


def _read_catalogue(path: Path) -> tuple[str, ...]:
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")  # no other sign ends a line, but may be in an item
    except UnicodeDecodeError:
        raise ConfigurationError(f"the catalogue {path} is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the catalogue {path} cannot be read: {why_not_read(error)}") from None
    items = sorted({line for line in lines if line}, key=str.encode)
    if not items:
        raise ConfigurationError(f"the catalogue {path} names no item")
    return tuple(items)
