"""Datasets: the rules that hold for each, in words, and its profile as `comine party check` gives it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from console.site import Page, Shown, Visit
from link.errors import DeadlineExceeded, UsageError
from party.check import dataset_data
from party.config import DatasetSection, PartyConfig
from party.examination import examine_dataset
from party.policy.in_words import rules

PATH: Final = "/datasets"
_READING: Final = threading.Lock()  # a dataset may take the memory of a job


def pages(party_toml: Path) -> tuple[Page, ...]:
    """The pages of a node's file, the list first."""
    one = f"{PATH}/{{dataset}}"
    return (
        Page(PATH, partial(_list, party_toml), title="Datasets"),
        Page(one, partial(_show, party_toml)),
        Page(f"{one}/profile", partial(_profile, party_toml)),
    )


def _list(party_toml: Path, _: Visit) -> Shown:
    config = PartyConfig.load(party_toml)
    return Shown("datasets.html.j2", {"datasets": [_section(each) for each in config.dataset]})


def _show(party_toml: Path, visit: Visit) -> Shown:
    config = PartyConfig.load(party_toml)
    return Shown("dataset.html.j2", _told(config, _named(config, visit), None))


def _profile(party_toml: Path, visit: Visit) -> Shown:
    config = PartyConfig.load(party_toml)
    dataset = _named(config, visit)
    with reading():
        found = dataset_data(examine_dataset(config, dataset), show_items=False)
    return Shown("dataset.html.j2", _told(config, dataset, found))


@contextmanager
def reading() -> Iterator[None]:
    """While a page reads a dataset, no other one does.

    Raises:
        DeadlineExceeded: Another one does so.
    """
    if not _READING.acquire(blocking=False):
        raise DeadlineExceeded("the console reads a dataset for somebody else just now; try again when that is done")
    try:
        yield
    finally:
        _READING.release()


def _told(config: PartyConfig, dataset: DatasetSection, profile: dict[str, Any] | None) -> dict[str, Any]:
    return {"dataset": _section(dataset), "rules": rules(config, dataset.name), "checked": profile}


def _section(dataset: DatasetSection) -> dict[str, Any]:
    """What its table says of it; of a database not where that is."""
    return {
        "name": dataset.name,
        "kind": dataset.kind,
        "format": dataset.format,
        "source": "a database" if dataset.is_database else dataset.source,
        "engine": dataset.engine,
    }


def _named(config: PartyConfig, visit: Visit) -> DatasetSection:
    found = config.datasets.get(visit.params["dataset"])
    if found is None:
        raise UsageError(f"{config.party.name} has no such dataset; it has {', '.join(config.datasets) or 'none'}")
    return found
