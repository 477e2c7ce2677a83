"""Private columns of several parties, what is counted over them, and what their messages hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import pack_bits
from crypto.protocols.products.ot_matrix import all_pairs
from protos.v1.link_pb2 import Frame
from protos.v1.oblivious_transfer_pb2 import EncryptedMessages, ExtensionCheck, ExtensionRows
from protos.v1.products_pb2 import Component, DealtProducts, MaskedColumns, ProductPart
from protos.v1.secure_sum_pb2 import MaskedValues
from tests.crypto.protocols.two_party_world import A, B, assert_alike, assert_uniform

BULK: dict[str, type[Message]] = {
    kind.DESCRIPTOR.full_name: kind
    for kind in (
        ExtensionRows,
        ExtensionCheck,
        EncryptedMessages,
        Component,
        ProductPart,
        MaskedColumns,
        DealtProducts,
        MaskedValues,
    )
}

Table = Mapping[str, NDArray[np.bool_]]
"""By party its columns, shape (columns, rows)."""


def table(parties: Sequence[str], columns: Sequence[int], rows: int, density: float, seed: int) -> Table:
    """Random columns; densities 0 and 1 make constant ones."""
    generator = np.random.default_rng(seed)
    return {party: generator.random((number, rows)) < density for party, number in zip(parties, columns, strict=True)}


def packed(columns: Table) -> dict[str, NDArray[np.uint8]]:
    return {party: pack_bits(bits) for party, bits in columns.items()}


def pair_counts(first: NDArray[np.bool_], second: NDArray[np.bool_], pairs: NDArray[np.int64]) -> list[int]:
    return [int((first[i] & second[j]).sum()) for i, j in pairs]


def itemset_counts(columns: Table, itemsets: Iterable[Mapping[str, int]]) -> list[int]:
    return [
        int(np.logical_and.reduce([columns[party][column] for party, column in itemset.items()]).sum())
        for itemset in itemsets
    ]


def payloads(frames: Iterable[Frame], receiver: str | None = None) -> dict[tuple[str, str, str], NDArray[np.uint8]]:
    """The bulk data by sender, receiver and kind of message."""
    joined: dict[tuple[str, str, str], list[bytes]] = {}
    for frame in frames:
        kind = BULK.get(frame.type)
        if kind is not None and receiver in (None, frame.receiver):
            key = (frame.sender, frame.receiver, kind.__name__)
            joined.setdefault(key, []).append(kind.FromString(frame.body).data)  # type: ignore[attr-defined]
    return {key: np.frombuffer(b"".join(parts), np.uint8) for key, parts in joined.items()}


def assert_views_alike(runs: Sequence[Iterable[Frame]], least: int = 1 << 13) -> None:
    """Whatever a party gets is uniform, and alike in all runs; small messages are compared by size alone."""
    seen = [payloads(run) for run in runs]
    for view in seen:
        assert {key: len(octets) for key, octets in view.items()} == {k: len(o) for k, o in seen[0].items()}
        for key, octets in view.items():
            if len(octets) >= least:
                assert_uniform(octets)
                assert_alike(octets, seen[0][key])


def views_without_common_rows(counted: Callable[..., Sequence[int]], rows: int) -> list[list[Frame]]:
    """The frames of two holders for three tables in which no row is in a column of each; they must look alike."""
    pairs, runs = all_pairs(4, 3), list[list[Frame]]()
    for seed, (first, second) in enumerate([(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)]):
        columns = {A: table([A], [4], rows, first, 0)[A], B: table([B], [3], rows, second, 0)[B]}
        frames: list[Frame] = []
        assert not any(counted(columns, rows, pairs, seed=seed, frames=frames))
        runs.append(frames)
    assert_views_alike(runs)
    return runs
