"""Oblivious transfer of messages, one of two, one of N, k of N: what is chosen and what is not taken stay private.

For few transfers of messages of any length; `ot_extension` makes millions out of 128 of the first kind.

One of two (`send_one_of_two`): messages under the keys of `base_ot`.
    Rounds: 2. Adversary: malicious, as there.
k of N (`send_k_of_n`), with one of N as k = 1: message j is encrypted under a hash of x·H(j), x the sender's secret;
    the receiver has k of these points computed under blinds of its own.
    Rounds: 2. Adversary: malicious receiver in the random oracle model under the one-more gap Diffie–Hellman
    assumption, so that k answers open at most k messages; any sender, to whom blinded points reveal nothing, though one
    that garbles some answers or messages learns from the end of the job whether one of them was chosen.
    What a receiver chooses twice it gets once. Costs: N + k multiplications at the sender, 2·k at the receiver.
Leakage: how many transfers, N, k, and the length of the longest message, up to which all are filled.

Source: Masny and Rindal, CCS 2019 (as in `base_ot`); Chu and Tzeng, "Efficient k-out-of-n Oblivious Transfer Schemes
with Adaptive and Non-Adaptive Queries", PKC 2005, section 4, whose evaluations are the oblivious pseudorandom function
of Jarecki, Kiayias and Krawczyk, ASIACRYPT 2014 (2HashDH).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.groups.ristretto255 import (
    POINT_BYTES,
    Points,
    hash_to_group,
    multiply,
    multiply_each,
    random_scalar,
    random_scalars,
    scalar_invert,
)
from crypto.primitives.hashing import encode_labels
from crypto.primitives.keystream import Keystream
from crypto.protocols.transfers.base_ot import receive_keys, send_keys
from link.errors import MalformedMessage
from link.session import Session
from protos.v1.oblivious_transfer_pb2 import BlindedPositions, EncryptedMessages, EvaluatedPositions

MAX_MESSAGE_BYTES: Final = 1 << 20
_DOMAIN: Final = b"comine k-of-N OT 1"
_LENGTH_BYTES: Final = 4

Bytes = NDArray[np.uint8]


# -- one of two --------------------------------------------------------------------------------------------------------
async def send_one_of_two(session: Session, peer: str, pairs: Sequence[tuple[bytes, bytes]]) -> None:
    """Offers pairs of messages, of each of which the receiver gets one.

    Args:
        session: The lane to use, fresh for this batch.
        peer: The receiver.
        pairs: Messages of up to `MAX_MESSAGE_BYTES`, in any lengths.

    Raises:
        ValueError: A message is too long.
        MalformedMessage: The receiver sent what are no group elements.
    """
    first, second = await send_keys(session.lane("keys"), peer, len(pairs))
    padded = pad([message for pair in pairs for message in pair])
    keys = [key.tobytes() for both in zip(first, second, strict=True) for key in both]
    await send_encrypted(session, peer, padded, keys)  # -> 2


async def receive_one_of_two(session: Session, peer: str, choices: Sequence[int]) -> list[bytes]:
    """Takes one message of each pair.

    Args:
        session: The lane to use, fresh for this batch.
        peer: The sender.
        choices: The choice bits, one a pair.

    Returns:
        The chosen messages.

    Raises:
        MalformedMessage: The sender's key or messages are not as they must be.
    """
    bits = _choice_bits(choices)
    keys = await receive_keys(session.lane("keys"), peer, bits)
    encrypted = await _receive_encrypted(session, peer, 2 * len(bits))  # <- 2
    chosen = encrypted[2 * np.arange(len(bits)) + bits]
    return _decrypt(peer, chosen, [key.tobytes() for key in keys])


# -- k of N ------------------------------------------------------------------------------------------------------------
async def send_k_of_n(session: Session, peer: str, messages: Sequence[bytes], k: int) -> None:
    """Offers N messages, of which the receiver gets at most k.

    Args:
        session: The lane to use, fresh for this call.
        peer: The receiver.
        messages: N messages of up to `MAX_MESSAGE_BYTES`, in any lengths.
        k: How many the receiver may take, from 1 to N; public.

    Raises:
        ValueError: k or a message's length is out of range.
        MalformedMessage: The receiver sent what are no group elements, or the identity.
    """
    _check_k(k, len(messages))
    secret = random_scalar(session.randomness("sender's key"))
    blinded = await session.recv_array(peer, BlindedPositions, np.uint8, (k, POINT_BYTES))  # <- 1
    try:
        evaluated = await session.compute(multiply, blinded, secret)
    except ValueError as error:
        raise MalformedMessage(f"{peer} sent positions that are not as they must be: {error}", party=peer) from None
    await session.send_array(peer, EvaluatedPositions, evaluated)  # -> 2
    context = _context(session, session.me, peer)
    points = await session.compute(lambda: multiply(_positions(context, range(len(messages))), secret))
    await send_encrypted(session, peer, pad(messages), _keys(context, range(len(messages)), points))  # -> 2


async def receive_k_of_n(session: Session, peer: str, choices: Sequence[int], n: int) -> list[bytes]:
    """Takes k of N messages.

    Args:
        session: The lane to use, fresh for this call.
        peer: The sender.
        choices: k positions in 0 … n − 1.
        n: N, public.

    Returns:
        The chosen messages, in the order of `choices`.

    Raises:
        ValueError: A position is out of range.
        MalformedMessage: The sender's answers are not as they must be.
    """
    _check_k(len(choices), n)
    if not all(0 <= choice < n for choice in choices):
        raise ValueError(f"positions lie between 0 and {n - 1}")
    context = _context(session, peer, session.me)
    blinds = random_scalars(session.randomness("blinds"), len(choices))
    blinded = await session.compute(lambda: multiply_each(_positions(context, choices), blinds))
    await session.send_array(peer, BlindedPositions, blinded)  # -> 1
    evaluated = await session.recv_array(peer, EvaluatedPositions, np.uint8, blinded.shape)  # <- 2
    encrypted = await _receive_encrypted(session, peer, n)  # <- 2
    inverses = np.frombuffer(b"".join(scalar_invert(blind.tobytes()) for blind in blinds), np.uint8)
    try:
        points = await session.compute(multiply_each, evaluated, inverses.reshape(blinds.shape))
    except ValueError as error:
        raise MalformedMessage(f"{peer} sent answers that are not as they must be: {error}", party=peer) from None
    return _decrypt(peer, encrypted[np.array(choices, np.int64)], _keys(context, choices, points))


async def send_one_of_n(session: Session, peer: str, messages: Sequence[bytes]) -> None:
    """Offers N messages, of which the receiver gets one: `send_k_of_n` with k = 1."""
    await send_k_of_n(session, peer, messages, 1)


async def receive_one_of_n(session: Session, peer: str, choice: int, n: int) -> bytes:
    """Takes one of N messages: `receive_k_of_n` with k = 1."""
    (message,) = await receive_k_of_n(session, peer, [choice], n)
    return message


def _positions(context: bytes, positions: Sequence[int]) -> Points:
    return hash_to_group([context + position.to_bytes(8, "big") for position in positions], _DOMAIN)


def _keys(context: bytes, positions: Sequence[int], points: Points) -> list[bytes]:
    return [
        hashlib.sha256(context + position.to_bytes(8, "big") + point.tobytes()).digest()[:16]
        for position, point in zip(positions, points, strict=True)
    ]


def _context(session: Session, sender: str, receiver: str) -> bytes:
    return encode_labels("k-of-N OT", session.id, session.path, sender, receiver)


def _check_k(k: int, n: int) -> None:
    if not 1 <= k <= n:
        raise ValueError(f"of {n} messages between 1 and {n} can be taken, not {k}")


def _choice_bits(choices: Sequence[int]) -> Bytes:
    if any(choice not in (0, 1) for choice in choices):
        raise ValueError("a choice between two is 0 or 1")
    return np.array(choices, np.uint8)


# -- messages of any length --------------------------------------------------------------------------------------------
def pad(messages: Sequence[bytes]) -> Bytes:
    """Length ‖ message ‖ zeros, all as long as the longest."""
    longest = max(map(len, messages), default=0)
    if longest > MAX_MESSAGE_BYTES:
        raise ValueError(f"a message has at most {MAX_MESSAGE_BYTES} bytes, not {longest}")
    rows = [len(m).to_bytes(_LENGTH_BYTES, "big") + m.ljust(longest, b"\0") for m in messages]
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(messages), _LENGTH_BYTES + longest)


async def send_encrypted(session: Session, peer: str, padded: Bytes, keys: Sequence[bytes]) -> None:
    """Sends each message under its key."""
    encrypted = await session.compute(_xor_keystreams, padded, keys)
    await session.send(peer, EncryptedMessages(length=padded.shape[1]))
    await session.send_array(peer, EncryptedMessages, encrypted)


async def _receive_encrypted(session: Session, peer: str, number: int) -> Bytes:
    head = await session.recv(peer, EncryptedMessages, _check_head)
    return await session.recv_array(peer, EncryptedMessages, np.uint8, (number, head.length))


def _check_head(message: EncryptedMessages) -> None:
    if not _LENGTH_BYTES <= message.length <= _LENGTH_BYTES + MAX_MESSAGE_BYTES or message.data:
        raise ValueError(f"messages of {message.length} bytes cannot be")


def _decrypt(peer: str, encrypted: Bytes, keys: Sequence[bytes]) -> list[bytes]:
    messages = []
    for row in _xor_keystreams(encrypted, keys):
        length = int.from_bytes(row[:_LENGTH_BYTES].tobytes(), "big")
        if length > len(row) - _LENGTH_BYTES or row[_LENGTH_BYTES + length :].any():
            raise MalformedMessage(f"{peer} sent a message that its key does not open", party=peer)
        messages.append(row[_LENGTH_BYTES : _LENGTH_BYTES + length].tobytes())
    return messages


def _xor_keystreams(rows: Bytes, keys: Sequence[bytes]) -> Bytes:
    """Every row under a keystream of its own; each key serves for one message."""
    streams = [stream.take(rows.shape[1]) for stream in Keystream.of_keys(keys, bytes(16))]
    return rows ^ np.frombuffer(b"".join(streams), np.uint8).reshape(rows.shape)
