"""Tests of sensitive values on shared class histograms: comparisons of sums with public whole coefficients.

n_cs rows of class c have the value s, N_c of them are in it, m_s of all M rows have s. Parameters are the fractions
that are written, multiplied out:

    distinct l, p:      Σ_s [n_cs ≥ 1] ≥ l;  H levels: the same over levels
    (α, k):             α·N_c − n_cs ≥ 0 for all s
    recursive (c, 2):   (1 + c)·n_cs < c·N_c for all s, since the largest n_cs decides
    variational t:      Σ_s |M·n_cs − N_c·m_s| ≤ 2·t·M·N_c
    ordered t:          the same on sums up to each s, of m values, with t·(m − 1)·M·N_c

Entropy ℓ-diversity and Kullback and Leibler's distance need n·ln n, which is no such sum: they are refused, as are
recursive diversity beyond l = 2, distances over a tree or by value, β-likeness and δ-disclosure.

Rounds:     those of a comparison, and of at most another one with a selection or a conversion between them.
Leakage:    none but sizes; m_s is opened where t-closeness needs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anonymize.models import (
    AlphaK,
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
from anonymize.models.rationals import exact
from crypto.primitives.sharing import AdditiveShare
from crypto.primitives.xor_sharing import XorShare
from crypto.protocols.argmin import select
from crypto.protocols.comparison import at_least, width_for
from crypto.protocols.conversion import to_additive
from crypto.protocols.pairwise import PairwiseSecrets
from crypto.protocols.secure_sum import shared_sum
from crypto.protocols.two_party import TwoParty
from link.errors import ConfigurationError
from link.session import Session
from mining.joint.anonymisation.bits import all_of, word_of

Tested = DistinctDiversity | SensitiveLevels | AlphaK | RecursiveDiversity | TCloseness

_LARGEST: Final = 1 << 61


@dataclass(frozen=True, eq=False)
class SensitiveTests:
    """The requirements on sensitive values.

    Attributes:
        models: Each looks at one column.
        values: By column all values that may occur.
        totals: By column of t-closeness, rows of all parties with each value, shape (values,).
        n_rows: N, of all parties.
        compute: The two computing parties.
    """

    models: tuple[Tested, ...]
    values: Mapping[str, tuple[str, ...]]
    totals: Mapping[str, NDArray[np.int64]]
    n_rows: int
    compute: tuple[str, str]

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
        """Shares of which classes meet a model; None at a party that computes nothing.

        Args:
            session: A lane of its own.
            secrets: Pairwise secrets of this session.
            parties: At a computing party its half of the agreement with the other.
            model: One of `models`.
            histogram: This party's rows of each class with each value, shape (classes, values).
        """
        number = len(histogram)
        if isinstance(model, DistinctDiversity | SensitiveLevels):
            held = np.minimum(self._by_level(model, histogram), 1)
            words = held.T.reshape(-1).astype(word_of(len(session.parties)))
        else:
            words = histogram.T.reshape(-1).astype(np.uint64)
        shared = await shared_sum(session.lane("counts"), secrets, words, self.compute)
        if shared is None or parties is None:
            return None
        match model:
            case DistinctDiversity():
                return await _distinct(session, parties, shared, number, model.l)
            case SensitiveLevels():
                return await _distinct(session, parties, shared, number, model.h)
            case AlphaK():
                chosen = range(len(self.values[model.column])) if model.values is None else self._places(model)
                counts, sizes = _parts(shared, number), _sizes(shared, number)
                share = exact(model.alpha, "alpha")
                return await self._for_all(session, parties, [(sizes, counts[s]) for s in chosen], share, Fraction(1))
            case RecursiveDiversity():
                sizes, c = _sizes(shared, number), exact(model.c, "c")
                each = [(sizes, counts) for counts in _parts(shared, number)]
                return await self._for_all(session, parties, each, c, 1 + c if model.l == 2 else Fraction(1), strict=1)
            case TCloseness():
                return await self._close(session, parties, shared, number, model)

    def _by_level(self, model: DistinctDiversity | SensitiveLevels, histogram: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows with each value, or with values of each level."""
        if isinstance(model, DistinctDiversity):
            return histogram
        values = self.values[model.column]
        columns = [histogram[:, [values.index(each) for each in level]].sum(axis=1) for level in model.levels]
        return np.stack(columns, axis=1)

    def _places(self, model: AlphaK) -> list[int]:
        assert model.values is not None
        return [self.values[model.column].index(value) for value in model.values]

    async def _for_all(
        self,
        session: Session,
        parties: TwoParty,
        pairs: list[tuple[AdditiveShare, AdditiveShare]],
        times: Fraction,
        less: Fraction,
        *,
        strict: int = 0,
    ) -> XorShare:
        """Whether times·x − less·y ≥ 0 for all pairs (x, y), or > 0."""
        scale = times.denominator * less.denominator
        a, b = int(times * scale), int(less * scale)
        width = _width_of(max(a, b) * self.n_rows + 1)
        rooms = [x.times_public(a) - y.times_public(b) for x, y in pairs]
        bits = await at_least(session.lane("shares"), parties, _joined(rooms), strict, width)
        number = rooms[0].size
        return await all_of(session.lane("all"), parties, _split(bits, number))

    async def _close(
        self, session: Session, parties: TwoParty, shared: AdditiveShare, number: int, model: TCloseness
    ) -> XorShare:
        totals, t = self.totals[model.column], exact(model.t, "t")
        present = np.flatnonzero(totals)
        counts, sizes = _parts(shared, number), _sizes(shared, number)
        apart = [counts[s].times_public(self.n_rows) - sizes.times_public(int(totals[s])) for s in present.tolist()]
        most = t * 2 * self.n_rows
        if model.distance == "ordered":
            for place in range(1, len(apart)):
                apart[place] = apart[place] + apart[place - 1]
            most = t * (len(apart) - 1) * self.n_rows
        largest = 2 * len(apart) * self.n_rows * self.n_rows
        width = _width_of(max(largest * most.denominator, most.numerator * self.n_rows))
        joined = _joined(apart)
        above = await at_least(session.lane("signs"), parties, joined, 0, _width_of(largest))
        negative = await select(session.lane("negative"), parties, ~above, joined)
        distance = _sizes(joined - negative.times_public(2), number)
        room = sizes.times_public(most.numerator) - distance.times_public(most.denominator)
        return await at_least(session.lane("distance"), parties, room, 0, width)


def offered(requirements: Requirements) -> tuple[Tested, ...]:
    """The models besides k-anonymity, each of one column.

    Raises:
        ConfigurationError: One is not offered for several parties.
    """
    found: list[Tested] = []
    for model in requirements.models:
        if isinstance(model, PSensitive):
            found += [DistinctDiversity(model.p, column) for column in model.columns]
        elif isinstance(model, Tested):
            _check(model)
            found.append(model)
        elif not isinstance(model, KAnonymity):
            raise _refused(model)
    return tuple(found)


async def _distinct(session: Session, parties: TwoParty, shared: AdditiveShare, number: int, least: int) -> XorShare:
    """Whether so many values occur in a class."""
    present = await at_least(session.lane("present"), parties, shared, 1, width_for(len(session.parties)))
    counted = await to_additive(session.lane("number"), parties, present)
    most = max(shared.size // max(number, 1), least)
    return await at_least(session.lane("least"), parties, _sizes(counted, number), least, width_for(most))


def _check(model: Tested) -> None:
    if isinstance(model, RecursiveDiversity) and model.l > 2:
        raise _refused(model, "only l = 1 and l = 2 can be tested without sorting shared counts")
    if isinstance(model, TCloseness):
        if model.distance == "kl":
            raise _refused(model, "it needs logarithms of shared counts")
        if model.distance == "hierarchical" or model.ground == "value":
            raise _refused(model, 'take distance = "equal", or "ordered" with ground = "rank"')


def _refused(model: Model, reason: str | None = None) -> ConfigurationError:
    if reason is None:
        entropy = isinstance(model, EntropyDiversity)
        reason = "it needs logarithms of shared counts" if entropy else "its limits are no whole multiples of counts"
    return ConfigurationError(f"{model} cannot be decided on counts that stay shared between parties: {reason}")


def _width_of(largest: int) -> int:
    """Bits of a comparison.

    Raises:
        ConfigurationError: They do not fit a word.
    """
    if largest >= _LARGEST:
        raise ConfigurationError(
            "there are too many rows for exact tests with a parameter of so many digits; write it with fewer"
        )
    return width_for(largest)


def _parts(shared: AdditiveShare, number: int) -> list[AdditiveShare]:
    """By value, the share of the rows of each class."""
    return [shared[start : start + number] for start in range(0, shared.size, number)]


def _sizes(shared: AdditiveShare, number: int) -> AdditiveShare:
    """The share of the sum over all values, by class."""
    total = shared.values.reshape(-1, number).sum(axis=0, dtype=shared.word)
    return AdditiveShare(total, shared.holder, shared.holders)


def _joined(parts: list[AdditiveShare]) -> AdditiveShare:
    first = parts[0]
    return AdditiveShare(np.concatenate([part.values for part in parts]), first.holder, first.holders)


def _split(bits: XorShare, number: int) -> list[XorShare]:
    return [bits[np.arange(start, start + number)] for start in range(0, bits.number, number)]
