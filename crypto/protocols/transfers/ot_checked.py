"""Oblivious-transfer extension that withstands a cheating receiver: random transfers with a consistency check.

A receiver that takes different choice bits in different rows of its corrections could read Δ off the transfers. So
`EXTRA` transfers more are made, and before any of them is used the sender draws a random binary matrix [R | 1] of 64
rows; the receiver sends the sums of its choices and of its rows t under it, and the sender checks, column by column,

    [R | 1]·q = [R | 1]·t ⊕ ([R | 1]·choices)·Δ .

The identity on the extra transfers hides what the sums would reveal of the others. A receiver whose corrections differ
in some columns passes only if it guesses Δ there, and learns no more by it than the guess, at the risk of being caught.

Rounds: 3 for all transfers together, after `prepare_…` with field_bits = 1 (with larger k the trees of seeds would need
a check of their own).
Adversary: malicious receiver and sender, in the random oracle and ideal permutation model. A wrong sum ends the job.
Leakage: the number of transfers.

Source: Roy, "SoftSpokenOT", CRYPTO 2022, section 4.2 and Figure 10 for the repetition code with k = 1, universal hash
x ↦ [R | 1]·x; its section 1 describes the gap in the proof of Keller, Orsini and Scholl, CRYPTO 2015.
"""

from __future__ import annotations

import hmac
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import ROWS, Rows128, unpack_bits, xor_each
from crypto.primitives.correlation_robust import hash_rows
from crypto.primitives.keystream import Keystream
from crypto.protocols.transfers.extension_seeds import ReceiverSeeds, SenderSeeds
from crypto.protocols.transfers.ot_extension import Packed, batches
from link.errors import ProtocolViolation
from link.session import Session
from protos.v1.oblivious_transfer_pb2 import CheckSeed, CheckSums, ExtensionRows

EXTRA: Final = ROWS  # transfers that the check uses up: 64 hide the sums, and batches are multiples of 128
SUMS: Final = 64  # a cheating receiver that guesses nothing is caught with probability 1 − 2⁻⁶⁴
SEED_BYTES: Final = 32
_AT_ONCE: Final = 1 << 9  # rows whose sums are taken: all of them stay in the cache


async def send_checked(session: Session, peer: str, seeds: SenderSeeds, number: int) -> tuple[Rows128, Rows128]:
    """The sender's part: both random messages of each transfer.

    Args:
        session: The lane to talk on, fresh for this call.
        peer: The receiver.
        seeds: From `prepare_sending` with this peer and field_bits = 1.
        number: How many transfers, a multiple of 128.

    Returns:
        Shapes (number, 2).

    Raises:
        ProtocolViolation: The receiver's corrections contradict each other; nothing of the transfers may be used.
    """
    _check_arguments(seeds.field_bits, number)
    first = seeds.used
    rows = []
    for size in batches(number + EXTRA):
        corrections = await session.recv_array(peer, ExtensionRows, np.uint8, (ROWS, size // 8))  # <- 1
        rows.append(await session.compute(seeds.expand, corrections))
    q = np.concatenate(rows)
    seed = session.randomness("check").bytes(SEED_BYTES)
    await session.send(peer, CheckSeed(seed=seed))  # -> 2
    sums = await session.recv(peer, CheckSums, _check_sums)  # <- 3
    expected = await session.compute(_sums, seed, q)
    choices = unpack_bits(np.frombuffer(sums.choices, np.uint8), SUMS).astype(np.uint64)
    expected ^= choices[:, None] * seeds.delta
    if not hmac.compare_digest(expected.tobytes(), sums.rows):
        raise ProtocolViolation(
            f"the choices of {peer} in an oblivious transfer contradict each other; its node must be checked",
            party=peer,
        )
    q = q[:number]
    return await session.compute(
        lambda: (hash_rows(q, first, seeds.domain), hash_rows(xor_each(q, seeds.delta), first, seeds.domain))
    )


async def receive_checked(session: Session, peer: str, seeds: ReceiverSeeds, choices: Packed) -> Rows128:
    """The receiver's part: the chosen random message of each transfer.

    Args:
        session: The lane to talk on, fresh for this call.
        peer: The sender.
        seeds: From `prepare_receiving` with this peer and field_bits = 1.
        choices: Packed choice bits of a multiple of 128 transfers; that number is public.

    Returns:
        Shape (number, 2).
    """
    number = len(choices) * 8
    _check_arguments(seeds.field_bits, number)
    first = seeds.used
    extra = np.frombuffer(session.randomness("extra choices").bytes(EXTRA // 8), np.uint8)
    all_choices = np.concatenate([choices, extra])
    rows, done = [], 0
    for size in batches(number + EXTRA):
        part = np.ascontiguousarray(all_choices[done : done + size // 8])
        corrections, t = await session.compute(seeds.expand, part)
        await session.send_array(peer, ExtensionRows, corrections)  # -> 1
        rows.append(t)
        done += len(part)
    t = np.concatenate(rows)
    seed = (await session.recv(peer, CheckSeed, _check_seed)).seed  # <- 2
    bits = unpack_bits(all_choices, number + EXTRA).astype(np.uint64)
    of_choices = await session.compute(_sums, seed, np.stack([bits, np.zeros_like(bits)], axis=1))
    packed = np.packbits(of_choices[:, 0].astype(np.uint8), bitorder="little")
    of_rows = await session.compute(_sums, seed, t)
    await session.send(peer, CheckSums(choices=packed.tobytes(), rows=of_rows.tobytes()))  # -> 3
    return await session.compute(hash_rows, t[:number], first, seeds.domain)


def _sums(seed: bytes, rows: Rows128) -> NDArray[np.uint64]:
    """[R | 1] · rows over GF(2), R expanded from the seed.

    Args:
        seed: 32 bytes.
        rows: Shape (n + EXTRA, 2).

    Returns:
        Shape (SUMS, 2).
    """
    body, tail = rows[:-EXTRA], rows[-EXTRA:]
    sums = tail[:SUMS].copy()
    stream = Keystream.from_secret(seed)
    bits = np.arange(SUMS, dtype=np.uint64)[:, None]
    for start in range(0, len(body), _AT_ONCE):
        part = np.ascontiguousarray(body[start : start + _AT_ONCE].T)
        coefficients = stream.words(part.shape[1])  # bit s of word j is R[s, j]
        taken = np.negative((coefficients >> bits) & np.uint64(1))  # all ones or zeros
        sums ^= np.bitwise_xor.reduce(part & taken[:, None], axis=2)
    return sums


def _check_arguments(field_bits: int, number: int) -> None:
    if field_bits != 1:
        raise ValueError("checked transfers need seeds with field_bits = 1")
    if number % ROWS:
        raise ValueError(f"checked transfers are made {ROWS} at a time, not {number}")


def _check_seed(message: CheckSeed) -> None:
    if len(message.seed) != SEED_BYTES:
        raise ValueError(f"a seed of a check has {SEED_BYTES} bytes, not {len(message.seed)}")


def _check_sums(message: CheckSums) -> None:
    if len(message.choices) != SUMS // 8 or len(message.rows) != SUMS * ROWS // 8:
        raise ValueError("the sums of a check have another size")
