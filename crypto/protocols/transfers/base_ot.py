"""Base oblivious transfer on ristretto255: the sender gets two random keys a transfer, the receiver one, by its choice.

Rounds: 1, in which both parties speak at once. Output: per transfer 16-byte keys k₀, k₁ at the sender and k_c at the
receiver. Keys are *endemic*: a cheating party may influence its own.

Adversary: malicious, in the random oracle model under the gap Diffie–Hellman assumption: the receiver's two points are
uniform whatever it chooses, and of one of them it cannot know the logarithm. Collusion: does not apply, two parties.
Leakage: the number of transfers.

Source: Masny and Rindal, "Endemic Oblivious Transfer", CCS 2019, Figure 8 (one-round endemic OT from a key agreement
with uniform messages, here Diffie–Hellman; the sender's message is shared by the batch and every hash names the
transfer).
"""

from __future__ import annotations

import hashlib
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.groups.ristretto255 import (
    POINT_BYTES,
    UNIFORM_BYTES,
    Points,
    add,
    base_multiply,
    from_uniform_bytes,
    hash_to_group,
    multiply,
    multiply_each,
    random_scalar,
    random_scalars,
    subtract,
)
from crypto.primitives.hashing import encode_labels
from link.errors import MalformedMessage
from link.randomness import RandomStream
from link.session import Session
from protos.v1.oblivious_transfer_pb2 import ChoicePoints, TransferKey

KEY_BYTES: Final = 16
_DOMAIN: Final = b"comine base OT 1"

Keys = NDArray[np.uint8]
"""Rows of 16 bytes."""


async def send_keys(session: Session, peer: str, number: int) -> tuple[Keys, Keys]:
    """The sender's part.

    Args:
        session: The lane to use, fresh for this batch.
        peer: The receiver.
        number: How many transfers; public.

    Returns:
        k₀ and k₁, each of shape (number, 16).

    Raises:
        MalformedMessage: The receiver sent what are no group elements, or the identity.
    """
    secret = random_scalar(session.randomness("sender's key"))
    public = base_multiply(_row(secret))
    await session.send(peer, TransferKey(point=public.tobytes()))  # -> 1
    points = await session.recv_array(peer, ChoicePoints, np.uint8, (2, number, POINT_BYTES))  # <- 1
    return await session.compute(senders_keys, _context(session, peer, session.me), peer, secret, public, points)


async def receive_keys(session: Session, peer: str, choices: NDArray[np.uint8]) -> Keys:
    """The receiver's part.

    Args:
        session: The lane to use, fresh for this batch.
        peer: The sender.
        choices: Shape (number,), each 0 or 1.

    Returns:
        k_c of every transfer, shape (number, 16).

    Raises:
        MalformedMessage: The sender's key is no group element, or the identity.
    """
    context = _context(session, session.me, peer)
    random = session.randomness("receiver's points")
    secrets, points = await session.compute(_choice_points, context, choices, random)
    await session.send_array(peer, ChoicePoints, points)  # -> 1
    public = (await session.recv(peer, TransferKey, _check_key)).point  # <- 1
    return await session.compute(receivers_keys, context, peer, choices, secrets, points, _row(public))


def _choice_points(context: bytes, choices: NDArray[np.uint8], random: RandomStream) -> tuple[Points, Points]:
    """r_{1−c} uniform and r_c = b·G − H_c(r_{1−c}), so that r_c + H_c(r_{1−c}) has the logarithm b."""
    number = len(choices)
    secrets = random_scalars(random, number)
    uniform = np.frombuffer(random.bytes(number * UNIFORM_BYTES), np.uint8).reshape(number, UNIFORM_BYTES)
    other = from_uniform_bytes(uniform)
    chosen = subtract(base_multiply(secrets), point_hash(context, choices, other))
    first = choices[:, None] == 0
    return secrets, np.stack([np.where(first, chosen, other), np.where(first, other, chosen)])


def receivers_keys(
    context: bytes, peer: str, choices: NDArray[np.uint8], secrets: Points, points: Points, public: Points
) -> Keys:
    """The keys of the branches that the receiver chose."""
    try:
        shared = multiply_each(np.broadcast_to(public, secrets.shape), secrets)
    except ValueError:
        raise MalformedMessage(
            f"{peer} sent a key that is no group element; its node must be checked", party=peer
        ) from None
    return _derive(context, public, choices, points, shared)


def senders_keys(context: bytes, peer: str, secret: bytes, public: Points, points: Points) -> tuple[Keys, Keys]:
    """The keys of both branches of all transfers."""
    number = points.shape[1]
    keys = []
    try:
        for branch in (0, 1):
            branches = np.full(number, branch, np.uint8)
            agreed = add(points[branch], point_hash(context, branches, points[1 - branch]))
            keys.append(_derive(context, public, branches, points, multiply(agreed, secret)))
    except ValueError as error:
        raise MalformedMessage(f"{peer} sent points that are not as they must be: {error}", party=peer) from None
    return keys[0], keys[1]


def point_hash(context: bytes, branches: NDArray[np.uint8], points: Points) -> Points:
    """H_branch(point) per transfer, into the group."""
    names = [
        context + index.to_bytes(4, "big") + bytes([branch]) + point.tobytes()
        for index, (branch, point) in enumerate(zip(branches.tolist(), points, strict=True))
    ]
    return hash_to_group(names, _DOMAIN)


def _derive(context: bytes, public: Points, branches: NDArray[np.uint8], points: Points, shared: Points) -> Keys:
    """The transfers' keys; the hash binds session, transfer, branch and all that was sent."""
    head = context + public.tobytes()
    digests = [
        hashlib.sha256(
            head + index.to_bytes(4, "big") + bytes([branch]) + points[:, index].tobytes() + shared[index].tobytes()
        ).digest()[:KEY_BYTES]
        for index, branch in enumerate(branches.tolist())
    ]
    return np.frombuffer(b"".join(digests), np.uint8).reshape(-1, KEY_BYTES)


def _context(session: Session, receiver: str, sender: str) -> bytes:
    return encode_labels("base OT", session.id, session.path, receiver, sender)


def _check_key(message: TransferKey) -> None:
    if len(message.point) != POINT_BYTES:
        raise ValueError(f"a key has {POINT_BYTES} bytes, not {len(message.point)}")


def _row(point: bytes) -> Points:
    return np.frombuffer(point, np.uint8).reshape(1, -1)
