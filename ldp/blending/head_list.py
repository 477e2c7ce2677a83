"""Records of two parts, a query and a URL that was clicked, and the list of frequent ones that all users know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np

from ldp.domain import Codes, Domain
from link.errors import ConfigurationError, InputDataError

Record: TypeAlias = tuple[str, str]
"""A query and a URL; any value in two steps, of which the second depends on the first."""

OTHER: Final = "⋆"


class HeadList:
    """Frequent queries with the frequent URLs of each, and places for everything else.

    The records are, in this order: for each query its URLs, then "another URL"; at last "another query".

    Args:
        urls: The URLs of each query, in their order; a query may have none.

    Attributes:
        queries: The queries.
        sizes: How many records each query has, and 1 for "another query".

    Raises:
        ConfigurationError: There is no query, a URL twice for one, or "⋆" as either.
    """

    def __init__(self, urls: Mapping[str, Sequence[str]]) -> None:
        if not urls:
            raise ConfigurationError("a head list needs at least one query; no record was frequent enough")
        if OTHER in urls or any(OTHER in each or len(set(each)) < len(each) for each in urls.values()):
            raise ConfigurationError(f"a query of the head list names a URL twice, or {OTHER}, which is for all others")
        self.queries: tuple[str, ...] = tuple(urls)
        self.urls: tuple[tuple[str, ...], ...] = tuple(tuple(each) for each in urls.values())
        self.sizes: tuple[int, ...] = (*(len(each) + 1 for each in self.urls), 1)

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """All records, d of them; `OTHER` is for what is not listed."""
        listed = [(query, url) for query, urls in zip(self.queries, self.urls, strict=True) for url in (*urls, OTHER)]
        return (*listed, (OTHER, OTHER))

    @cached_property
    def domain(self) -> Domain:
        """The records by their numbers, as the values of a domain."""
        return Domain(len(self.records))

    def codes(self, records: Sequence[Record]) -> Codes:
        """Which of the records each user's is, shape (n,).

        Args:
            records: One query and one URL a user.

        Raises:
            InputDataError: A record is no pair of texts.
        """
        known, last = self._codes, len(self.records) - 1
        try:
            found = [known.get((query, url), known.get((query, OTHER), last)) for query, url in records]
            if any(isinstance(record, str) for record in records):
                raise TypeError
        except (TypeError, ValueError):
            raise InputDataError("each user's record must be a pair of texts, a query and a URL") from None
        return np.array(found, dtype=np.int64)

    @cached_property
    def _codes(self) -> dict[Record, int]:
        return {record: code for code, record in enumerate(self.records)}
