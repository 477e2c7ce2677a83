"""Parties that deviate with a plan: in several frames and steps, by what they see, and from other sessions."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import pytest
from google.protobuf import symbol_database
from google.protobuf.message import Message

from crypto.primitives.shares.replicated_bits import ReplicatedBits
from protos.v1.link_pb2 import Frame, Opening

Bodies = Mapping[tuple[str, str, str], Sequence[bytes]]
"""By sender, receiver and type, bodies of another session."""


class Recorded:
    """All frames of a run, by what they are."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []

    def __call__(self, frame: Frame) -> None:
        self.frames.append(frame)

    def bodies(self) -> Bodies:
        """What replays are made of."""
        found = defaultdict(list)
        for frame in self.frames:
            if frame.lane.startswith("/"):
                found[frame.sender, frame.receiver, frame.type].append(frame.body)
        return found

    def kinds(self, senders: Collection[str]) -> list[str]:
        """Types of what some parties have sent on lanes."""
        return sorted({f.type for f in self.frames if f.sender in senders and f.lane.startswith("/")})


class Scheming:
    """Alters what deviating parties send, by one plan that a seed picks.

    A plan names which frames: those of a type, of a lane's end, to one receiver, some of all, or those after a frame
    that came; and what becomes of them: the same difference in all, another session's bodies, what a peer has sent,
    what this party has sent elsewhere, other lengths, nothing at all, or twice the same.

    Attributes:
        altered: How many frames were.
    """

    WAYS: Final = ("difference", "foreign", "reflect", "elsewhere", "length", "mute", "twice", "end", "unknown field")

    def __init__(self, seed: int, deviating: Collection[str], clean: Recorded, foreign: Recorded) -> None:
        chance = self._random = random.Random(seed)
        self._deviating, self._foreign = deviating, foreign.bodies()
        own = [f for f in clean.frames if f.sender in deviating and f.lane.startswith("/")]
        self.way = chance.choice(self.WAYS)
        kind = chance.choice(clean.kinds(deviating))
        place = chance.choice([place for place, frame in enumerate(own) if frame.type == kind])
        sample = own[place]
        self._kind = kind if chance.random() < 0.8 else ""
        self._receiver = sample.receiver if chance.random() < 0.4 else ""
        self._lane = sample.lane if chance.random() < 0.3 else ""
        self._share = chance.choice((1.0, 1.0, 0.3))
        self._after = place if chance.random() < 0.3 or self.way in ("mute", "twice") else 0
        self._place, self._bits = chance.random(), 1 << chance.randrange(8)
        self._heard: dict[str, list[bytes]] = defaultdict(list)
        self._said: dict[str, list[bytes]] = defaultdict(list)
        self._watched = chance.random() < 0.3  # acts by a bit of what came last
        self._last = 0
        self._sent = self.altered = 0

    def observe(self, frame: Frame) -> None:
        """What comes to the deviating parties."""
        if frame.receiver in self._deviating and frame.sender not in self._deviating:
            self._heard[frame.type].append(frame.body)
            self._last = frame.body[-1] if frame.body else 0

    def __call__(self, frame: Frame) -> list[Frame]:
        self._sent += 1
        before = self._said[frame.type]
        before.append(frame.body)
        if not self._is_meant(frame):
            return [frame]
        changed = Frame()
        changed.CopyFrom(frame)
        chance, way = self._random, self.way
        if way == "mute":
            self.altered += 1
            return []
        if way == "twice":
            self.altered += 1
            return [frame, frame]
        if way == "end":
            changed.last = not frame.last
        elif way == "foreign":
            bodies = self._foreign.get((frame.sender, frame.receiver, frame.type), ())
            fitting = [each for each in bodies if len(each) == len(frame.body)]
            changed.body = chance.choice(fitting) if fitting else frame.body
        elif way in ("reflect", "elsewhere"):
            bodies = self._heard[frame.type] if way == "reflect" else before
            fitting = [each for each in bodies if len(each) == len(frame.body)]
            changed.body = fitting[-1] if way == "reflect" and fitting else chance.choice(fitting or [frame.body])
        elif way == "unknown field":
            changed.body = frame.body + b"\xfa\x7f\x01x"
        else:
            changed.body = self._changed(frame)
        self.altered += changed != frame
        return [changed]

    def _is_meant(self, frame: Frame) -> bool:
        if self._sent <= self._after or (self._watched and not self._last & 1):
            return False
        fits = self._kind in ("", frame.type) and self._receiver in ("", frame.receiver)
        return fits and self._lane in ("", frame.lane) and self._random.random() < self._share

    def _changed(self, frame: Frame) -> bytes:
        message: Message = symbol_database.Default().GetSymbol(frame.type)()
        message.ParseFromString(frame.body)
        fields = [field for field, value in message.ListFields() if isinstance(value, bytes) and value]
        numbers = [field for field, value in message.ListFields() if isinstance(value, int)]
        if numbers and (not fields or self._random.random() < 0.15):
            field = numbers[0]
            setattr(message, field.name, (getattr(message, field.name) + 1) % 2**31)
        elif fields:
            name = fields[int(self._place * len(fields))].name
            octets = bytearray(getattr(message, name))
            if self.way == "length":
                octets = octets + octets[-1:] if self._bits < 16 else octets[: len(octets) // 2]
            else:
                octets[int(self._place * len(octets))] ^= self._bits
            setattr(message, name, bytes(octets))
        else:
            return frame.body[:-1]
        return message.SerializeToString(deterministic=True)


_METHODS: Final = ("bits", "words", "within", "octets", "__xor__", "plus_public", "reshaped", "spread", "local_and")


@contextmanager
def other_shares(seed: int, cheats: Collection[str]) -> Iterator[list[int]]:
    """Parties that compute on other shares than they have from some point on, so that all they say later fits together.

    Yields:
        A list that is not empty once they have.
    """
    chance = random.Random(seed)
    method, skipped = chance.choice(_METHODS), int(chance.random() ** 3 * 100)
    part, often = chance.choice((0, 1, 2)), chance.random() < 0.2
    real: Callable[..., Any] = getattr(ReplicatedBits, method)
    calls: dict[str, int] = defaultdict(int)
    done: list[int] = []

    def lying(self: ReplicatedBits, *args: Any, **options: Any) -> Any:
        found = real(self, *args, **options)
        if self.holder not in cheats:
            return found
        calls[self.holder] += 1
        if calls[self.holder] <= skipped or (done and not often):
            return found
        planes = (found if isinstance(found, np.ndarray) else found.both).copy()
        if not planes.size:
            return found
        done.append(calls[self.holder])
        chosen = planes if planes.ndim < 3 or part == 2 else planes[part]
        flat = chosen.reshape(-1)
        if chance.random() < 0.2:  # another order
            chance.shuffle(flat)
        else:
            flat[chance.randrange(flat.size)] ^= 1 << chance.randrange(8)
        return planes if isinstance(found, np.ndarray) else ReplicatedBits(*planes, self.holder, self.holders)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReplicatedBits, method, lying)
        yield done


COUNTED: Final = ("rows", "frequent", "supports")
"""Labels of what is opened of counts, which is the same in every session; what else is opened is under its keys."""


def opened_by_honest(
    frames: Collection[Frame], holders: Sequence[str], deviating: Collection[str]
) -> dict[tuple[str, str], bytes]:
    """By lane and label, what honest holders have opened of counts, where these are all components."""
    parts: dict[tuple[str, str], dict[int, bytes]] = defaultdict(dict)
    for frame in frames:
        if frame.type != Opening.DESCRIPTOR.full_name or frame.sender not in holders or frame.sender in deviating:
            continue
        message, place = Opening.FromString(frame.body), holders.index(frame.sender)
        if frame.receiver in holders and message.label in COUNTED:
            part = place if holders.index(frame.receiver) == (place + 1) % 3 else (place + 1) % 3
            parts[frame.lane, message.label][part] = message.values
    found = {}
    for key, given in parts.items():
        if len(given) < 3 or len({len(each) for each in given.values()}) > 1:
            continue
        if key[1] == "rows":
            found[key] = sum((np.frombuffer(each, np.uint64) for each in given.values()), np.uint64(0)).tobytes()
        else:
            found[key] = np.bitwise_xor.reduce([np.frombuffer(each, np.uint8) for each in given.values()]).tobytes()
    return found
