"""When the rounds of a collection begin and end, and what the end of one decides about the next.

Everything here is a function of the specification, the state that the last round left, and the clock; nothing is read
or written. A state goes to the disk together with the round that it opened or ended, so that no round is ever opened
twice, whatever happens to the node; rounds that fell into a time in which it did not run are left out.

    once        one round, from the creation of the collection to its closing
    windows     round n from start + n·length on; it takes reports for its grace longer, while the next one is open;
                with a series of budgets, each has a mechanism of its own
    search      rounds of one length, one after the other; g of them are one search by prefixes, and one period
    continual   a step in each window, which asks in no, one or two rounds; of two, each has half of the window

Windows of the last two kinds that the node misses by more than a quarter of their length are left out as a whole.
"""

from __future__ import annotations

import base64
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from jobs.collections.mechanism import budgets_of, mechanism_of_round, search_of, stream_of
from jobs.collections.spec import CollectionSpec
from jobs.collections.tables import WindowSection
from ldp.aggregator import Aggregator
from ldp.domain import Domain
from ldp.heavy_hitters.prefix_extending import PrefixHashing
from ldp.mechanism import Mechanism
from ldp.streams.method import Phase, Release
from ldp.streams.methods import restored
from link.errors import InputDataError
from link.files.json_text import read_json

Purpose = Literal["publication", "dissimilarity", "prefixes"]

LATE: Final = 0.25  # of a window: by so much a round that decides what follows may begin late
USERS: Final = 1000  # clients that are assumed until reports show it

_ADAPTIVE: Final = ("lbd", "lba", "lpd", "lpa")  # which may ask twice in a step


@dataclass(frozen=True, slots=True)
class Plan:
    """A round that is to be opened.

    Attributes:
        number: From 0 on; some may be left out.
        period: In which a client takes part once at most.
        step: Of the window ledger.
        opens: Unix seconds.
        closes: The same, grace included; 0 where only closing the collection ends it.
        mechanism: By which it takes reports.
        purpose: What they are for.
        share: How probably a client that may take part does; empty: always.
        state: Of the schedule, once the round is open.
    """

    number: int
    period: int
    step: int
    opens: float
    closes: float
    mechanism: Mechanism[Any]
    purpose: Purpose
    share: str
    state: bytes


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the end of a round leaves.

    Attributes:
        state: Of the schedule.
        result: What is released, where that is more than the estimates of the round itself; see `release_of`.
        period_over: Whether no round of the period follows.
    """

    state: bytes
    result: bytes
    period_over: bool


class Schedule(ABC):
    """The rounds of one collection.

    Args:
        spec: The collection's.
        domain: Its values, where they are known.
        created: Unix seconds.
    """

    def __init__(self, spec: CollectionSpec, domain: Domain | None, created: float) -> None:
        self.spec, self.domain, self.created = spec, domain, created

    @property
    def start(self) -> float:
        """When the first round begins."""
        window = self.spec.window
        return self.created if window is None or window.start is None else window.start.timestamp()

    @property
    @abstractmethod
    def initial(self) -> bytes:
        """The state before the first round."""

    @abstractmethod
    def begin(self, state: bytes, is_open: bool, now: float) -> Plan | None:
        """The next round that is to be open now; None where there is none, or none yet.

        Args:
            state: As the last round left it.
            is_open: Whether there is an open round.
            now: Unix seconds.
        """

    @abstractmethod
    def end(self, state: bytes, number: int, aggregator: Aggregator[Any]) -> Outcome:
        """What follows from an open round that ends.

        Args:
            state: As the last round left it.
            number: The round.
            aggregator: All reports of the round.
        """

    @abstractmethod
    def wake(self, state: bytes, closes: Sequence[float], now: float) -> float:
        """When something is to be done next, if nothing is left to do now; infinite where no time changes anything.

        Args:
            state: As the last round left it.
            closes: Of the open rounds.
            now: Unix seconds.
        """

    @abstractmethod
    def is_over(self, state: bytes, now: float) -> bool:
        """Whether no round begins any more."""

    def next_number(self, state: bytes) -> int:
        """The number from which on rounds have not been opened yet."""
        return next_round(state)


def next_round(state: bytes) -> int:
    """The number from which on rounds have not been opened yet, by the state of any schedule."""
    number: int = read_state(state)["next"]
    return number


def schedule_of(spec: CollectionSpec, domain: Domain | None, created: float) -> Schedule:
    """The schedule of a collection."""
    if spec.window is None:
        return Once(spec, domain, created)
    if spec.continual is not None:
        return Continual(spec, domain, created)
    return (Search if spec.collection.mechanism == "prefix-extending" else Windows)(spec, domain, created)


class Once(Schedule):
    """One round without an end of its own."""

    @property
    def initial(self) -> bytes:
        """Nothing has been opened."""
        return _written(next=0)

    def begin(self, state: bytes, is_open: bool, now: float) -> Plan | None:  # noqa: ARG002 (its time is always)
        """The round, unless it was opened."""
        if self.next_number(state):
            return None
        mechanism = mechanism_of_round(self.spec, self.domain)
        return Plan(0, 0, 0, self.created, 0.0, mechanism, "publication", "", _written(next=1))

    def end(self, state: bytes, number: int, aggregator: Aggregator[Any]) -> Outcome:  # noqa: ARG002
        """Nothing follows."""
        return Outcome(state, b"", period_over=True)

    def wake(self, state: bytes, closes: Sequence[float], now: float) -> float:  # noqa: ARG002
        """No time ends the round."""
        return math.inf

    def is_over(self, state: bytes, now: float) -> bool:  # noqa: ARG002
        """Never: only closing the collection ends it."""
        return False


class _Windowed(Schedule):
    """What all schedules with windows share: window n begins at start + n·length."""

    @property
    def window(self) -> WindowSection:
        """The table of the specification."""
        assert self.spec.window is not None
        return self.spec.window

    def opens(self, number: int) -> float:
        """When a window begins."""
        return self.start + number * self.window.length_s

    def current(self, now: float) -> int:
        """The window of a time; below 0 before the first."""
        number = math.floor((now - self.start) / self.window.length_s)
        # The quotient of floats may round; what counts is `opens`.
        while self.opens(number) > now:
            number -= 1
        while self.opens(number + 1) <= now:
            number += 1
        return number

    def _allowed(self, periods: int) -> bool:
        return self.window.periods is None or periods < self.window.periods


class Windows(_Windowed):
    """Rounds by the clock alone, which overlap by their grace; a series of budgets ends with its last term."""

    def __init__(self, spec: CollectionSpec, domain: Domain | None, created: float) -> None:
        super().__init__(spec, domain, created)
        series = budgets_of(spec)
        self._most = math.inf if series is None else len(series)

    @property
    def initial(self) -> bytes:
        """Nothing has been opened."""
        return _written(next=0)

    def begin(self, state: bytes, is_open: bool, now: float) -> Plan | None:  # noqa: ARG002 (they overlap)
        """The earliest window that takes reports now and was not opened, be it in its grace."""
        number = self._first(state, now)
        if self.opens(number) > now or not self._allowed(number):
            return None
        mechanism = mechanism_of_round(self.spec, self.domain, number)
        times = self.opens(number), self._closes(number)
        return Plan(number, number, number, *times, mechanism, "publication", "", _written(next=number + 1))

    def end(self, state: bytes, number: int, aggregator: Aggregator[Any]) -> Outcome:  # noqa: ARG002
        """Nothing follows from it."""
        return Outcome(state, b"", period_over=True)

    def wake(self, state: bytes, closes: Sequence[float], now: float) -> float:
        """When a round ends, or the next begins."""
        number = self._first(state, now)
        begins = self.opens(number) if self._allowed(number) else math.inf
        return min([*closes, begins])

    def is_over(self, state: bytes, now: float) -> bool:
        """Whether all of a limited number of windows have begun, or were missed."""
        return not self._allowed(self._first(state, now))

    def _first(self, state: bytes, now: float) -> int:
        """The earliest window that was not opened and still takes reports now, or will."""
        number = max(self.next_number(state), self.current(now - self.window.length_s - self.window.grace_s), 0)
        while self._closes(number) <= now:
            number += 1
        return number

    def _closes(self, number: int) -> float:
        return self.opens(number + 1) + self.window.grace_s

    def _allowed(self, periods: int) -> bool:
        return periods < self._most and super()._allowed(periods)


class _OneByOne(_Windowed):
    """Rounds of which each must have ended before the next can be made."""

    def begin(self, state: bytes, is_open: bool, now: float) -> Plan | None:
        """The next round, where its window has just begun."""
        if is_open:
            return None
        return self._begin(read_state(state), self.current(now), now)

    def wake(self, state: bytes, closes: Sequence[float], now: float) -> float:
        """When the open round ends, or the next window begins."""
        return min(closes) if closes else self.opens(max(read_state(state)["window"], self.current(now), -1) + 1)

    @abstractmethod
    def _begin(self, found: dict[str, Any], current: int, now: float) -> Plan | None:
        """As `begin`, where no round is open."""

    def _has_begun(self, found: dict[str, Any], current: int, now: float) -> bool:
        late = now - self.opens(current)
        return current >= 0 and current > found["window"] and late <= LATE * self.window.length_s


class Search(_OneByOne):
    """Searches for heavy hitters: each round is about continuations of the prefixes that the one before found."""

    def __init__(self, spec: CollectionSpec, domain: Domain | None, created: float) -> None:
        super().__init__(spec, domain, created)
        self.plan = search_of(spec)

    @property
    def initial(self) -> bytes:
        """Before the first round, only the empty prefix is kept."""
        return _written(next=0, window=-1, kept=["0"])

    def _begin(self, found: dict[str, Any], current: int, now: float) -> Plan | None:
        number = found["next"]
        period, which = divmod(number, self.plan.groups)
        if not self._has_begun(found, current, now) or not self._allowed(period):
            return None
        oracle = self.plan.oracle(which, tuple(map(int, found["kept"])))
        state = _written(next=number + 1, window=current, kept=found["kept"])
        return Plan(number, period, number, self.opens(current), self.opens(current + 1), oracle, "prefixes", "", state)

    def end(self, state: bytes, number: int, aggregator: Aggregator[Any]) -> Outcome:
        """Keeps the best prefixes; without a report there are none, and a new search begins in a new period."""
        found, oracle = read_state(state), aggregator.mechanism
        assert isinstance(oracle, PrefixHashing)
        period, which = divmod(number, self.plan.groups)
        last = which == self.plan.groups - 1
        kept = [0] if last or not len(aggregator) else self._kept(oracle, aggregator)
        if kept == [0]:
            found["next"] = (period + 1) * self.plan.groups
        found["kept"] = list(map(str, kept))
        return Outcome(_written(**found), b"", period_over=kept == [0])

    def is_over(self, state: bytes, now: float) -> bool:  # noqa: ARG002 (a search that was not begun is not missed)
        """Whether all of a limited number of searches are over."""
        return not self._allowed(read_state(state)["next"] // self.plan.groups)

    def _kept(self, oracle: PrefixHashing, aggregator: Aggregator[Any]) -> list[int]:
        best = oracle.best(aggregator.estimate(), self.plan.keep)
        return sorted(map(oracle.prefix, best))


class Continual(_OneByOne):
    """Continual release: a method of `ldp.streams` says at each step whom to ask, and whether to publish."""

    def __init__(self, spec: CollectionSpec, domain: Domain | None, created: float) -> None:
        super().__init__(spec, domain, created)
        assert spec.continual is not None
        self.section = spec.continual

    @property
    def initial(self) -> bytes:
        """The method before its first step."""
        assert self.domain is not None
        method = stream_of(self.spec, self.domain).to_bytes()
        return _state(_Stream(0, -1, -1, self.section.users or USERS, None, method))

    def _begin(self, found: dict[str, Any], current: int, now: float) -> Plan | None:
        stream = _stream(found)
        length = self.window.length_s
        if stream.phase is not None and current == stream.window:
            # The step wants to publish, and its window is not over.
            times = self.opens(current) + length / 2, self.opens(current + 1)
            return self._asked(stream, stream.phase, *times)
        if not self._has_begun(found, current, now):
            return None
        method = restored(stream.method)
        if stream.phase is not None:  # the window ended before anybody could be asked
            method.observe(None)
        missed = min(current - stream.window - 1, self.section.w) if stream.window >= 0 else 0
        for _ in range(missed):
            method.plan(0)
        phase = method.plan(stream.users)
        if phase is None:
            return None
        step = stream.step + missed + 1
        begun = replace(stream, window=current, step=step, method=method.to_bytes())
        until = self.opens(current + 1) - (length / 2 if self.section.method in _ADAPTIVE else 0)
        return self._asked(begun, phase, self.opens(current), until)

    def end(self, state: bytes, number: int, aggregator: Aggregator[Any]) -> Outcome:  # noqa: ARG002
        """The release of the step, or the phase of it that follows."""
        stream = _stream(read_state(state))
        method = restored(stream.method)
        users = stream.users
        if len(aggregator):
            assert stream.phase is not None
            users = max(1, round(len(aggregator) / stream.phase.share))
        phase = method.observe(aggregator.estimate() if len(aggregator) else None)
        result = b"" if phase is not None else packed_result(method.release)
        found = _state(replace(stream, users=users, phase=phase, method=method.to_bytes()))
        return Outcome(found, result, period_over=True)

    def is_over(self, state: bytes, now: float) -> bool:  # noqa: ARG002 (the specification sets no limit)
        """Never: only closing the collection ends it."""
        return False

    def _asked(self, stream: _Stream, phase: Phase, opens: float, closes: float) -> Plan:
        method = restored(stream.method)
        number, share = stream.next, "" if phase.chance == 1 else str(phase.chance)
        state = _state(replace(stream, next=number + 1, phase=phase))
        mechanism = method.mechanism(phase.epsilon)
        return Plan(number, number, stream.step, opens, closes, mechanism, phase.kind, share, state)


# -- states and results -----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Stream:
    """The state of continual release.

    Attributes:
        next: The number of the next round.
        window: The last window in which a step asked.
        step: Of that window.
        users: How many clients there are, as far as reports show.
        phase: What the method awaits an estimate of, be its round open or still to be opened.
        method: As its `to_bytes` wrote it.
    """

    next: int
    window: int
    step: int
    users: int
    phase: Phase | None
    method: bytes


def _state(stream: _Stream) -> bytes:
    phase = stream.phase
    return _written(
        next=stream.next,
        window=stream.window,
        step=stream.step,
        users=stream.users,
        phase=None if phase is None else [phase.kind, str(phase.epsilon), str(phase.share), str(phase.chance)],
        method=base64.b64encode(stream.method).decode(),
    )


def _stream(found: dict[str, Any]) -> _Stream:
    phase = None
    if found["phase"] is not None:
        kind, *amounts = found["phase"]
        phase = Phase(kind, *map(Fraction, amounts))
    method = base64.b64decode(found["method"])
    return _Stream(found["next"], found["window"], found["step"], found["users"], phase, method)


def _written(**content: object) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def read_state(state: bytes) -> dict[str, Any]:
    """The state of a schedule.

    Raises:
        InputDataError: The bytes are none.
    """
    try:
        found = read_json(state)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputDataError("these bytes are no state of a schedule of this version")
    return found


def packed_result(release: Release) -> bytes:
    """What the end of a round leaves of a release; `release_of` reads it."""
    head = {"step": release.step, "published": release.published, "reports": release.reports}
    parts = (part.astype("<f8").tobytes() for part in (release.frequencies, release.variances))
    return json.dumps(head).encode() + b"\n" + b"".join(parts)


def release_of(result: bytes) -> Release:
    """The release that the end of a round has left.

    Raises:
        InputDataError: The bytes are none.
    """
    head, newline, data = result.partition(b"\n")
    if not newline or len(data) % 16:
        raise InputDataError("these bytes are no release of this version")
    values: NDArray[np.float64] = np.frombuffer(data, "<f8").astype(np.float64)
    frequencies, variances = np.split(values, 2)
    try:
        found = read_json(head)
        return Release(found["step"], frequencies, variances, found["published"], found.get("reports", 0))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputDataError("these bytes are no release of this version") from None
