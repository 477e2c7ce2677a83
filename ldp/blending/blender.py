"""BLENDER: some users trust a curator, most do not, and both kinds' estimates are put together.

The curator of the few finds the frequent records, which local reports of many could not, and estimates their
frequencies with little noise but from few users. The many report records of the published list under local differential
privacy: much noise, many users. Of two independent unbiased estimates the best linear one weighs each by the other's
variance:

    f = w·f_O + (1 − w)·f_C,    w = Var_C / (Var_O + Var_C),    Var = Var_O·Var_C / (Var_O + Var_C)

Weights are computed from estimated variances. These depend on the estimates a little, so that the blend is not quite
without bias; of which the error is small where both groups have some hundred users.

Source: Avent, Korolova, Zeber, Hovden and Livshits, "BLENDER: Enabling Local Search with a Hybrid Differential Privacy
Model", USENIX Security 2017.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crypto.primitives.randomness import Randomness
from ldp.blending.curator import Curator, Frequencies
from ldp.blending.head_list import OTHER, HeadList, Record
from ldp.blending.two_stages import QUERY_SHARE, TwoStageEncoding
from ldp.frequency_oracle import Floats
from ldp.mechanism import Tally
from ldp.parameters import checked
from link.errors import ConfigurationError, InputDataError


@dataclass(frozen=True, slots=True, eq=False)
class Blend:
    """Frequencies from both groups.

    Attributes:
        names: Of what: records, or queries; that of all others is the last one.
        opt_in: The curator's estimates.
        clients: The clients' estimates.
        weights: Shape (k,): w, the weight of the curator's.
        blended: Both together.
    """

    names: tuple[Record, ...] | tuple[str, ...]
    opt_in: Frequencies
    clients: Frequencies
    weights: Floats
    blended: Frequencies


@dataclass(frozen=True, slots=True, eq=False)
class Blended:
    """What was found.

    Attributes:
        head: The head list.
        records: Frequencies of its records.
        queries: Frequencies of its queries.
    """

    head: HeadList
    records: Blend
    queries: Blend


@checked
class Blender:
    """The hybrid model's parameters; it holds no data.

    Args:
        epsilon: ε of every user: of an opted-in one with δ, of a client without.
        delta: δ.
        discovery_share: The part of those who opted in whose records make the head list.
        query_share: The part of a client's ε that the query takes.
        most: How many records the head list has at most.

    Raises:
        ConfigurationError: A parameter is out of range.
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 1e-5,
        *,
        discovery_share: float = 0.5,
        query_share: float = QUERY_SHARE,
        most: int | None = None,
    ) -> None:
        if not 0 < discovery_share < 1:
            raise ConfigurationError(
                f"the share that finds the head list lies between 0 and 1, not at {discovery_share}"
            )
        if most is not None and most < 1:
            raise ConfigurationError(f"a head list has at least one record, not {most}")
        self.curator = Curator(epsilon, delta)
        self.discovery_share, self.query_share, self.most = discovery_share, query_share, most

    def clients_mechanism(self, head: HeadList) -> TwoStageEncoding:
        """What clients report by, once the head list is public."""
        return TwoStageEncoding(head.domain, self.curator.epsilon, head.sizes, self.query_share)

    def ask_opted_in(self, records: Sequence[Record], rng: Randomness) -> tuple[HeadList, Floats, int]:
        """The curator's part: splits users by chance, and does one step with each group.

        Args:
            records: One record of each user who opted in.
            rng: The source of randomness.

        Returns:
            The head list, the noisy counts of its records, and how many users these are of.

        Raises:
            InputDataError: There are too few users.
            ConfigurationError: No record is frequent enough.
        """
        order = rng.permutation(len(records))
        first = int(self.discovery_share * len(records))
        groups = [[records[user] for user in part.tolist()] for part in (order[:first], order[first:])]
        head = self.curator.head_list(groups[0], rng, most=self.most)
        return head, self.curator.counts(groups[1], head, rng), len(groups[1])

    def blend(self, head: HeadList, counts: Floats, opted_in: int, tally: Tally, clients: int) -> Blended:
        """Puts both groups' sums together.

        Args:
            head: The head list.
            counts: The curator's noisy counts.
            opted_in: How many users these are of.
            tally: The sums over the clients' reports.
            clients: How many clients reported.

        Raises:
            InputDataError: There are less than two clients.
        """
        if clients < 2:
            raise InputDataError("frequencies and their errors need at least two clients")
        mechanism, sizes = self.clients_mechanism(head), np.array(head.sizes)
        frequencies = mechanism.unbiased(tally, clients) / clients
        by_query = np.add.reduceat(counts, np.cumsum(sizes) - sizes)
        return Blended(
            head,
            best_blend(
                head.records,
                self.curator.frequencies(counts, opted_in),
                Frequencies(frequencies, mechanism.population_variances(tally, clients)),
            ),
            best_blend(
                (*head.queries, OTHER),
                self.curator.frequencies(by_query, opted_in, sizes),
                Frequencies(*mechanism.query_frequencies(tally, clients)),
            ),
        )

    def simulate(self, opted_in: Sequence[Record], clients: Sequence[Record], rng: Randomness) -> Blended:
        """The whole of it in one place.

        Args:
            opted_in: One record of each user who opted in.
            clients: One record of each other user.
            rng: The source of randomness.

        Raises:
            InputDataError: There are too few users.
            ConfigurationError: No record is frequent enough.
        """
        head, counts, number = self.ask_opted_in(opted_in, rng)
        mechanism = self.clients_mechanism(head)
        reports = mechanism.privatise(head.codes(clients), rng)
        return self.blend(head, counts, number, mechanism.tally(reports), len(clients))


def best_blend(names: tuple[Record, ...] | tuple[str, ...], opt_in: Frequencies, clients: Frequencies) -> Blend:
    """The linear combination of two independent unbiased estimates that has the least variance.

    Args:
        names: Of what.
        opt_in: The curator's estimates.
        clients: The clients' estimates.
    """
    total = opt_in.variances + clients.variances
    weights = clients.variances / total
    frequencies = weights * opt_in.frequencies + (1 - weights) * clients.frequencies
    return Blend(names, opt_in, clients, weights, Frequencies(frequencies, weights * opt_in.variances))
