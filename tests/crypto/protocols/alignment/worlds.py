"""Rows of parties that align them, and what of their messages is seen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from crypto.protocols.alignment import matches
from protos.v1 import alignment_pb2, oblivious_prf_pb2, oblivious_transfer_pb2, shares_pb2
from protos.v1.link_pb2 import Frame
from tests.crypto.protocols.two_party_world import assert_alike
from tests.faulty_world import Rewrite
from tests.world import NAMES

Held = Mapping[str, Sequence[bytes]]
MESSAGES = (alignment_pb2, oblivious_prf_pb2, oblivious_transfer_pb2, shares_pb2)
UNIFORM = (
    "CodeColumns",
    "ProgrammedRows",
    "ExtensionRows",
    "ExtensionCheck",
    "EncryptedMessages",
    "LeafTables",
    "MaskedOperands",
)


def sample(name: str, size: int, first: int = 0) -> list[bytes]:
    return [b"%s %d" % (name.encode(), number) for number in range(first, first + size)]


identifiers = st.text(max_size=8).map(str.encode) | st.binary(max_size=20) | st.sampled_from([b"", b"\0", b"\0\0"])


@st.composite
def parties_and_rows(draw: st.DrawFn, fewest: int = 2, most: int = 5, rows: int = 12) -> dict[str, list[bytes]]:
    universe = draw(st.lists(identifiers, max_size=rows, unique=True))
    some = st.lists(st.sampled_from(universe), max_size=rows, unique=True) if universe else st.just([])
    everywhere = draw(some)
    return {name: list(dict.fromkeys([*draw(some), *everywhere])) for name in NAMES[: draw(st.integers(fewest, most))]}


COMMON = sample("common", 5)
HONEST = (  # what the honest party holds beside what the others hold; what all hold is the same
    [*COMMON, *sample("h", 4)],
    [*sample("other", 40), *COMMON],
    [*COMMON, *sample("first", 9)],
)


def world(parties: int, honest: int, own: Sequence[bytes]) -> dict[str, list[bytes]]:
    """One party holds this; of the others the first holds more than the rest."""
    held = {name: [*COMMON, *sample("rest", 6)] for name in NAMES[:parties]}
    held[NAMES[not honest]] += sample("first", 9)
    return held | {NAMES[honest]: list(own)}


def collected(patch: pytest.MonkeyPatch) -> list[Any]:
    """What parties collect from now on at their own points, of each other party in turn."""
    found, collect = list[Any](), matches.collect

    async def recorded(*args: Any) -> None:
        await collect(*args)
        came = args[-1]
        assert len(came) == 1  # so that it is in the order of rows
        found.extend(came.read(0)["values"].swapaxes(0, 1))

    patch.setattr(matches, "collect", recorded)
    return found


def is_fair(bits: Any) -> bool:
    """Fair bits are not with a chance of 10^-8."""
    return bool(abs(int(bits.sum(dtype=np.int64)) - bits.size / 2) <= np.sqrt(bits.size / 2 * np.log(2 / 1e-8)))


def assert_sends_alike(sender: str, worlds: Iterable[Sequence[Frame]]) -> None:
    """In all worlds the frames have one shape, and what a party sends is uniform.

    The last table of a comparison is but for what fills up its word.
    """
    shapes, before = set(), dict[str, Any]()
    for frames in worlds:
        found = defaultdict[str, list[bytes]](list)
        for frame in frames:
            if frame.sender == sender and (kind := kind_of(frame)) in UNIFORM:
                found[kind].append(message_type(kind).FromString(frame.body).data)
        shapes.add(tuple(sorted((f.sender, f.receiver, f.lane, f.seq, f.type, f.last, len(f.body)) for f in frames)))
        assert len(found) >= 3
        for kind, parts in found.items():
            data = np.frombuffer(b"".join(parts), np.uint8)
            assert_alike(data, before.setdefault(kind, data))
            if kind != "LeafTables":
                columns = np.unpackbits(data[: len(data) // 8 * 8].reshape(-1, 8), axis=1).T
                assert all(map(is_fair, [columns, *columns]))
    assert len(shapes) == 1


def changed(kind: str, sender: str, receiver: str, change: Callable[[bytes], bytes]) -> Rewrite:
    """Frames of a kind from one to the other have other data."""

    def rewrite(frame: Frame) -> Frame:
        if kind_of(frame) != kind or (frame.sender, frame.receiver) != (sender, receiver):
            return frame
        message = message_type(kind).FromString(frame.body)
        message.data = change(message.data)
        copy = Frame()
        copy.CopyFrom(frame)
        copy.body = message.SerializeToString()
        return copy

    return rewrite


def kind_of(frame: Frame) -> str:
    return frame.type.rpartition(".")[2]


def message_type(kind: str) -> Any:
    (found,) = (getattr(module, kind) for module in MESSAGES if hasattr(module, kind))
    return found
