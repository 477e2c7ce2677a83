"""Direct encoding in two stages: a record's query, and then a URL of the query that was reported.

With budget ε_Q a user reports their query or another one. If it is the own one, they report with ε_U their URL or
another one of that query; else a uniform URL of the reported query. Of a query with k URLs a report (q, u) has

    A = p_Q·p_U        from a user with (q, u),
    B = p_Q·(1 − p_U)/(k − 1)    with the query and another URL,
    C = q_Q/k          with another query,

of which the paper says that no two differ by more than e^(ε_Q + ε_U). That is generous: A/C is e^ε_Q·k·p_U. So ε_U
may be more than ε − ε_Q, namely e^ε_U = r(k − 1)/(k − r) with r = e^(ε − ε_Q) where k > r, but e^ε at most. Here it is
that: 0.70 instead of 0.60 for ε = 4, ε_Q = 3.4 and ten URLs, 2.3 for two.

Source: Avent, Korolova, Zeber, Hovden and Livshits, "BLENDER: Enabling Local Search with a Hybrid Differential Privacy
Model", USENIX Security 2017, on the clients' part (there with an additional δ, here without).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from ldp.blanket import Blanket
from ldp.budget import check_epsilon, log_above
from ldp.domain import DomainLike
from ldp.frequency_oracle import Floats
from ldp.mechanism import Channel, Tally
from ldp.numbered_reports import NumberedReports
from ldp.oracles.direct_encoding import DirectEncoding
from link.errors import ConfigurationError

QUERY_SHARE: Final = 0.75

_LARGEST_ENUMERATED: Final = 32
_SPARE: Final = 1e-9  # of ε_U, so that its rounding does not cost more than ε


class TwoStageEncoding(NumberedReports):
    """Reports a query and a URL.

    Args:
        domain: The records, those of a query side by side.
        epsilon: The privacy budget ε, of both stages together.
        sizes: How many records (URLs) each query has; at least two queries.
        query_share: The part of ε that the first stage takes.

    Attributes:
        query: The first stage.
        url: The second stage, by how many URLs a query has.

    Raises:
        ConfigurationError: The sizes are not those of the domain, or the share leaves nothing for a stage.
    """

    name: ClassVar[str] = "two-stage"

    def __init__(
        self, domain: DomainLike, epsilon: float, sizes: Sequence[int], query_share: float = QUERY_SHARE
    ) -> None:
        super().__init__(domain, epsilon)
        self.sizes, self.query_share = tuple(map(int, sizes)), query_share
        if len(self.sizes) < 2 or min(self.sizes) < 1 or sum(self.sizes) != self.domain.size:
            raise ConfigurationError(f"at least two queries must share the {self.domain.size:,} records among them")
        if not 0 < query_share < 1:
            raise ConfigurationError(f"the queries' share of the budget lies between 0 and 1, not at {query_share}")
        self.query = DirectEncoding(len(self.sizes), query_share * self.epsilon)
        self.url = {k: DirectEncoding(k, self._url_epsilon(k)) for k in sorted(set(self.sizes)) if k > 1}

    def _url_epsilon(self, k: int) -> float:
        rest = math.exp(self.epsilon - self.query.epsilon)
        most = math.log(rest * (k - 1) / (k - rest)) if k > rest else math.inf
        return check_epsilon((1 - _SPARE) * min(most, self.epsilon))

    def _rates(self, k: int) -> tuple[Fraction, Fraction, Fraction]:
        """A, B and C of queries with k URLs; B is C where there is one URL only, and nobody has another one."""
        other = self.query.q / k
        if k == 1:
            return self.query.p, other, other
        return self.query.p * self.url[k].p, self.query.p * self.url[k].q, other

    @property
    def exact_epsilon(self) -> float:
        """The largest ratio of A, B and C."""
        return max(log_above(max(rates) / min(rates)) for rates in map(self._rates, set(self.sizes)))

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """The first record of each query."""
        return np.cumsum((0, *self.sizes[:-1]))

    def _perturb(self, values: ArrayLike, rng: Randomness) -> tuple[NDArray[Any], ...]:
        codes = self.domain.codes(values)
        queries = np.searchsorted(self._starts, codes, side="right") - 1
        reported = self.query.privatise(queries, rng).fields[0].astype(np.int64)
        urls, numbers = np.zeros(len(codes), dtype=np.int64), np.array(self.sizes)[reported]
        for k, second in self.url.items():
            own = np.flatnonzero((numbers == k) & (reported == queries))
            urls[own] = second.privatise((codes - self._starts[queries])[own], rng).fields[0]
            others = np.flatnonzero((numbers == k) & (reported != queries))
            urls[others] = rng.integers(k, len(others))
        return (self._starts[reported] + urls,)

    # A count's estimate is a·(reports of the record) + b·(reports of its query) − c·n.
    @cached_property
    def _coefficients(self) -> tuple[Floats, Floats, Floats]:
        """A, b and c of each record, shape (d,) each."""
        gap = self.query.p - self.query.q
        found = {}
        for k in set(self.sizes):
            own, same, other = self._rates(k)
            a = 1 / (own - same) if k > 1 else Fraction(0)
            # For the others' URLs the query's own count is needed, which is (reports − n·q)/(p − q).
            by_query = a * (other - same) if k > 1 else Fraction(1)
            found[k] = (a, by_query / gap, by_query / gap * self.query.q + a * other)
        rows = np.array([[float(each) for each in found[k]] for k in self.sizes])
        a, b, c = np.repeat(rows, self.sizes, axis=0).T
        return a, b, c

    def _by_query(self, counts: NDArray[Any]) -> NDArray[Any]:
        """For each record, the sum over all records of its query."""
        return np.repeat(np.add.reduceat(counts, self._starts), self.sizes)

    def unbiased(self, tally: Tally, n: int) -> Floats:
        """The linear estimator that has every record's count as its mean."""
        a, b, c = self._coefficients
        return np.asarray(a * tally + b * self._by_query(tally) - c * n, dtype=np.float64)

    def variance(self, counts: Floats, n: int) -> Floats:
        """Exact: of users with the record, with its query and another URL, and with another query."""
        counts = np.asarray(counts, dtype=np.float64)
        same = np.minimum(self._by_query(counts), n)
        a, b, _ = self._coefficients
        rates = np.array([[float(each) for each in self._rates(k)] for k in self.sizes])
        records = np.repeat(rates, self.sizes, axis=0).T
        queries = (float(self.query.p), float(self.query.p), float(self.query.q))
        users = (counts, same - counts, n - same)
        total = np.zeros(self.domain.size)
        for number, record, query in zip(users, records, queries, strict=True):
            total += number * spread(a, b, record, np.full(self.domain.size, query))
        return total

    def population_variances(self, tally: Tally, n: int) -> Floats:
        """Unbiased estimates of the variances of frequencies, if users are a random sample of a population.

        Such a variance has the users' choice in it beside their noise: it is the variance of what single reports add
        to the estimate, divided by n. For direct encoding it is (p − q)^−2·r(1 − r)/(n − 1), r a report's share.

        Args:
            tally: The sums over reports.
            n: How many reports, at least 2.

        Returns:
            Shape (d,).
        """
        a, b, _ = self._coefficients
        return spread(a, b, tally / n, self._by_query(tally) / n) / (n - 1)

    def query_frequencies(self, tally: Tally, n: int) -> tuple[Floats, Floats]:
        """Unbiased estimates of the queries' frequencies, and of these estimates' variances over users and noise.

        Args:
            tally: The sums over reports.
            n: How many reports, at least 2.

        Returns:
            Of shape (number of queries,) each.
        """
        gap = float(self.query.p - self.query.q)
        shares = np.add.reduceat(tally, self._starts) / n
        return (shares - float(self.query.q)) / gap, shares * (1 - shares) / gap**2 / (n - 1)

    def channel(self) -> Channel:
        """From each record to each."""
        if self.domain.size > _LARGEST_ENUMERATED:
            raise NotImplementedError(f"the channel of {self.domain.size} records is not enumerated")
        queries = [query for query, k in enumerate(self.sizes) for _ in range(k)]
        rates = [self._rates(self.sizes[query]) for query in queries]
        records = range(self.domain.size)
        return [[rates[y][0 if x == y else 1 if queries[x] == queries[y] else 2] for y in records] for x in records]

    def blanket(self) -> Blanket:
        """Each record with the least probability that it has from any; bounded by the largest over that."""
        rates = {k: self._rates(k) for k in set(self.sizes)}
        weight = sum((k * min(rates[k]) for k in self.sizes), Fraction(0))
        return Blanket.between(weight, weight * max(max(each) / min(each) for each in rates.values()))


def spread(a: Floats, b: Floats, records: Floats, queries: Floats) -> Floats:
    """The variance of a·[the report is the record] + b·[it is of its query].

    Args:
        a: Of each record.
        b: Of each record.
        records: Shares of reports that are the record.
        queries: Shares of reports that are of its query.
    """
    mean = a * records + b * queries
    return np.asarray(a * (a + 2 * b) * records + b**2 * queries - mean**2, dtype=np.float64)
