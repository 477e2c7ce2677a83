"""Datasets of one source: what each is guarded by alone, none may answer twice, and releases of all count together."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import combinations
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from link.errors import ConfigurationError
from mining.data.databases import FILE_URLS
from party.config import SPARK_URL, DatasetSection
from party.services.queries.policy import audited_twice

_PLACES: Final = frozenset({"host", "hostaddr", "port", "dbname", "service"})  # of what a URL may say behind its ?


def check_sources(datasets: Sequence[DatasetSection]) -> None:
    """Makes sure that no two datasets of one source answer queries about the same, or both release their rows.

    No auditor knows what another has answered, and one table of rules says what a release may be. Two queries of one
    database are two sources: whether they read the same is not known.

    Raises:
        ConfigurationError: Two do.
    """
    for first, second in combinations(datasets, 2):
        if _source(first) != _source(second):
            continue
        if first.queries is not None and second.queries is not None:
            twice = audited_twice(first.queries, second.queries)
            if twice is not None:
                raise ConfigurationError(
                    f"the datasets '{first.name}' and '{second.name}' have one source, and [dataset.queries] of both "
                    f"answers about '{twice}'; each is audited alone, so let one of them answer"
                )
        if first.anonymization is not None and second.anonymization is not None:
            raise ConfigurationError(
                f"the datasets '{first.name}' and '{second.name}' have one source, and both have "
                "[dataset.anonymization]; write the table under one of them"
            )


def alike(datasets: Sequence[DatasetSection]) -> dict[str, tuple[str, ...]]:
    """By dataset, all that have its file or its database, itself among them.

    Of one database all count, whatever their queries: these may read the same rows.
    """
    places = {dataset.name: _source(dataset)[0] for dataset in datasets}
    return {name: tuple(other for other, place in places.items() if place == own) for name, own in places.items()}


def _source(dataset: DatasetSection) -> tuple[str, str | None]:
    scheme = next((scheme for scheme in FILE_URLS if dataset.source.startswith(scheme)), "")
    if dataset.is_url and not scheme:
        return _server(dataset.source), dataset.query
    return scheme + _file(dataset.source.removeprefix(scheme)), dataset.query


def _file(path: str) -> str:
    """A file by its place on the disk, which links share; where there is none, by its path."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return os.path.realpath(path)
    return f"{found.st_dev}:{found.st_ino}"


def _server(url: str) -> str:
    """A server's database, no matter who logs in: what each may read of it is not known here."""
    found = urlsplit(url)
    if url.startswith(SPARK_URL):  # whose parameters tell who logs in, and how
        return f"{SPARK_URL}{found.hostname}:{found.port or 15002}"
    host = found.netloc.rpartition("@")[2].lower()
    where = [pair for pair in parse_qsl(found.query) if pair[0] in _PLACES]
    return f"postgresql://{host if ':' in host else f'{host}:5432'}{found.path}?{urlencode(sorted(where))}"
