"""Datasets of one source: what each is guarded by alone, none may answer twice, and releases of all count together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from urllib.parse import urlsplit

from link.errors import ConfigurationError
from mining.data.schemes.registry import scheme_of
from mining.data.schemes.scheme import file_place
from party.config import SPARK_URL, DatasetSection
from party.services.queries.policy import audited_twice


def check_sources(datasets: Sequence[DatasetSection]) -> None:
    """Makes sure that no two datasets of one source answer queries about the same, or both release their rows.

    No auditor knows what another has answered, and one table of rules says what a release may be. Two queries of one
    database are two sources: whether they read the same is not known.

    Raises:
        ConfigurationError: Two do.
    """
    placed = [(dataset, _source(dataset)) for dataset in datasets]
    for (first, place), (second, other) in combinations(placed, 2):
        if place != other:
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


def check_past(datasets: Sequence[DatasetSection], before: Iterable[DatasetSection]) -> None:
    """Makes sure that answers about a source go on to count when its dataset gets another name while the node runs.

    Args:
        datasets: All of the node.
        before: What it had before.

    Raises:
        ConfigurationError: A dataset would answer about what another has answered about.
    """
    for old in before:
        for new in datasets:
            if old.queries is None or new.queries is None or old.name == new.name:
                continue
            if _source(old) == _source(new) and (twice := audited_twice(old.queries, new.queries)) is not None:
                raise ConfigurationError(
                    f"the dataset '{new.name}' has the source of '{old.name}', under whose name the node has answered "
                    f"about '{twice}'; each name is audited alone, so keep the name '{old.name}'"
                )


def alike(datasets: Sequence[DatasetSection], before: Iterable[DatasetSection] = ()) -> dict[str, tuple[str, ...]]:
    """By dataset, all that have its file or its database, itself among them.

    Of one database all count, whatever their queries: these may read the same rows.

    Args:
        datasets: All of the node.
        before: What it had before: what has been counted of a source goes on to count, under whatever name.
    """
    places: dict[str, set[str]] = {}
    for dataset in (*datasets, *before):
        places.setdefault(dataset.name, set()).add(_source(dataset)[0])
    return {name: tuple(other for other in places if own & places[other]) for name, own in places.items()}


def _source(dataset: DatasetSection) -> tuple[str, str | None]:
    scheme = scheme_of(dataset.source)
    if scheme is not None:
        return scheme.place(dataset.source), dataset.query
    if dataset.source.startswith(SPARK_URL):  # whose parameters tell who logs in, and how
        found = urlsplit(dataset.source)
        return f"{SPARK_URL}{found.hostname}:{found.port or 15002}", dataset.query
    return file_place(dataset.source), dataset.query
