"""The check of an oblivious-transfer extension: that a receiver's corrections are those of one choice a transfer.

For block b of Δ the sender's strips are q_b = v_b ⊕ Δ_b·d_b, k strings of bits for k bits of Δ_b, where v_b are the
receiver's own and d_b is what it corrected to. A row is the strips of a block, or of several that a group of symbols is
folded to. Honest corrections make the d of all blocks a word of the code for every transfer. A receiver that corrects
to other words could read Δ off the transfers. So with each batch it also sends

    x      h of the choices, plane by plane;
    y      a hash over h of the strips of every row of its own, one after another as one string;

where h is a linear hash (`polynomial_hash`) under a challenge that is drawn from the corrections: from the head of the
chain that both parties have over the frames in which they went, so that nobody hashes them a second time. The sender
takes h of its rows, adds Δ_b's multiples of the code word of x, and compares, before anything else becomes of the
batch.

`extra` transfers more are made in a batch, with random choices, and serve nothing else: they make x uniform. Then y is
what the sender computes by itself, so both reveal nothing.

What is left to a receiver that deviates: if it is not caught, it has guessed the bits of Δ, or sums of them, by which
its rows differ from those of one choice a transfer, but for a chance of 2^-94 for each set of corrections it tries.
`docs/protocols/ot-extension.md` derives it. An honest receiver always passes.

Rounds: none, the check follows the corrections at once. Bytes: `corrections_bytes` and `check_bytes`.
Adversary: malicious receiver, in the random oracle and ideal cipher model; the sender sends nothing here.

Source: Roy, "SoftSpokenOT", CRYPTO 2022, sections 4 and 5 (the check by a universal hash, for linear codes); Fiat and
Shamir, CRYPTO 1986 (a challenge drawn from what it is about).
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import ROWS
from crypto.primitives.polynomial_hash import POINTS, PolynomialHash
from crypto.protocols.transfers.extension_codes import Code, block_count

DIGEST_BYTES: Final = 32
_BLOCK_BYTES: Final = ROWS // 8

Words = NDArray[np.uint64]


def _points(field_bits: int) -> int:
    """Points of the hash: the smaller the field, the more sets of blocks may be guessed, and two are needed."""
    return 1 if field_bits >= 3 else POINTS


def extra(field_bits: int) -> int:
    """Transfers of a batch that mask its check."""
    return _points(field_bits) * ROWS


def corrections_bytes(field_bits: int, number: int, symbol_bits: int = 1) -> int:
    """Bytes of the corrections of so many transfers of one of 2^s in one batch, with those of the extra ones."""
    return block_count(field_bits, symbol_bits) * (number + extra(field_bits)) // 8


def check_bytes(field_bits: int, symbol_bits: int = 1) -> int:
    """Bytes of the check of a batch."""
    return symbol_bits * _points(field_bits) * _BLOCK_BYTES + DIGEST_BYTES


class BatchCheck:
    """The check of one batch, after its corrections have been sent.

    Args:
        context: Of the batch: no two have the same.
        bound: From which the challenge is drawn, as it is bound to the corrections: SHA-256 over all frames on their
            lane, up to their last. Before version 25 of the wire the corrections themselves.
        strip_bytes: Of a strip, and of a block's corrections.
        field_bits: k.
        code: Of the choices.

    Attributes:
        strips: h of a row's strips as one string.
    """

    __slots__ = ("_code", "_field_bits", "_points", "_seed", "_strip_bytes", "strips")

    def __init__(self, context: bytes, bound: bytes, strip_bytes: int, field_bits: int, code: Code) -> None:
        self._seed = hashlib.sha256(context + bound).digest()
        self._code, self._field_bits, self._points = code, field_bits, _points(field_bits)
        self._strip_bytes = strip_bytes
        self.strips = PolynomialHash(self._seed, field_bits * self._strip_bytes, self._points)

    def hashes_of(self, rows: Words) -> bytes:
        """Hashes of the rows of all groups and folds, shape (groups, folds, k, words), up to a constant."""
        return b"".join(
            [
                self.strips.shifted(strips)
                for strips in rows.view(np.uint8).reshape(-1, self._field_bits * self._strip_bytes)
            ]
        )

    def told(self, planes: Words, hashes: bytes) -> bytes:
        """What the receiver sends after the corrections.

        Args:
            planes: The choices, extra ones at their end, shape (s, words).
            hashes: `hashes_of` its rows.
        """
        choices = PolynomialHash(self._seed, self._strip_bytes, self._points).of_each(planes.view(np.uint8))
        return choices.tobytes() + self._over(hashes)

    def agrees(self, told: bytes, hashes: bytes, masks: Words) -> bool:
        """Whether what the receiver sent fits the sender's strips.

        Args:
            told: Its words.
            hashes: `hashes_of` the sender's rows.
            masks: Δ by bit, all ones or zeros, shape (blocks, k).
        """
        size = self._points * _BLOCK_BYTES
        claimed, digest = told[:-DIGEST_BYTES], told[-DIGEST_BYTES:]
        choices = np.frombuffer(claimed, np.uint8).reshape(self._code.symbol_bits, size)
        blocks = self._strip_bytes // _BLOCK_BYTES
        # Strip i of a string of k is followed by the k − 1 − i others.
        multiples = np.stack(
            [
                np.concatenate([self.strips.followed(plane, (self._field_bits - 1 - i) * blocks) for plane in choices])
                for i in range(self._field_bits)
            ]
        )
        by_plane = multiples.reshape(self._field_bits, len(choices), size).transpose(1, 0, 2)
        words = self._code.encode(np.ascontiguousarray(by_plane).view(np.uint64))  # blocks of a group, k, size / 8
        grouped = masks.reshape(-1, len(words), self._field_bits, 1)
        differences = self._code.folded(np.bitwise_xor.reduce(words & grouped, axis=2)).reshape(-1)
        differences ^= np.frombuffer(hashes, np.uint64)
        return hmac.compare_digest(self._over(differences.tobytes()), digest)

    def _over(self, hashes: bytes) -> bytes:
        return hashlib.sha256(self._seed + hashes).digest()
