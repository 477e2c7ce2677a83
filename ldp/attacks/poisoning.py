"""Poisoning: fake users whose reports raise the estimates of an attacker's target values.

    RPA   random perturbed value: reports that are uniform over what clients can send
    RIA   random item: a random target, perturbed honestly
    MGA   maximal gain: reports that support as many targets as can be

m fake users beside n genuine ones are a share β = m / (n + m). If a fake report supports S of r targets on average,
the targets' estimated frequencies grow together by G = β·((S − r·q) / (p − q) − f), where f is what genuine users have.
Source: Cao, Jia and Gong, "Data Poisoning Attacks to Local Differential Privacy Protocols", USENIX Security 2021,
section 4 and table 1, whose nine cells this one identity yields.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from ldp.domain import Codes
from ldp.dyadic import Dyadic
from ldp.mechanism import some
from ldp.oracle import PureOracle
from ldp.oracles.direct_encoding import DirectEncoding
from ldp.oracles.local_hashing import LocalHashing
from ldp.oracles.subset_selection import SubsetSelection
from ldp.oracles.unary_encoding import UnaryEncoding
from ldp.packed import Rows, coin_rows, row_bytes
from ldp.reports import Reports
from ldp.subsets import subset_lists, subset_rows
from link.errors import ConfigurationError, InputDataError

Fields = tuple[NDArray[Any], ...]

_CELLS: Final = 1 << 24  # places that are looked at together, so that memory stays bounded
_HALF: Final = Dyadic(1, 1)


class Attack(ABC):
    """What fake users send.

    Attributes:
        name: As papers abbreviate it.
    """

    name: ClassVar[str]

    def craft(self, oracle: PureOracle, targets: ArrayLike, m: int, rng: Randomness | None = None) -> Reports:
        """The reports of m fake users, well-formed: `oracle.read` takes them.

        Args:
            oracle: The oracle that is attacked.
            targets: Values of its domain, each once.
            m: How many fake users.
            rng: The source of randomness.

        Raises:
            InputDataError: There is no target, one is unknown or named twice, or there is no fake user.
            ConfigurationError: The attack is not known for this oracle.
        """
        wanted = checked_targets(oracle, targets)
        if m < 1:
            raise InputDataError(f"an attack needs at least one fake user, not {m}")
        fields = self._fields(oracle, wanted, m, Randomness.from_os() if rng is None else rng)
        typed = [np.asarray(field, part.dtype) for field, part in zip(fields, oracle.layout, strict=True)]
        return Reports(oracle.fingerprint, tuple(typed))

    @abstractmethod
    def _fields(self, oracle: PureOracle, targets: Codes, m: int, rng: Randomness) -> Fields:
        """The fields of m reports."""

    @abstractmethod
    def supported(self, oracle: PureOracle, r: int) -> float:
        """S: how many of r targets a fake report supports, on average."""

    def gain(self, oracle: PureOracle, target_share: float, r: int, beta: float, scale: int = 1) -> float:
        """The expected growth of the targets' estimated frequencies, added up.

        Args:
            oracle: The oracle that is attacked.
            target_share: The targets' true frequencies among genuine users, added up.
            r: How many targets.
            beta: The share of fake users among all.
            scale: What estimates are multiplied by: l where users pad their sets to l items and report one of them.
        """
        return overall_gain(oracle, self.supported(oracle, r), target_share, r, beta, scale)


def overall_gain(
    oracle: PureOracle, supported: float, target_share: float, r: int, beta: float, scale: int = 1
) -> float:
    """β·(l·(S − r·q) / (p − q) − f), with l = 1 but for set-valued data.

    Padding and sampling multiplies estimates by l, and so what a fake report adds, while a genuine user reports only
    one item of a set: the attack is l times as strong.

    Args:
        oracle: The oracle that is attacked.
        supported: S, how many targets a fake report supports on average.
        target_share: f, the targets' true frequencies among genuine users, added up.
        r: How many targets.
        beta: β, the share of fake users among all.
        scale: The l.

    Raises:
        ConfigurationError: β is no share.
    """
    if not 0 <= beta < 1:
        raise ConfigurationError(f"the share of fake users lies between 0 and 1, not at {beta:g}")
    return beta * (scale * (supported - r * float(oracle.q)) / float(oracle.p - oracle.q) - target_share)


@dataclass(frozen=True, slots=True)
class RandomPerturbedValue(Attack):
    """RPA: every report that a client can send is as likely. It knows no targets; a baseline."""

    name: ClassVar[str] = "rpa"

    def _fields(self, oracle: PureOracle, targets: Codes, m: int, rng: Randomness) -> Fields:  # noqa: ARG002
        return _uniform(oracle, m, rng)

    def supported(self, oracle: PureOracle, r: int) -> float:
        """Each target with a uniform report's chance."""
        return r * _uniform_support(oracle)


@dataclass(frozen=True, slots=True)
class RandomItem(Attack):
    """RIA: claims a random target and then keeps to the protocol, which no server can tell from genuine users."""

    name: ClassVar[str] = "ria"

    def _fields(self, oracle: PureOracle, targets: Codes, m: int, rng: Randomness) -> Fields:
        claimed = targets[rng.integers(len(targets), m).astype(np.int64)]
        names = claimed if oracle.domain.labels is None else [oracle.domain.labels[code] for code in claimed]
        return oracle.privatise(names, rng).fields

    def supported(self, oracle: PureOracle, r: int) -> float:
        """The claimed target with p, each other with q."""
        return float(oracle.p + (r - 1) * oracle.q)


@dataclass(frozen=True, slots=True)
class MaximalGain(Attack):
    """MGA: supports all targets where a report can; unary reports are padded to look like genuine ones.

    Attributes:
        tries: Hash functions that each fake user looks at, to take the one that sends most targets to one bucket.
        padded: Whether a unary report gets as many ones as a genuine one has on average.
    """

    name: ClassVar[str] = "mga"
    tries: int = 1000
    padded: bool = True

    def _fields(self, oracle: PureOracle, targets: Codes, m: int, rng: Randomness) -> Fields:
        return _maximal(oracle, self, targets, m, rng)

    def supported(self, oracle: PureOracle, r: int) -> float:
        """As many targets as one report can support; for local hashing only if a function with one bucket is found."""
        return float(min(r, _largest_support(oracle)))


def checked_targets(oracle: PureOracle, targets: ArrayLike) -> Codes:
    """The numbers of targets.

    Raises:
        InputDataError: There is none, one is unknown, or one is named twice.
    """
    codes = oracle.domain.codes(targets)
    if not codes.size:
        raise InputDataError("an attack needs at least one target value")
    if len(np.unique(codes)) < len(codes):
        raise InputDataError("a target is named twice; name each target once")
    return codes


def mean_supported(supporting: NDArray[np.bool_]) -> float:
    """S of reports that exist: how many targets a report supports on average.

    Args:
        supporting: Shape (n, r): which report supports which target (`ldp.attacks.supports`).
    """
    some(len(supporting))
    return float(supporting.sum(axis=1).mean())


# -- uniform reports --------------------------------------------------------------------------------------------------
@singledispatch
def _uniform(oracle: PureOracle, m: int, rng: Randomness) -> Fields:  # noqa: ARG001
    """Fields of m reports, uniform over all that clients can send."""
    raise _unknown(oracle)


@singledispatch
def _uniform_support(oracle: PureOracle) -> float:
    """The probability that a uniform report supports a value."""
    raise _unknown(oracle)


@singledispatch
def _maximal(
    oracle: PureOracle,
    attack: MaximalGain,  # noqa: ARG001
    targets: Codes,  # noqa: ARG001
    m: int,  # noqa: ARG001
    rng: Randomness,  # noqa: ARG001
) -> Fields:
    """Fields of m reports that support as many targets as can be."""
    raise _unknown(oracle)


@singledispatch
def _largest_support(oracle: PureOracle) -> int:
    """How many values one report can support."""
    raise _unknown(oracle)


def _unknown(oracle: PureOracle) -> ConfigurationError:
    return ConfigurationError(f"no attack on {oracle.name} is known here; take direct, unary, hashed or subset reports")


# -- direct encoding --------------------------------------------------------------------------------------------------
@_uniform.register
def _(oracle: DirectEncoding, m: int, rng: Randomness) -> Fields:
    return (rng.integers(oracle.domain.size, m),)


@_uniform_support.register
def _(oracle: DirectEncoding) -> float:
    return 1 / oracle.domain.size


@_maximal.register
def _(oracle: DirectEncoding, attack: MaximalGain, targets: Codes, m: int, rng: Randomness) -> Fields:  # noqa: ARG001
    return (targets[rng.integers(len(targets), m).astype(np.int64)],)


@_largest_support.register
def _(oracle: DirectEncoding) -> int:  # noqa: ARG001
    return 1


# -- unary encodings --------------------------------------------------------------------------------------------------
@_uniform.register
def _(oracle: UnaryEncoding, m: int, rng: Randomness) -> Fields:
    return (coin_rows(_HALF, m, oracle.domain.size, rng),)


@_uniform_support.register
def _(oracle: UnaryEncoding) -> float:  # noqa: ARG001
    return 0.5


@_maximal.register
def _(oracle: UnaryEncoding, attack: MaximalGain, targets: Codes, m: int, rng: Randomness) -> Fields:
    d, r = oracle.domain.size, len(targets)
    extra = max(math.floor(oracle.p + (d - 1) * oracle.q) - r, 0) if attack.padded else 0
    return (_rows_with(targets, _others(d, targets), extra, m, d, rng),)


@_largest_support.register
def _(oracle: UnaryEncoding) -> int:
    return oracle.domain.size


def _others(d: int, targets: Codes) -> Codes:
    return np.setdiff1d(np.arange(d), targets)


def _rows_with(fixed: Codes, choice: Codes, size: int, m: int, d: int, rng: Randomness) -> Rows:
    """M rows of d bits, each with all `fixed` values and a uniform subset of `choice` with `size` members."""
    rows = np.empty((m, row_bytes(d)), dtype=np.uint8)
    step = max(1, _CELLS // d)
    for start in range(0, m, step):
        part = np.zeros((min(step, m - start), d), dtype=np.uint8)
        part[:, fixed] = 1
        if size:
            drawn = subset_rows(size, len(part), len(choice), rng)
            part[:, choice] = np.unpackbits(drawn, axis=1, count=len(choice), bitorder="little")
        rows[start : start + step] = np.packbits(part, axis=1, bitorder="little")
    return rows


# -- local hashing ----------------------------------------------------------------------------------------------------
@_uniform.register
def _(oracle: LocalHashing, m: int, rng: Randomness) -> Fields:
    return oracle._family.draw(m, rng), rng.integers(oracle.g, m)


@_uniform_support.register
def _(oracle: LocalHashing) -> float:
    return 1 / oracle.g


@_maximal.register
def _(oracle: LocalHashing, attack: MaximalGain, targets: Codes, m: int, rng: Randomness) -> Fields:
    if attack.tries < 1:
        raise ConfigurationError(f"a fake user looks at one hash function at least, not {attack.tries}")
    family, found = oracle._family, []
    step = max(1, _CELLS // (attack.tries * max(oracle.g, len(targets))))
    for start in range(0, m, step):
        size = min(step, m - start)
        seeds = family.draw(size * attack.tries, rng)
        functions = np.arange(len(seeds))
        hits = np.zeros((len(seeds), oracle.g), dtype=np.uint16)
        for target in targets:
            hits[functions, family.buckets(seeds, target)] += 1
        fullest = hits.max(axis=1).reshape(size, attack.tries).argmax(axis=1) + np.arange(size) * attack.tries
        found.append((seeds[fullest], hits[fullest].argmax(axis=1)))
    return np.concatenate([seeds for seeds, _ in found]), np.concatenate([buckets for _, buckets in found])


@_largest_support.register
def _(oracle: LocalHashing) -> int:
    return oracle.domain.size


# -- subset selection -------------------------------------------------------------------------------------------------
@_uniform.register
def _(oracle: SubsetSelection, m: int, rng: Randomness) -> Fields:
    return (_subsets_with(oracle, np.arange(0), np.arange(oracle.domain.size), m, rng),)


@_uniform_support.register
def _(oracle: SubsetSelection) -> float:
    return oracle.k / oracle.domain.size


@_maximal.register
def _(oracle: SubsetSelection, attack: MaximalGain, targets: Codes, m: int, rng: Randomness) -> Fields:  # noqa: ARG001
    if len(targets) >= oracle.k:
        return (_subsets_with(oracle, targets[:0], targets, m, rng),)
    return (_subsets_with(oracle, targets, _others(oracle.domain.size, targets), m, rng),)


@_largest_support.register
def _(oracle: SubsetSelection) -> int:
    return oracle.k


def _subsets_with(oracle: SubsetSelection, fixed: Codes, choice: Codes, m: int, rng: Randomness) -> NDArray[Any]:
    """Sets of k values with all `fixed` ones and otherwise uniform ones of `choice`, as the oracle sends them."""
    size = oracle.k - len(fixed)
    if not oracle._listed:
        return _rows_with(fixed, choice, size, m, oracle.domain.size, rng)
    drawn = choice[subset_lists(size, m, len(choice), rng)]
    return np.sort(np.concatenate([np.broadcast_to(fixed, (m, len(fixed))), drawn], axis=1), axis=1)
