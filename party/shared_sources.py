"""Datasets of one source: what each is guarded by alone, none may tell twice."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import combinations

from link.errors import ConfigurationError
from party.config import FILE_URLS, DatasetSection
from party.queries.policy import audited_twice


def check_sources(datasets: Sequence[DatasetSection]) -> None:
    """Makes sure that no two datasets of one source answer queries about the same, or both release their rows.

    No auditor knows what another has answered, and releases of each dataset are counted apart. Two queries of one
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
                    f"tells of '{twice}'; each is audited alone, so let one of them answer"
                )
        if first.anonymization is not None and second.anonymization is not None:
            raise ConfigurationError(
                f"the datasets '{first.name}' and '{second.name}' have one source, and both have "
                "[dataset.anonymization]; releases of each are counted alone, so write the table under one of them"
            )


def _source(dataset: DatasetSection) -> tuple[str, str | None]:
    scheme = next((scheme for scheme in FILE_URLS if dataset.source.startswith(scheme)), "")
    if dataset.is_url and not scheme:
        return dataset.source, dataset.query
    return scheme + os.path.realpath(dataset.source.removeprefix(scheme)), dataset.query
