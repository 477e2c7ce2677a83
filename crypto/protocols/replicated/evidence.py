"""What a party's own signed words prove against it: the rules that no party breaks which follows the protocol.

    equivocation   it has said different things, on one lane, of what is the same to all: commitments to the components
                   of its numbers
    dealing        it has dealt another component of its numbers than it has committed to
    malformed      it has sent a message that has not the form of its type

Each is judged by words of one party alone, so nobody else, and no number of others together, can bring about evidence
against a party that follows the protocol: it signs a lane of a session once, and never what breaks a rule.

Other violations are not here, since which of two parties deviates does not follow from the words of one: components
that are opened or checked and of which two holders say different things, an AND that is wrong, a count above its
dealer's number of rows.

What words show: commitments, or what opens the commitment to one component of the accused's own numbers. That
component alone is uniform.

Source: signed messages as evidence, as in Aumann and Lindell, "Security against covert adversaries", Journal of
Cryptology 23, 2010, and Asharov and Orlandi, "Calling out cheaters: covert security with public verifiability",
ASIACRYPT 2012.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from google.protobuf.message import DecodeError, Message

from crypto.primitives.hashing import encode_labels
from crypto.primitives.randomness import KEY_BYTES
from link.transcripts.vouching import MALFORMED
from link.transcripts.words import Shown, Words
from protos.v1.verified_pb2 import DealtBits, DealtCommitments, DealtKey

COMMITMENT_BYTES: Final = 32
EQUIVOCATION: Final = "equivocation"
DEALING: Final = "dealing"


def commitment_of(key: bytes, bits: Iterable[Any]) -> bytes:
    """The commitment to a component: to its key, or to the random number that hides it and its bits, in pieces."""
    digest = hashlib.sha256(encode_labels("component", key))
    for piece in bits:
        digest.update(np.ascontiguousarray(piece).data if isinstance(piece, np.ndarray) else piece)
    return digest.digest()


def commitment_in(commitments: bytes, part: int) -> bytes:
    """One of the commitments to three components."""
    return commitments[part * COMMITMENT_BYTES : (part + 1) * COMMITMENT_BYTES]


def check_form(message: Message) -> None:
    """Holds a message to the form of its type, where that is the same in every job.

    Raises:
        ValueError: It is another.
    """
    match message:
        case DealtCommitments():
            _check_size("commitments to three components", 3 * COMMITMENT_BYTES, message.commitments)
            _check_component(message.in_full)
        case DealtKey():
            _check_size("a key", KEY_BYTES, message.key)
            _check_component(message.component)


def judged(rule: str, words: Sequence[Words]) -> str:
    """What the words of a party convict it of.

    Args:
        rule: The name of the rule.
        words: All of one party in one session, signed by it: that the caller has checked.

    Returns:
        What it did, in words.

    Raises:
        ValueError: They do not show it; why not.
    """
    if rule not in _RULES:
        raise ValueError(f"there is no rule '{rule[:40]}'")
    return _RULES[rule](words)


def _equivocation(words: Sequence[Words]) -> str:
    one, other = _of(words, 2)
    _check_places(one, {0})
    _check_places(other, {0})
    first, second = one.shown(0), other.shown(0)
    if one.origin.lane != other.origin.lane:
        raise ValueError("the words are of two lanes")
    if first.type != second.type or first.type not in _SAME_TO_ALL:
        raise ValueError("the words are none that have to be the same to all")
    if first.body == second.body:
        raise ValueError("the words are the same")
    return (
        f"said different things to {one.origin.receiver} and to {other.origin.receiver} of {_SAME_TO_ALL[first.type]}"
    )


def _dealing(words: Sequence[Words]) -> str:
    (of,) = _of(words, 1)
    place = 2 if 2 in _places(of) else 1
    commitments, opening = _read(of.shown(0), DealtCommitments), _read(of.shown(place), DealtKey)
    in_full = range(3, len(of.frames)) if opening.component == commitments.in_full else range(0)
    _check_places(of, {0, place, *in_full})
    bits = [_read(of.shown(each), DealtBits).data for each in in_full]
    if commitment_of(opening.key, bits) == commitment_in(commitments.commitments, opening.component):
        raise ValueError("the component is what was committed to")
    return f"dealt another component to {of.origin.receiver} than it had committed to"


def _malformed(words: Sequence[Words]) -> str:
    (of,) = _of(words, 1)
    place = min(_places(of), default=0)
    _check_places(of, {place})
    shown = of.shown(place)
    kind = _FORMS.get(shown.type)
    if kind is None:
        raise ValueError("the form of the message follows from the job, or is not known")
    try:
        _read(shown, kind)
    except ValueError as error:
        return f"sent a wrong {kind.DESCRIPTOR.name} to {of.origin.receiver}: {error}"
    raise ValueError("the message has the form of its type")


def _of(words: Sequence[Words], number: int) -> Sequence[Words]:
    if len(words) != number:
        raise ValueError(f"the rule is about {number} of its words, not {len(words)}")
    return words


def _places(of: Words) -> set[int]:
    return {place for place, frame in enumerate(of.frames) if isinstance(frame, Shown)}


def _check_places(of: Words, places: set[int]) -> None:
    if _places(of) != places:
        raise ValueError("messages are shown that prove nothing, or are missing")


def _read(frame: Shown, kind: type[Any]) -> Any:
    if frame.type != kind.DESCRIPTOR.full_name:
        raise ValueError(f"a message is no {kind.DESCRIPTOR.name}")
    message = kind()
    try:
        message.ParseFromString(frame.body)
    except DecodeError:
        raise ValueError("it cannot be read") from None
    check_form(message)
    return message


def _check_size(what: str, size: int, value: bytes) -> None:
    if len(value) != size:
        raise ValueError(f"{what} has {size} bytes, not {len(value)}")


def _check_component(component: int) -> None:
    if component > 2:
        raise ValueError(f"there is no component {component}")


_SAME_TO_ALL: Final = {
    DealtCommitments.DESCRIPTOR.full_name: "what it deals",
}
_FORMS: Final[Mapping[str, type[Message]]] = {kind.DESCRIPTOR.full_name: kind for kind in (DealtCommitments, DealtKey)}
_RULES: Final[Mapping[str, Callable[[Sequence[Words]], str]]] = {
    EQUIVOCATION: _equivocation,
    DEALING: _dealing,
    MALFORMED: _malformed,
}
RULES: Final = tuple(_RULES)
