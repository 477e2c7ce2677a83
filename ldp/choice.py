"""Chooses a frequency oracle by domain, privacy budget and bandwidth, and says why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldp.domain import Domain, DomainLike
from ldp.frequency_oracle import FrequencyOracle
from ldp.oracles.direct_encoding import DirectEncoding
from ldp.oracles.hadamard_response import HadamardResponse
from ldp.oracles.local_hashing import OptimisedLocalHashing
from ldp.oracles.subset_selection import SubsetSelection
from ldp.oracles.unary_encoding import OptimisedUnaryEncoding
from link.errors import ConfigurationError

MOST_STEPS: Final = 10**12
"""What a server is expected to do at most: some minutes of one core."""

_AS_GOOD: Final = 1.1  # variances within a tenth of the least differ less than two collections do

# What a server does for a report, given d: its kind of work decides, not the constant.
_STEPS: Final[dict[type[FrequencyOracle], Callable[[int], int]]] = {
    DirectEncoding: lambda d: 1,
    SubsetSelection: lambda d: d,
    OptimisedUnaryEncoding: lambda d: d,
    OptimisedLocalHashing: lambda d: d,
    HadamardResponse: lambda d: 1,
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """An oracle and what it costs.

    Attributes:
        oracle: The oracle.
        deviation: Standard deviation of a count's estimate, per square root of the users, if all values are as common.
        report_bytes: Bytes of a report.
        steps: Of a server, for each report.
        refused: Why it cannot be taken; empty if it can.
    """

    oracle: FrequencyOracle
    deviation: float
    report_bytes: int
    steps: int
    refused: str


@dataclass(frozen=True, slots=True)
class Choice:
    """The oracle that was chosen.

    Attributes:
        oracle: The oracle.
        reason: One sentence.
        candidates: All that were looked at, the most accurate first.
    """

    oracle: FrequencyOracle
    reason: str
    candidates: tuple[Candidate, ...]


def choose(domain: DomainLike, epsilon: float, *, n: int | None = None, max_report_bytes: int | None = None) -> Choice:
    """The oracle with the shortest reports among those that are about as accurate as can be.

    Args:
        domain: The domain, its size, or the texts of its values.
        epsilon: The privacy budget ε.
        n: How many users are expected; oracles that would keep a server busy for very long are left out.
        max_report_bytes: The longest report that clients can send.

    Raises:
        ConfigurationError: No oracle fits.
    """
    known = Domain.of(domain)
    candidates = sorted(
        (_examined(kind(known, epsilon), n, max_report_bytes) for kind in _STEPS), key=lambda each: each.deviation
    )
    fit = [each for each in candidates if not each.refused]
    if not fit:
        raise ConfigurationError(
            f"no oracle for {known.size:,} values has reports of {max_report_bytes} bytes; allow longer ones"
        )
    near = [each for each in fit if each.deviation**2 <= _AS_GOOD * fit[0].deviation ** 2]
    chosen = min(near, key=lambda each: (each.report_bytes, each.deviation))
    return Choice(chosen.oracle, _reason(chosen, candidates), tuple(candidates))


def _examined(oracle: FrequencyOracle, n: int | None, most: int | None) -> Candidate:
    steps = _STEPS[type(oracle)](oracle.domain.size)
    refused = ""
    if most is not None and oracle.report_bytes > most:
        refused = f"reports take {oracle.report_bytes:,} bytes"
    elif n is not None and n * steps > MOST_STEPS:
        refused = f"a server would take {n * steps:.0e} steps"
    d = oracle.domain.size
    deviation = float(np.sqrt(oracle.variance(np.full(d, 1 / d), 1).mean()))
    return Candidate(oracle, deviation, oracle.report_bytes, steps, refused)


def _reason(chosen: Candidate, candidates: list[Candidate]) -> str:
    text = (
        f"{chosen.oracle.name} for {chosen.oracle.domain.size:,} values at epsilon {chosen.oracle.epsilon:g}: "
        f"a count is off by {chosen.deviation:.3g}·√n, with {chosen.report_bytes:,} bytes a report"
    )
    better = [each for each in candidates if each.deviation < chosen.deviation]
    if better:
        spared = "; ".join(
            f"{each.oracle.name} is off by {each.deviation:.3g}·√n, but "
            + (each.refused or f"its reports take {each.report_bytes:,} bytes")
            for each in better
        )
        text += f" ({spared})"
    return text
