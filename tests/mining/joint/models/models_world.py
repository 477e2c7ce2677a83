"""Rows and columns of several parties, coded for joint models, and what their messages open."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from link.disclosure import Declared, kinds
from link.session import Session
from mining.joint.models.aligned import AlignedAttributes
from mining.models.attributes import Attribute, LabelledRows
from protos.v1 import common_pb2
from protos.v1.link_pb2 import Frame, Opening
from tests.world import run_parties

PARTIES = ("north", "south", "east", "west", "centre")


def run(
    data: Mapping[str, Any],
    part: Callable[[Session, Any], Awaitable[Any]],
    declared: Iterable[Declared],
    *,
    frames: list[Frame] | None = None,
    seed: int = 0,
    transport: Literal["memory", "grpc"] = "memory",
) -> dict[str, Any]:
    """Every party's outcome; each has its own data."""

    async def role(session: Session) -> Any:
        return await part(session.lane("task"), data[session.me])

    observe = (lambda frame: None) if frames is None else frames.append
    return run_parties(
        list(data), role, declared=declared, observe=observe, seed=seed, deadline_s=120, transport=transport
    )


def pooled(rows: Iterable[LabelledRows]) -> LabelledRows:
    every = list(rows)
    cells = zip(*(each.cells for each in every), strict=True)
    return LabelledRows(np.concatenate([each.classes for each in every]), tuple(map(np.concatenate, cells)))


def parted(rows: LabelledRows, bounds: Sequence[int], parties: Sequence[str]) -> dict[str, LabelledRows]:
    """By party consecutive rows, up to the bounds."""
    edges = [0, *bounds, rows.n_rows]
    return {
        party: LabelledRows(rows.classes[a:b], tuple(cells[a:b] for cells in rows.cells))
        for party, a, b in zip(parties, edges, edges[1:], strict=False)
    }


def taken(rows: LabelledRows, chosen: NDArray[Any]) -> LabelledRows:
    return LabelledRows(rows.classes[chosen], tuple(cells[chosen] for cells in rows.cells))


def aligned(
    rows: LabelledRows,
    attributes: Sequence[Attribute],
    holders: Sequence[str],
    parties: Sequence[str],
    presence: Mapping[str, NDArray[np.bool_]] | None = None,
) -> dict[str, AlignedAttributes]:
    """By party its columns.

    Args:
        rows: Over the common positions.
        attributes: The target, then the others.
        holders: Of each of these the party.
        parties: Of the job.
        presence: By party where it has rows; everywhere by default.
    """
    columns = [rows.classes, *rows.cells]
    return {
        party: AlignedAttributes(
            {each.name: column for each, column, who in zip(attributes, columns, holders, strict=True) if who == party},
            rows.n_rows,
            None if presence is None else presence[party],
        )
        for party in parties
    }


@st.composite
def bounds(draw: st.DrawFn, n_rows: int) -> tuple[list[int], tuple[str, ...]]:
    """How rows are divided among two to five parties, some of which may have none."""
    parties = PARTIES[: draw(st.integers(2, 5))]
    cuts = draw(st.lists(st.integers(0, n_rows), min_size=len(parties) - 1, max_size=len(parties) - 1))
    return sorted(cuts), parties


def opened(frames: Iterable[Frame]) -> dict[tuple[str, str], list[bytes]]:
    """By label and receiver what was opened, in no order that depends on the network."""
    found: dict[tuple[str, str], list[bytes]] = defaultdict(list)
    for frame in frames:
        if frame.type == Opening.DESCRIPTOR.full_name:
            message = Opening.FromString(frame.body)
            found[message.label, frame.receiver].append(message.values)
    return found


def assert_declared(frames: Iterable[Frame], declared: Iterable[Declared]) -> None:
    """All labels of the statement were opened, no other, to nobody else and not too often."""
    from google.protobuf import symbol_database

    by_label = {line.label: line for line in declared}
    sent: dict[tuple[str, str, str], int] = defaultdict(int)
    for frame in frames:
        if frame.type == Opening.DESCRIPTOR.full_name:
            message = Opening.FromString(frame.body)
            assert frame.receiver in by_label[message.label].recipients
            if frame.last:
                sent[frame.sender, frame.receiver, message.label] += message.number
        else:
            allowed = {common_pb2.MASKED, common_pb2.CIPHERTEXT, common_pb2.SHARE, common_pb2.PUBLIC}
            assert kinds(symbol_database.Default().GetSymbol(frame.type)) <= allowed
    assert {label for _, _, label in sent} == set(by_label)
    for (_, _, label), number in sent.items():
        assert number <= by_label[label].maximum


def shapes(frames: Iterable[Frame], receiver: str) -> list[tuple[str, str, str, int]]:
    """What a party gets, apart from what is in it; sorted, since lanes run beside one another."""
    return sorted(
        (f.sender, f.lane, f.type, len(f.body)) for f in frames if f.receiver == receiver and "hello" not in f.lane
    )
