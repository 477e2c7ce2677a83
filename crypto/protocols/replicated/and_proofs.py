"""What a holder of replicated bits proves of its parts of ANDs, to the two others together: pure parts of the proof.

Holder i has sent z_i = x_i y_i ⊕ x_i y_{i+1} ⊕ x_{i+1} y_i ⊕ s ⊕ t for each AND. The holder before it knows x_i, y_i,
z_i and s, the one after it x_{i+1}, y_{i+1} and t. So each AND is a sum of products of a bit of the one with a bit of
the other, and a term of each:

    x_i y_{i+1} ⊕ x_{i+1} y_i = (x_i y_i ⊕ z_i ⊕ s) ⊕ t

The ANDs are cut into B rows. With h a linear hash of rows, under a challenge that is drawn from z_i,

    H_jk = h(x_i's row j ∧ y_{i+1}'s row k ⊕ y_i's row j ∧ x_{i+1}'s row k)

has on its diagonal h(x_i y_i ⊕ z_i ⊕ s) ⊕ h(t), if all ANDs are right: what the two know, as a sum. The prover shares
the rest between them. It also shares M_ck, the same of 41 rows of masks, which the holder before knows too, with the
rows k. The two draw random sums of rows, one for each row of masks. The holder before gives the other the sums of its
rows under the masks: these are uniform. So the other computes what the same sums of H, with M, must be, and compares.

Before that it must know that the sums are of the prover's rows: else who gives other ones could tell from whether the
comparison holds what bits the other has. So the prover has told it, beside the challenge, a linear hash of each row and
mask, under keys that the holder before does not know, and under pads that only this one knows, who gives sums of these.

Bytes: of N bytes of ANDs, 16 B (B + 41) of H and M, 16 (B + 41) of fingerprints, and 82 N / B of sums under masks.

Soundness: z_i is fixed before the challenge. If an AND is wrong, its row's hash is, but with probability
(b + 1) / 2^128 of b blocks a row, for each challenge that is tried (`polynomial_hash`). Then a column of H is off on
the diagonal, and each of the 41 sums, which the prover does not know, takes that in or leaves it out: all fit what it
has shared with probability 2^-41 at most.

Source: Boneh, Boyle, Corrigan-Gibbs, Gilboa and Ishai, CRYPTO 2019, and Boyle, Gilboa, Ishai and Nof, "Practical Fully
Secure Three-Party Computation via Sublinear Distributed Zero-Knowledge Proofs", CCS 2019 (each holder proves its parts
of products to both others); the proof of an inner product is in the manner of Aaronson and Wigderson, "Algebrization",
STOC 2008, with sums of rows in place of a polynomial's values, so that all but the hash stays bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import unpack_bits
from crypto.primitives.polynomial_hash import PolynomialHash
from crypto.primitives.randomness import Randomness
from crypto.primitives.shares.replicated_bits import Planes
from crypto.primitives.shares.ring_matrix import random_matrix

COMBINATIONS: Final = 41  # wrong ANDs pass with probability 2^-41, and those of the hash: below 2^-40
SEED_BYTES: Final = 32
HASH_BYTES: Final = 16
_ROWS: Final = (4, 8, 16, 32, 64)
_HASH_WORTH: Final = 64  # bytes, which on a link of 200 Mbit/s take as long as a hash

Hashes = NDArray[np.uint8]
"""Shape (…, 16)."""


def row_count(size: int) -> int:
    """B for so many bytes of ANDs: what costs least, in bytes and hashes."""
    return min(_ROWS, key=lambda rows: sums_bytes(size, rows) + _HASH_WORTH * rows * (rows + 2 * COMBINATIONS))


def row_bytes(size: int, rows: int) -> int:
    """Bytes of a row: whole blocks of the hash."""
    return -(-size // (rows * HASH_BYTES)) * HASH_BYTES


def sums_bytes(size: int, rows: int) -> int:
    """Bytes of the sums under masks that the holder before gives the one after."""
    return 2 * COMBINATIONS * row_bytes(size, rows)


def fingerprint_bytes(rows: int) -> int:
    """Bytes of fingerprints of all rows and masks."""
    return HASH_BYTES * (rows + COMBINATIONS)


def proof_bytes(rows: int) -> int:
    """Bytes of a share of H and M."""
    return HASH_BYTES * rows * (rows + COMBINATIONS)


def in_rows(x: Planes, y: Planes) -> Planes:
    """Operands of ANDs, one plane each, cut into B rows and filled up with zeros: shape (2, B, bytes)."""
    size = x.size
    rows = row_count(size)
    found = np.zeros((2, rows * row_bytes(size, rows)), np.uint8)
    found[0, :size], found[1, :size] = x.reshape(-1), y.reshape(-1)
    return found.reshape(2, rows, -1)


def hashes_of(seed: bytes, plane: Planes) -> Hashes:
    """The hash of each row of one plane, shape (B, 16)."""
    rows, _ = in_rows(plane, plane)
    return PolynomialHash(seed, rows.shape[1], 1).of_each(rows)


def products(seed: bytes, one: Planes, other: Planes) -> Hashes:
    """The hash of each row of the one with each of the other: x ∧ y' ⊕ y ∧ x'.

    Args:
        seed: The challenge.
        one: x and y, shape (2, a, bytes).
        other: x' and y', shape (2, b, bytes).

    Returns:
        Shape (a, b, 16).
    """
    hasher = PolynomialHash(seed, one.shape[2], 1)
    found = np.empty((one.shape[1], other.shape[1], HASH_BYTES), np.uint8)
    for place in range(other.shape[1]):
        both = one[0] & other[1, place]
        both ^= one[1] & other[0, place]
        found[:, place] = hasher.of_each(both)
    return found


@dataclass(frozen=True, slots=True, repr=False)
class Common:
    """What two neighbours draw for proofs from what they have in common.

    Attributes:
        masks: Of the operands of the later of both, shape (2, 41, bytes); the other is the holder before it.
        pads: Of the later's fingerprints, shape (B + 41, 16).
        keys: Of the earlier's fingerprints, for x and for y.
        share: Of H and M of the earlier, shape (B + 41, B, 16); the other is the holder after it.
        sums: Which rows each sum takes in, of the proof of the third, shape (41, B).
        covers: Of what the earlier and what the later tell the third of components that it lacks (`zero_checks`).
    """

    masks: Planes
    pads: Hashes
    keys: tuple[bytes, bytes]
    share: Hashes
    sums: NDArray[np.bool_]
    covers: tuple[bytes, bytes]


def drawn(random: Randomness, size: int, covered: int) -> Common:
    """The next of a stream, for so many bytes of ANDs, and so many bytes that the third is told."""
    rows = row_count(size)
    length = row_bytes(size, rows)
    masks = random_matrix(random, (2 * COMBINATIONS, length), np.uint8).reshape(2, COMBINATIONS, length)
    pads = random_matrix(random, (rows + COMBINATIONS, HASH_BYTES), np.uint8)
    keys = random.bytes(SEED_BYTES), random.bytes(SEED_BYTES)
    share = random_matrix(random, (rows + COMBINATIONS, rows * HASH_BYTES), np.uint8).reshape(-1, rows, HASH_BYTES)
    sums = unpack_bits(random_matrix(random, (COMBINATIONS, -(-rows // 8)), np.uint8), rows)
    covers = random.bytes(covered), random.bytes(covered)
    return Common(masks, pads, keys, share, sums.astype(bool), covers)


def fingerprints(keys: tuple[bytes, bytes], rows: Planes) -> Hashes:
    """A hash of each row, of x and y together.

    Args:
        keys: For either.
        rows: Shape (2, n, bytes).

    Returns:
        Shape (n, 16).
    """
    of_x, of_y = (PolynomialHash(key, rows.shape[2], 1).of_each(each) for key, each in zip(keys, rows, strict=True))
    return of_x ^ of_y


def summed_rows(which: NDArray[np.bool_], rows: NDArray[np.uint8], masks: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The masks, with the XOR of the rows that each takes in.

    Args:
        which: Shape (41, B).
        rows: Shape (B, bytes).
        masks: Shape (41, bytes).
    """
    found = masks.copy()
    for place, row in enumerate(rows):
        found[which[:, place]] ^= row
    return found


def summed_share(which: NDArray[np.bool_], share: Hashes, diagonal: Hashes) -> Hashes:
    """The sums of a share of H, with M, shape (41, B · 16); what the verifier knows itself is on the diagonal."""
    rows = share.shape[1]
    known = share[:rows].copy()
    known[np.arange(rows), np.arange(rows)] = diagonal
    return summed_rows(which, known.reshape(rows, -1), share[rows:].reshape(COMBINATIONS, -1))
