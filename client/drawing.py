"""One report, drawn: with fresh noise, or from an answer that is kept for ever."""

from __future__ import annotations

import hashlib
import struct
from fractions import Fraction
from typing import Any, Final, NamedTuple

import numpy as np

from crypto.primitives.randomness import Randomness
from ldp.longitudinal.memoised import Memo, MemoisedMechanism
from ldp.mechanism import Mechanism
from ldp.rappor.client import RapporClient
from ldp.rappor.mechanism import Rappor
from ldp.reports import Reports
from ldp.streams.sliding_memo import SlidingMemo
from link.errors import InputDataError, PolicyDenied

_LENGTH: Final = struct.Struct("<L")
_KNOWN_BYTES: Final = 16


class Turn(NamedTuple):
    """When an answer to a new value may be drawn.

    Attributes:
        steps: How many steps share a budget.
        epsilon: What new answers may spend within them.
        step: The present one.
        anew: Whether the device's own limits allow a new answer.
    """

    steps: int
    epsilon: Fraction
    step: int
    anew: bool = True


class Drawn(NamedTuple):
    """A report before it is decided whether it is made.

    Attributes:
        report: A batch of one.
        charge: What it adds to all that the device has revealed.
        memo: The kept answers with those that are new; None where nothing is kept.
    """

    report: Reports
    charge: Fraction
    memo: bytes | None


def drawn(
    mechanism: Mechanism[Any], value: Any, memo: bytes | None, rng: Randomness, turn: Turn | None = None
) -> Drawn:
    """Perturbs a value. Nothing is spent before the result is kept, since nobody sees what is thrown away.

    A kept answer is charged with ε∞ when it is drawn, and never again: all reports that repeat it reveal no more.

    Args:
        mechanism: By which.
        value: The device's.
        memo: The answers that are kept; None before the first.
        rng: Of the operating system.
        turn: Where answers to new values wait: who may not have one reports the last value once more.

    Raises:
        InputDataError: The value is none of the domain's, or the kept answers are damaged.
        PolicyDenied: A new answer must wait, and there is none before it; or the step is one of the past.
    """
    if isinstance(mechanism, Rappor):
        return _of_rappor(mechanism, value, memo, rng)
    if isinstance(mechanism, MemoisedMechanism):
        kept: Memo | SlidingMemo
        if turn is not None:
            kept = sliding = slid(mechanism, memo, turn, rng)
            before = len(sliding.memo)
            report = sliding.report(turn.step, value, rng, anew=turn.anew)
            new = len(sliding.memo) - before
        else:
            kept = Memo.drawn(mechanism, rng) if memo is None else Memo.from_bytes(memo, mechanism)
            before = len(kept)
            report = kept.report(value, rng)
            new = len(kept) - before
        return Drawn(report, new * Fraction(mechanism.exact_permanent_epsilon), kept.to_bytes())
    return Drawn(mechanism.privatise([value], rng), Fraction(mechanism.epsilon), None)


def slid(
    mechanism: MemoisedMechanism[Any], memo: bytes | None, turn: Turn, rng: Randomness | None = None
) -> SlidingMemo:
    """The kept answers of a device that lets new ones wait, with their ledger.

    Raises:
        InputDataError: They are damaged.
        PolicyDenied: The step is one before the last new answer.
    """
    if memo is None:
        return SlidingMemo.drawn(mechanism, turn.steps, turn.epsilon, rng)
    found = SlidingMemo.from_bytes(memo, mechanism)
    try:
        found.ledger.left(turn.step)
    except InputDataError as error:
        raise PolicyDenied(error.message) from None
    return found


def _of_rappor(mechanism: Rappor, value: Any, memo: bytes | None, rng: Randomness) -> Drawn:
    """RAPPOR's permanent answers are functions of a secret; what is kept beside it is which of them were used."""
    if not isinstance(value, str):
        raise InputDataError(f"RAPPOR reports texts, not a value of type {type(value).__name__}")
    if memo is None:
        user, known = RapporClient.drawn(mechanism, rng), b""
    else:
        (size,) = _LENGTH.unpack_from(memo)
        user = RapporClient.from_bytes(memo[_LENGTH.size : _LENGTH.size + size], mechanism)
        known = memo[_LENGTH.size + size :]
    filters = mechanism.filters.rows([value], np.array([user.cohort]))
    key = hashlib.sha256(filters.tobytes()).digest()[:_KNOWN_BYTES]
    new = key not in {known[at : at + _KNOWN_BYTES] for at in range(0, len(known), _KNOWN_BYTES)}
    secret = user.to_bytes()
    kept = b"".join([_LENGTH.pack(len(secret)), secret, known, key if new else b""])
    return Drawn(user.report(value, rng), new * Fraction(mechanism.permanent_epsilon), kept)
