"""Runs unions for the tests: with recorded frames, with parties that crash, with frames that are changed on the way."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import Message

from crypto.primitives.groups.commutative import CommutativeKey
from crypto.primitives.randomness import Randomness
from crypto.protocols.sums.pairwise import PairwiseSecrets, agree
from crypto.protocols.union.disclosure import declared
from crypto.protocols.union.joint_prf import PSEUDONYM_BYTES
from crypto.protocols.union.set_union import set_union
from link.costs import Costs
from link.session import Session
from protos.v1 import link_pb2, set_union_pb2
from protos.v1.link_pb2 import Frame
from tests.faulty_world import FaultyHub, Rewrite, run_faulty_parties
from tests.world import run_parties

NAMES = ("north", "south", "east", "west", "centre", "isle", "coast")
FEW = 200.0  # an ε at which every pair has exactly one common fake, so that small tests stay small and exact

Sets = Mapping[str, Collection[bytes]]


@dataclass
class Run:
    """What came of one union."""

    unions: dict[str, list[bytes]]
    costs: dict[str, Costs]
    frames: list[Frame] = field(default_factory=list)
    opened: dict[str, list[tuple[str, tuple[str, ...], int]]] = field(default_factory=dict)


def recorded_keys(patch: pytest.MonkeyPatch) -> dict[tuple[str, str], CommutativeKey]:
    """Gets the keys of all parties, by party and purpose, or by both parties that share one, as they are drawn."""
    found: dict[tuple[str, str], CommutativeKey] = {}
    streams: list[tuple[Randomness, str, str]] = []
    randomness, stream_with, generate = Session.randomness, PairwiseSecrets.stream, CommutativeKey.generate

    def recorded_stream(session: Session, purpose: str) -> Randomness:
        stream = randomness(session, purpose)
        streams.append((stream, session.me, purpose))
        return stream

    def recorded_pair(secrets: PairwiseSecrets, peer: str, context: bytes) -> Randomness:
        stream = stream_with(secrets, peer, context)
        streams.append((stream, secrets.me, peer))
        return stream

    def recorded_key(random: Randomness) -> CommutativeKey:
        (name,) = [(me, purpose) for stream, me, purpose in streams if stream is random]
        found[name] = generate(random)
        return found[name]

    patch.setattr(Session, "randomness", recorded_stream)
    patch.setattr(PairwiseSecrets, "stream", recorded_pair)
    patch.setattr(CommutativeKey, "generate", recorded_key)
    return found


def sets_of(*sets: Collection[str]) -> dict[str, set[bytes]]:
    return {name: {item.encode() for item in items} for name, items in zip(NAMES, sets, strict=False)}


def pseudonyms_of(*sets: Collection[str]) -> dict[str, set[bytes]]:
    """Of names of up to 16 bytes."""
    found = sets_of(*sets)
    return {name: {item.ljust(PSEUDONYM_BYTES, b".") for item in items} for name, items in found.items()}


def pooled(sets: Sets) -> set[bytes]:
    return set().union(*sets.values())


def options_with(options: dict[str, Any]) -> dict[str, Any]:
    return {"epsilon_dup": FEW} | options


def run_union(
    sets: Sets,
    *,
    merger: str,
    seed: int = 0,
    transport: Any = "memory",
    **options: Any,
) -> Run:
    """One union of `sets`, every frame recorded."""
    run = Run({}, {})

    async def role(session: Session) -> None:
        secrets = await agree(session)
        run.unions[session.me] = await set_union(
            session, secrets, sets[session.me], merger=merger, **options_with(options)
        )
        run.costs[session.me] = session.costs
        run.opened[session.me] = [(o.label, o.recipients, o.number) for o in session.ledger.record]

    run_parties(
        tuple(sets),
        role,
        declared=declared(tuple(sets), merger, 1 << 20, options.get("label", "union")),
        seed=seed,
        observe=run.frames.append if transport == "memory" else None,
        deadline_s=240,
        transport=transport,
    )
    return run


def run_faulty(
    sets: Sets,
    *,
    merger: str,
    rewrite: Rewrite = lambda frame: frame,
    crash: tuple[str, int] | None = None,
    **options: Any,
) -> tuple[dict[str, BaseException | list[bytes]], FaultyHub]:
    """How the union ends at each party."""

    async def role(session: Session) -> list[bytes]:
        own = sets[session.me]
        return await set_union(session, await agree(session), own, merger=merger, **options_with(options))

    return run_faulty_parties(tuple(sets), role, declared(tuple(sets), merger, 1 << 20), rewrite, crash)


# -- reading recorded frames -----------------------------------------------------------------------------------------
def message_of(frame: Frame) -> Message:
    name = frame.type.rpartition(".")[2]
    kind = getattr(set_union_pb2, name, None) or getattr(link_pb2, name)
    message = kind()
    message.ParseFromString(frame.body)
    return message


def in_union(frame: Frame) -> bool:
    return "/union/" in frame.lane


def data_of(frame: Frame) -> bytes:
    """The ciphertexts in a frame; empty where it carries none."""
    return getattr(message_of(frame), "data", b"") if in_union(frame) else b""


def points_of(frames: Collection[Frame]) -> list[bytes]:
    """All points of some frames of whole points, in order."""
    data = b"".join(map(data_of, frames))
    return [data[start : start + 32] for start in range(0, len(data), 32)]


def point_array(frames: Collection[Frame]) -> np.ndarray:
    data = b"".join(map(data_of, frames))
    return np.frombuffer(data, np.uint8).reshape(-1, 32)
