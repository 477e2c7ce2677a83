"""Runs computations of two holders on shares, beside parties that hold none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from math import prod, sqrt
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from crypto.primitives.shares.additive import AdditiveShare, share
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.transfers.base_ot import KEY_BYTES
from crypto.protocols.transfers.extension_codes import SYMBOL_BITS, block_count
from crypto.protocols.transfers.extension_seeds import DEFAULT_FIELD_BITS, ReceiverSeeds, SenderSeeds
from link.disclosure import Declared
from link.session import Session
from protos.v1.link_pb2 import Frame
from tests.world import below, run_parties

A, B = HOLDERS = ("a", "b")
ERROR = 1e-6  # of every statistical test

Part = Callable[[Session, TwoParty], Awaitable[Any]]


def shares_of(
    values: Sequence[int] | NDArray[np.uint64], seed: int = 0, word: type[np.unsignedinteger[Any]] = np.uint64
) -> dict[str, AdditiveShare]:
    vector = np.array(values, np.uint64).astype(word)
    return dict(zip(HOLDERS, share(vector, HOLDERS, Randomness.from_seed(b"shares %d" % seed)), strict=True))


def _dealt(field_bits: int, receiver: str) -> tuple[SenderSeeds, ReceiverSeeds]:
    """Both halves of what the two could agree upon in a direction; the sender lacks the seeds at Δ."""
    random, blocks = Randomness.from_seed(b"seeds of " + receiver.encode()), block_count(field_bits, SYMBOL_BITS)
    shape = blocks, 1 << field_bits, KEY_BYTES
    seeds = np.frombuffer(random.bytes(prod(shape)), np.uint8).reshape(shape)
    delta = random.bytes(-(-blocks * field_bits // 8))
    bits = np.unpackbits(np.frombuffer(delta, np.uint8), count=blocks * field_bits, bitorder="little")
    known = seeds.copy()
    known[np.arange(blocks), bits.reshape(blocks, field_bits) @ (1 << np.arange(field_bits))] = 0
    return SenderSeeds(known, delta, receiver), ReceiverSeeds(seeds)


def pairing(field_bits: int = DEFAULT_FIELD_BITS) -> Callable[[Session], TwoParty]:
    """Makes a holder's half of an agreement; all tests share its seeds, which spares them the base transfers."""

    def paired(session: Session) -> TwoParty:
        (peer,) = set(HOLDERS) - {session.me}
        seeds = _dealt(field_bits, peer)[0], _dealt(field_bits, session.me)[1]
        return TwoParty(session.lane("pair"), HOLDERS, field_bits=field_bits, seeds=seeds)

    return paired


def run_two(
    part: Part | Mapping[str, Part],
    *,
    seed: int = 0,
    frames: list[Frame] | None = None,
    others: Sequence[str] = (),
    declared: Iterable[Declared] = (),
    transport: Literal["memory", "grpc"] = "memory",
    field_bits: int = DEFAULT_FIELD_BITS,
) -> dict[str, Any]:
    """Both holders' results; the frames are those of the lane "/work" and below."""
    paired = pairing(field_bits)

    async def role(session: Session) -> Any:
        parties = paired(session)
        return await (part[session.me] if isinstance(part, Mapping) else part)(session.lane("work"), parties)

    async def idle(session: Session) -> None:
        return None

    roles = {**dict.fromkeys(HOLDERS, role), **dict.fromkeys(others, idle)}
    return run_parties(
        (*HOLDERS, *others),
        roles,
        seed=seed,
        observe=below("/work", frames),
        declared=declared,
        transport=transport,
        deadline_s=240,
    )


def payload_of(frames: Iterable[Frame], sender: str, kind: str | None = None) -> NDArray[np.uint8]:
    """The bytes that a party sends, headers of messages included where a chunk is short."""
    from protos.v1.shares_pb2 import LeafTables  # every message of bulk data has its one field at number 1 or 2

    bodies = [f.body for f in frames if f.sender == sender and (kind is None or f.type.endswith(kind))]
    return np.frombuffer(b"".join(LeafTables.FromString(body).data for body in bodies), np.uint8)


def shapes_of(frames: Iterable[Frame]) -> list[tuple[str, str, str, str, int]]:
    """What the frames are apart from what is in them; sorted, since lanes run beside one another."""
    return sorted((f.sender, f.receiver, f.lane, f.type, len(f.body)) for f in frames)


def chi_square_bound(freedom: int) -> float:
    """The 1 − ERROR quantile, by Wilson and Hilferty's cube root."""
    spread = 2 / (9 * freedom)
    return freedom * (1 - spread + NormalDist().inv_cdf(1 - ERROR) * sqrt(spread)) ** 3


def assert_uniform(words: NDArray[Any]) -> None:
    """Chi-square of the bytes; refuses a uniform source with probability `ERROR`."""
    seen = np.bincount(words.view(np.uint8), minlength=256)
    expected = seen.sum() / 256
    assert ((seen - expected) ** 2 / expected).sum() < chi_square_bound(255)


def assert_alike(one: NDArray[Any], other: NDArray[Any]) -> None:
    """Homogeneity of the bytes of two samples of equal size."""
    assert len(one) == len(other)
    a, b = (np.bincount(words.view(np.uint8), minlength=256).astype(np.float64) for words in (one, other))
    assert ((a - b) ** 2 / np.maximum(a + b, 1)).sum() < chi_square_bound(255)
