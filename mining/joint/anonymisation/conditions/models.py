"""Tests of sensitive values on shared class histograms: comparisons of sums with public whole coefficients.

n_cs rows of class c have the value s, N_c of them are in it:

    distinct l, p:                          Σ_s [n_cs ≥ 1] ≥ l;  H levels: the same over levels
    (α, k), recursive (c, 1) and (c, 2),
    β-likeness, δ-disclosure:               n_cs / N_c within public limits, for each s (`share_limits`)
    recursive (c, l) beyond:                the l − 1 largest n_cs are found obliviously (`largest_counts`)
    t-closeness:                            a weighted sum of absolute deviations is at most a multiple of N_c
                                            (`distance_limits`)

Entropy ℓ-diversity and Kullback and Leibler's distance need n·ln n, which is no such sum: they are refused.

Rounds:     those of a comparison, and of at most another one with a selection or a conversion between them; to find the
            largest counts, those of l − 1 tournaments.
Leakage:    none but sizes; how many of all rows have each value is opened where a model compares with that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from anonymize.models import (
    AlphaK,
    BetaLikeness,
    DeltaDisclosure,
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    Model,
    PSensitive,
    RecursiveDiversity,
    Requirements,
    SensitiveLevels,
    TCloseness,
)
from crypto.primitives.shares.xor import XorShare
from crypto.protocols.comparison.comparison import at_least, width_for
from crypto.protocols.comparison.conversion import to_additive
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.sums.secure_sum import shared_sum
from link.errors import ConfigurationError
from link.session import Session
from mining.joint.anonymisation.conditions.bits import word_of
from mining.joint.anonymisation.conditions.distance_limits import distance_limit
from mining.joint.anonymisation.conditions.largest_counts import tail_test
from mining.joint.anonymisation.conditions.share_limits import (
    disclosure_limits,
    frequency_limits,
    likeness_limits,
    recursive_limits,
)
from mining.joint.anonymisation.conditions.value_counts import ClassTest, ValueCounts, summed
from mining.joint.anonymisation.parameters import Carried, JointAnonymisation

Compared = TCloseness | BetaLikeness | DeltaDisclosure
"""Models that compare classes with all rows: how many of these have each value is opened."""

Tested = DistinctDiversity | SensitiveLevels | AlphaK | RecursiveDiversity | Compared


@dataclass(frozen=True, eq=False)
class SensitiveTests:
    """The requirements on sensitive values.

    Attributes:
        models: Each looks at one column.
        values: By column all values that may occur.
        compute: The two computing parties.
        tests: How each model is decided.
    """

    models: tuple[Tested, ...]
    values: Mapping[str, tuple[str, ...]]
    compute: tuple[str, str]
    tests: Mapping[Tested, ClassTest]

    @classmethod
    def of(cls, task: JointAnonymisation, totals: Mapping[str, NDArray[np.int64]], n_rows: int) -> Self:
        """The tests of a task; they are public.

        Args:
            task: The public parameters.
            totals: By column of `compared_columns`, rows of all parties with each value, shape (values,).
            n_rows: N, of all parties.

        Raises:
            ConfigurationError: A model is not offered for several parties, does not suit its column, or its limits have
                too many digits for so many rows.
        """
        columns = {each.name: each for each in task.carried if each.values is not None}
        models = offered(task.requirements)
        tests = {model: _test(model, columns[model.column], totals, n_rows) for model in models}
        values = {name: each.values for name, each in columns.items() if each.values is not None}
        return cls(models, values, task.compute, tests)

    @property
    def sizes(self) -> dict[str, int]:
        """By column, how many values there are."""
        return {name: len(values) for name, values in self.values.items()}

    async def bits(
        self,
        session: Session,
        secrets: PairwiseSecrets,
        parties: TwoParty | None,
        model: Tested,
        histogram: NDArray[np.int64],
    ) -> XorShare | None:
        """Shares of which classes meet a model, of those that have rows; None at a party that computes nothing.

        Args:
            session: A lane of its own.
            secrets: Pairwise secrets of this session.
            parties: At a computing party its half of the agreement with the other.
            model: One of `models`.
            histogram: This party's rows of each class with each value, shape (classes, values).
        """
        if isinstance(model, DistinctDiversity | SensitiveLevels):
            held = np.minimum(self._by_level(model, histogram), 1)
            words = held.T.reshape(-1).astype(word_of(len(session.parties)))
        else:
            words = histogram.T.reshape(-1).astype(np.uint64)
        shared = await shared_sum(session.lane("counts"), secrets, words, self.compute)
        if shared is None or parties is None:
            return None
        return await self.tests[model].bits(session, parties, ValueCounts(shared, len(histogram)))

    def _by_level(self, model: DistinctDiversity | SensitiveLevels, histogram: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows with each value, or with values of each level."""
        if isinstance(model, DistinctDiversity):
            return histogram
        values = self.values[model.column]
        columns = [histogram[:, [values.index(each) for each in level]].sum(axis=1) for level in model.levels]
        return np.stack(columns, axis=1)


@dataclass(frozen=True)
class _Distinct:
    """That so many values occur; counted are the parties that have each, not the rows."""

    least: int

    async def bits(self, session: Session, parties: TwoParty, counts: ValueCounts) -> XorShare:
        """See `ClassTest`."""
        present = await at_least(session.lane("present"), parties, counts.shared, 1, width_for(len(session.parties)))
        counted = await to_additive(session.lane("number"), parties, present)
        width = width_for(max(counts.values, self.least))
        return await at_least(session.lane("least"), parties, summed(counted, counts.classes), self.least, width)


def offered(requirements: Requirements) -> tuple[Tested, ...]:
    """The models besides k-anonymity, each of one column.

    Raises:
        ConfigurationError: One is not offered for several parties.
    """
    found: list[Tested] = []
    for model in requirements.models:
        if isinstance(model, PSensitive):
            found += [DistinctDiversity(model.p, column) for column in model.columns]
        elif isinstance(model, Tested) and not _is_logarithmic(model):
            found.append(model)
        elif not isinstance(model, KAnonymity):
            logarithms = isinstance(model, EntropyDiversity) or _is_logarithmic(model)
            why = "it needs logarithms of shared counts" if logarithms else "no protocol for it is known here"
            raise ConfigurationError(f"{model} cannot be decided on counts that stay shared between parties: {why}")
    return tuple(found)


def compared_columns(requirements: Requirements) -> tuple[str, ...]:
    """The columns of which it is opened how many rows of all parties have each value, each once.

    Raises:
        ConfigurationError: A model is not offered for several parties.
    """
    return tuple(dict.fromkeys(each.column for each in offered(requirements) if isinstance(each, Compared)))


def _is_logarithmic(model: Model) -> bool:
    return isinstance(model, TCloseness) and model.distance == "kl"


def _test(model: Tested, column: Carried, totals: Mapping[str, NDArray[np.int64]], n_rows: int) -> ClassTest:
    assert column.values is not None
    match model:
        case DistinctDiversity():
            return _Distinct(model.l)
        case SensitiveLevels():
            return _Distinct(model.h)
        case AlphaK():
            return frequency_limits(model, column.values, n_rows)
        case RecursiveDiversity() if model.l > 2:
            return tail_test(model, n_rows)
        case RecursiveDiversity():
            return recursive_limits(model, len(column.values), n_rows)
        case TCloseness():
            return distance_limit(model, column, totals[column.name])
        case BetaLikeness():
            return likeness_limits(model, totals[column.name])
        case DeltaDisclosure():
            return disclosure_limits(model, totals[column.name])
