"""LDPRecover: takes what fake users are expected to have added out of poisoned estimates.

With η = m / n fake users for each genuine one, poisoned frequencies are f_Z = (f_X + η·f_Y) / (1 + η). The server does
not see f_Y, what fake reports alone would yield, but knows its sum: if a fake report supports S values on average,
Σ_v f_Y(v) = (S − d·q) / (p − q). It subtracts such an f_Y and projects the result on what frequencies can be.

Source: Sun, Ye, Hu, Duan, Huang and Fu, "LDPRecover: Recovering Frequencies from Poisoning Attacks against Local
Differential Privacy", ICDE 2024; its sum is the one for S = 1 and direct encoding.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ldp.attacks.poisoning import checked_targets
from ldp.consistency import norm_sub
from ldp.frequency_oracle import Floats, PureOracle
from link.errors import ConfigurationError, InputDataError


def malicious_sum(oracle: PureOracle, supported: float | None = None) -> float:
    """Σ_v f_Y(v) = (S − d·q) / (p − q).

    Args:
        oracle: The oracle.
        supported: S, how many values a fake report supports on average; by default as many as a genuine one, as direct
            reports and padded unary ones do: the sum is then 1.
    """
    d, q = oracle.domain.size, float(oracle.q)
    return (_supported(oracle, supported) - d * q) / float(oracle.p - oracle.q)


def recover(
    frequencies: Floats,
    oracle: PureOracle,
    ratio: float,
    supported: float | None = None,
    targets: ArrayLike | None = None,
) -> Floats:
    """Frequencies of the genuine users.

    Args:
        frequencies: Raw estimates from genuine and fake reports, shape (d,).
        oracle: Where they come from.
        ratio: η, fake users for each genuine one, as the server assumes. Too large a value takes from honest users.
        supported: S, how many values a fake report supports on average; by default as many as a genuine one.
        targets: The attacker's targets, if the server knows them: fake reports then support these first. Otherwise what
            they add is spread evenly over the values with positive estimates.

    Returns:
        Shape (d,), none negative, with sum 1.

    Raises:
        ConfigurationError: The ratio or S is impossible.
        InputDataError: There are not d finite frequencies, or targets are wrong.
    """
    d = oracle.domain.size
    if not 0 <= ratio < np.inf:
        raise ConfigurationError(f"fake users for each genuine one are 0 or more, not {ratio:g}")
    if frequencies.shape != (d,) or not np.isfinite(frequencies).all():
        raise InputDataError(f"there must be {d} finite frequencies, one for each value of the domain")
    malicious = np.zeros(d)
    if targets is None:
        seen = frequencies > 0
        if seen.any():
            malicious[seen] = malicious_sum(oracle, supported) / seen.sum()
    else:
        malicious = _malicious(oracle, _supported(oracle, supported), targets)
    return norm_sub((1 + ratio) * frequencies - ratio * malicious)


def _malicious(oracle: PureOracle, supported: float, targets: ArrayLike) -> Floats:
    """What fake reports alone yield if they support the targets first, and other values with what is left."""
    wanted, d = checked_targets(oracle, targets), oracle.domain.size
    r = len(wanted)
    rates = np.full(d, max(supported - r, 0.0) / max(d - r, 1))
    rates[wanted] = min(supported / r, 1.0)
    return np.asarray((rates - float(oracle.q)) / float(oracle.p - oracle.q), dtype=np.float64)


def _supported(oracle: PureOracle, supported: float | None) -> float:
    d = oracle.domain.size
    if supported is None:
        return float(oracle.p + (d - 1) * oracle.q)
    if not 0 <= supported <= d:
        raise ConfigurationError(f"a report supports between 0 and {d} values, not {supported:g}")
    return supported
