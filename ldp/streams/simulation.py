"""Runs a method of continual release on a stream of true values, and measures errors and what users spend.

Where a method divides the users, each group is drawn uniformly, without replacement, out of those who are there and
have not reported in the last w − 1 steps, as in LDP-IDS. A user who first comes when the stream is under way acts as if
a uniform one of the w steps before had been its last: users would otherwise be the likelier to report the newer they
are, and a release would reflect newcomers more than all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.estimate import Estimate
from ldp.streams.ledger import UserLedgers
from ldp.streams.method import Phase, StreamMethod
from ldp.streams.synthetic import Step
from link.errors import ConfigurationError, InputDataError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What a simulation yields, for T steps and d values.

    Attributes:
        releases: Shape (T, d): released frequencies.
        truths: Shape (T, d): true ones, among the users who are there.
        variances: Shape (T, d): as released with them.
        fresh: Shape (T,): whether a step published anew.
        reports: Shape (T,): reports per user who is there.
        peak: The most that any user spent within any w consecutive steps.
    """

    releases: Floats
    truths: Floats
    variances: Floats
    fresh: NDArray[np.bool_]
    reports: Floats
    peak: Fraction

    @property
    def mse(self) -> float:
        """Mean squared error, over steps and values."""
        return float(np.square(self.releases - self.truths).mean())

    def mre(self, least: float = 0.001) -> float:
        """Mean relative error: |release − truth| / max(truth, least), mean over steps and values.

        Raises:
            ConfigurationError: `least` is not positive.
        """
        if not least > 0:
            raise ConfigurationError(f"errors are relative to a positive share at least, not to {least!r}")
        return float((np.abs(self.releases - self.truths) / np.maximum(self.truths, least)).mean())


def simulate(method: StreamMethod, stream: Iterable[Step], users: int, rng: Randomness | None = None) -> Run:
    """Runs a method, from its present state, on a stream.

    Args:
        method: At its first step, or at a later one with users who have not reported to it before.
        stream: One step or more, each with one user or more.
        users: How many users come at all; they are numbered from 0.
        rng: The source of randomness; by default the operating system's.

    Raises:
        InputDataError: A value is outside the domain, a user has no number below `users` or comes twice in one step,
            or there is no step.
        PolicyDenied: A user's window would exceed ε. No method does that.
    """
    crowd = _Crowd(method, users, Randomness.from_os() if rng is None else rng)
    d = method.domain.size
    rows: list[tuple[Floats, Floats, Floats, bool, float]] = []
    for t, step in enumerate(stream):
        values = method.domain.codes(step.values)
        present = crowd.enter(t, step, len(values))
        phase, reports = method.plan(len(values)), 0
        while phase is not None:
            asked = crowd.asked(t, present, phase)
            reports += len(asked)
            phase = method.observe(crowd.estimate(values[asked], phase))
        release = method.release
        truth = np.bincount(values, minlength=d) / len(values)
        rows.append((release.frequencies, truth, release.variances, release.fresh, reports / len(values)))
    if not rows:
        raise InputDataError("the stream has no step to run a method on")
    releases, truths, variances, fresh, asked_for = (np.array(column) for column in zip(*rows, strict=True))
    return Run(releases, truths, variances, fresh, asked_for, crowd.ledgers.peak)


class _Crowd:
    """All users: who may be asked, and what each has spent."""

    def __init__(self, method: StreamMethod, users: int, rng: Randomness) -> None:
        self.ledgers = UserLedgers(users, method.w, method.epsilon)
        self._method, self._rng = method, rng
        self._known = np.zeros(users, dtype=np.bool_)
        self._free = np.zeros(users, dtype=np.int64)  # the first step at which a user may report, if users are divided
        self._everybody = np.arange(users)

    def enter(self, t: int, step: Step, n: int) -> NDArray[np.int64]:
        """The numbers of those who are there."""
        present = self._everybody[:n] if step.users is None else step.users
        if not n or len(present) != n or present.min() < 0 or present.max() >= len(self._known):
            most = len(self._known) - 1
            raise InputDataError(f"step {t} needs one user or more, each with a value and a number from 0 to {most}")
        if step.users is not None and len(np.unique(present)) != n:
            raise InputDataError(f"a user comes twice at step {t}; each has one value at a step")
        new = present[~self._known[present]]
        if t and new.size:
            self._free[new] = t + self._rng.integers(self._method.w, new.size).astype(np.int64)
            # Steps before the first cannot have been anybody's last.
            self._free[new[self._free[new] < self._method.w]] = t
        self._known[new] = True
        return present

    def asked(self, t: int, present: NDArray[np.int64], phase: Phase) -> NDArray[np.int64]:
        """The places, among those who are there, of the users who report."""
        if phase.share == 1:
            asked = np.arange(len(present))
        else:
            free = np.flatnonzero(self._free[present] <= t)
            wanted = int(phase.share * len(present))
            asked = free[self._rng.permutation(free.size)[:wanted]]
        self._free[present[asked]] = t + self._method.w
        self.ledgers.spend(t, present[asked], phase.epsilon)
        return asked

    def estimate(self, values: NDArray[np.int64], phase: Phase) -> Estimate | None:
        """What is estimated from their reports."""
        if not values.size:
            return None
        mechanism = self._method.mechanism(phase.epsilon)
        return Aggregator(mechanism).add(mechanism.privatise(values, self._rng)).estimate()
