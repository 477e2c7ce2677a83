"""Poisoning: fake users whose reports raise the estimates of an attacker's target values.

    RPA   random perturbed value: reports that are uniform over what clients can send
    RIA   random item: a random target, perturbed honestly
    MGA   maximal gain: reports that support as many targets as can be

m fake users beside n genuine ones are a share β = m / (n + m). If a fake report supports S of r targets on average,
the targets' estimated frequencies grow together by G = β·((S − r·q) / (p − q) − f), where f is what genuine users have.
Under any oracle it is G = β·(A − f), where A is what fake reports, by themselves, would be estimated to hold (`added`).
Source: Cao, Jia and Gong, "Data Poisoning Attacks to Local Differential Privacy Protocols", USENIX Security 2021,
section 4 and table 1, whose nine cells this one identity yields.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from crypto.primitives.randomness import Randomness
from ldp.attacks.crafting import Effort, Fields, largest_support, maximal, uniform, uniform_support
from ldp.domain import Codes
from ldp.frequency_oracle import FrequencyOracle, PureOracle
from ldp.mechanism import some
from ldp.oracles.hadamard_response import HadamardResponse
from ldp.parameters import checked
from ldp.reports import Reports
from link.errors import ConfigurationError, InputDataError


class Attack(ABC):
    """What fake users send.

    Attributes:
        name: As papers abbreviate it.
    """

    name: ClassVar[str]

    def craft(self, oracle: FrequencyOracle, targets: ArrayLike, m: int, rng: Randomness | None = None) -> Reports:
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
    def _fields(self, oracle: FrequencyOracle, targets: Codes, m: int, rng: Randomness) -> Fields:
        """The fields of m reports."""

    @abstractmethod
    def supported(self, oracle: FrequencyOracle, r: int) -> float:
        """S: how many of r targets a fake report supports, on average."""

    def gain(self, oracle: FrequencyOracle, target_share: float, r: int, beta: float, scale: int = 1) -> float:
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
    oracle: FrequencyOracle, supported: float, target_share: float, r: int, beta: float, scale: int = 1
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
    p, q = _rates(oracle)
    return beta * (scale * (supported - r * float(q)) / float(p - q) - target_share)


def _rates(oracle: FrequencyOracle) -> tuple[Fraction, Fraction]:
    """The p and q of an oracle under which every other value is supported with the same probability."""
    if isinstance(oracle, PureOracle):
        return oracle.p, oracle.q
    if isinstance(oracle, HadamardResponse) and oracle.one_block:
        return oracle.p, oracle.share
    raise ConfigurationError(
        f"under {oracle.name} with these parameters a report supports some values more often than others; "
        "craft reports and see what is `added` by them"
    )


def added(oracle: FrequencyOracle, fake: Reports, targets: ArrayLike) -> float:
    """A: the targets' frequencies, added up, as they would be estimated from fake reports alone.

    Estimates are linear in reports, so that a share β of these among all has the gain β·(A − f).

    Args:
        oracle: The oracle that is attacked.
        fake: Fake reports.
        targets: Values of the domain.

    Raises:
        InputDataError: There is no report, or a target is wrong.
    """
    wanted = checked_targets(oracle, targets)
    some(len(fake))
    return float(oracle.unbiased(oracle.tally(fake), len(fake))[wanted].sum() / len(fake))


@dataclass(frozen=True, slots=True)
class RandomPerturbedValue(Attack):
    """RPA: every report that a client can send is as likely. It knows no targets; a baseline."""

    name: ClassVar[str] = "rpa"

    def _fields(self, oracle: FrequencyOracle, targets: Codes, m: int, rng: Randomness) -> Fields:  # noqa: ARG002
        return uniform(oracle, m, rng)

    def supported(self, oracle: FrequencyOracle, r: int) -> float:
        """Each target with a uniform report's chance."""
        return r * uniform_support(oracle)


@dataclass(frozen=True, slots=True)
class RandomItem(Attack):
    """RIA: claims a random target and then keeps to the protocol, as genuine users do, which no server can detect."""

    name: ClassVar[str] = "ria"

    def _fields(self, oracle: FrequencyOracle, targets: Codes, m: int, rng: Randomness) -> Fields:
        claimed = targets[rng.integers(len(targets), m).astype(np.int64)]
        names = claimed if oracle.domain.labels is None else [oracle.domain.labels[code] for code in claimed]
        return oracle.privatise(names, rng).fields

    def supported(self, oracle: FrequencyOracle, r: int) -> float:
        """The claimed target with p, each other with q."""
        p, q = _rates(oracle)
        return float(p + (r - 1) * q)


@checked
@dataclass(frozen=True, slots=True)
class MaximalGain(Attack):
    """MGA: supports all targets where a report can; unary reports are padded to look like genuine ones.

    Attributes:
        tries: Hash functions that each fake user looks at, to take the one that sends most targets to one bucket.
        padded: Whether a report of bits gets as many ones as a genuine one has on average.
    """

    name: ClassVar[str] = "mga"
    tries: int = 1000
    padded: bool = True

    def _fields(self, oracle: FrequencyOracle, targets: Codes, m: int, rng: Randomness) -> Fields:
        return maximal(oracle, targets, m, rng, Effort(self.tries, self.padded))

    def supported(self, oracle: FrequencyOracle, r: int) -> float:
        """As many targets as one report can support; for local hashing only if a function with one bucket is found."""
        return float(min(r, largest_support(oracle)))


def checked_targets(oracle: FrequencyOracle, targets: ArrayLike) -> Codes:
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
