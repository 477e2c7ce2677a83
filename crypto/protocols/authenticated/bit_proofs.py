"""Two prove to each other relations between authenticated bits that each of them alone knows.

Of each relation u·v ⊕ w = 0 the prover has codes M on its bits, the verifier their keys K, M = K ⊕ x·Δ (`known_bits`).
As elements of GF(2^64) then, for every Δ,

    K_u·K_v ⊕ K_w·Δ  =  M_u·M_v  ⊕  (u·M_v ⊕ v·M_u ⊕ M_w)·Δ  ⊕  (u·v ⊕ w)·Δ².

    1  point   once the bits are bound, the verifier draws χ, and both add up all relations times powers of it
    2  proof   the prover sends the sums of the first two terms, under masks: those of the relation 0·0 ⊕ r, r a word
               of 64 random bits that were bound with the others. The verifier holds its own sum against them

Bits that violate a relation pass with probability (m − 1) / 2^64 of m relations, where χ is a zero of the polynomial
that u·v ⊕ w are the coefficients of, and 2 / 2^63, where Δ is one of the two zeros of what is left: one bit of Δ is
public.

Rounds: 2. Bytes: 24 from each of the two.
Adversary: malicious, one of the two. A verifier that draws χ as it likes sees what it can compute of its own keys and
    a uniform word.
Leakage: the number of relations.

Source: Yang, Sarkar, Weng and Wang, "QuickSilver: Efficient and Affordable Zero-Knowledge Proofs for Circuits and
Polynomials over Any Field", CCS 2021, section 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from crypto.primitives.binary_field import BITS, Elements, evaluated, powers, product
from crypto.primitives.shares.known_bits import KnownBits
from crypto.protocols.comparison.two_party import TwoParty
from link.session import Session
from protos.v1.authenticated_pb2 import BitProof, ProofPoint

ELEMENT_BYTES: Final = BITS // 8
PROOF_MASK_BITS: Final = BITS
PROOF_BYTES: Final = 2 * ELEMENT_BYTES


class Relations(NamedTuple):
    """That u·v ⊕ w = 0 at every place, of planes of one shape.

    Attributes:
        one: u.
        other: v.
        rest: w.
    """

    one: KnownBits
    other: KnownBits
    rest: KnownBits

    @staticmethod
    def stacked(relations: Sequence[Relations]) -> Relations:
        """These, of equal length, one after another."""
        return Relations(*(KnownBits.stacked(each) for each in zip(*relations, strict=True)))


class Statement(NamedTuple):
    """What one of the two proves.

    Attributes:
        relations: These.
        mask: 64 random bits of the prover's, of one plane, which serve nothing else.
    """

    relations: Relations
    mask: KnownBits


async def proved(session: Session, pair: TwoParty, own: Statement, theirs: Statement) -> bool:
    """Proves this party's statement, and says whether the peer has proved its own; both call this.

    Args:
        session: The lane to use, fresh for this call; all bits are bound.
        pair: The two.
        own: This party's.
        theirs: The peer's.

    Raises:
        MalformedMessage: The peer's message has another size.
    """
    drawn = np.frombuffer(session.randomness("point").bytes(ELEMENT_BYTES), "<u8")[0]
    await session.send(pair.peer, ProofPoint(point=drawn.tobytes()))

    def check_point(message: ProofPoint) -> None:
        _check_size("point", ELEMENT_BYTES, message.point)

    def check_sums(message: BitProof) -> None:
        _check_size("sums", PROOF_BYTES, message.sums)

    asked = np.frombuffer((await session.recv(pair.peer, ProofPoint, check_point)).point, "<u8")[0]
    sums = await session.compute(proof_of, own, asked)
    await session.send(pair.peer, BitProof(sums=sums.astype("<u8").tobytes()))
    expected = await session.compute(expected_of, theirs, drawn)
    told = np.frombuffer((await session.recv(pair.peer, BitProof, check_sums)).sums, "<u8").astype(np.uint64)
    first, second = told[:1], told[1:]
    return bool((first ^ product(second, _element(theirs.mask.key)) == expected).all())


def proof_of(of: Statement, point: np.uint64) -> Elements:
    """The sums of the first two terms, shape (2,)."""
    one, other, rest = of.relations
    squares = product(one.codes.reshape(-1), other.codes.reshape(-1))
    linear = one.values * other.codes ^ other.values * one.codes ^ rest.codes
    codes, values = _combined(of.mask.codes), _combined(of.mask.values.astype(np.uint64))
    return np.concatenate([_element(evaluated(squares, point)) ^ codes, _element(_at(linear, point)) ^ values])


def expected_of(of: Statement, point: np.uint64) -> Elements:
    """The verifier's sum, shape (1,)."""
    one, other, rest = of.relations
    squares = evaluated(product(one.codes.reshape(-1), other.codes.reshape(-1)), point)
    linear = product(_element(_at(rest.codes, point)), _element(of.mask.key))
    return _element(squares) ^ linear ^ _combined(of.mask.codes)


def _at(planes: Elements, point: np.uint64) -> np.uint64:
    return evaluated(planes.reshape(-1), point)


def _combined(words: Elements) -> Elements:
    """The sum of a plane's 64 elements times those of the field's basis, shape (1,)."""
    return np.bitwise_xor.reduce(product(words[0], powers(np.uint64(2), PROOF_MASK_BITS)), keepdims=True)


def _element(value: np.uint64) -> Elements:
    return np.array([value], np.uint64)


def _check_size(what: str, size: int, value: bytes) -> None:
    if len(value) != size:
        raise ValueError(f"its {what} has {len(value)} bytes, not {size}")
