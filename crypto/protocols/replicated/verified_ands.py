"""ANDs on replicated bits of three holders, of whom one may deviate: each holder proves that its parts are right.

    1  evaluate  ANDs are taken as among semi-honest holders: each sends its part, under a sharing of zero, to the one
                 before it. With the last parts goes the proof of all, one share of it; the other is drawn from what the
                 prover has in common with the holder after it (`evaluated`)
    2  sums      of each proof, the holder before the prover gives the one after sums of its operands under masks, with
                 its share's sums, as a digest: `and_proofs`. By what the prover has told it, the one after knows that
                 they are the right ones
    3  agree     the one after compares, and says to both others that the proof holds; a holder goes on once it has
                 that of all proofs (`check`). With that, it tells them of outputs that are to be of zeros, such that a
                 holder can read it only if both others say that the proofs hold which they have checked

All that a holder can do to an AND is to add bits to it, which it chooses without knowing the operands, and its proof
then fails.

Rounds: one a step of the circuits; 2 for the check. Bits: 1 an AND from each holder, and for the proof 656 / B of one,
    with B from 4 to 64: 10,000 comparisons of 14 bits take 4 bits an AND in all.

Output: replicated shares of the circuits' outputs, right but with probability 2^-40; or an error at every honest
    holder.
Adversary: malicious, one of the three, in the random oracle model (the challenge of a proof is drawn from what has been
    sent).
Leakage: none but whether these outputs are zeros. Shares of a proof and sums under masks are uniform; what they are
    compared with follows from what the receiver has, and whether the proof holds from what the prover has added.

Source: Boyle, Gilboa, Ishai and Nof, CCS 2019 (semi-honest ANDs, then a proof of each holder); Furukawa, Lindell, Nof
and Weinstein, EUROCRYPT 2017, section 2.3 and Lemma 2.3 (attacks on an AND add to it).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np
from google.protobuf.message import Message

from crypto.primitives.hashing import encode_labels
from crypto.primitives.randomness import Randomness
from crypto.primitives.shares.replicated import Holders3
from crypto.primitives.shares.replicated_bits import Planes, ReplicatedBits
from crypto.primitives.shares.ring_matrix import random_matrix
from crypto.protocols.replicated.and_proofs import (
    COMBINATIONS,
    HASH_BYTES,
    SEED_BYTES,
    Common,
    Hashes,
    drawn,
    fingerprint_bytes,
    fingerprints,
    hashes_of,
    in_rows,
    products,
    row_count,
    summed_rows,
    summed_share,
)
from crypto.protocols.replicated.circuits import Circuit, side_by_side
from crypto.protocols.replicated.crosschecks import DIGEST_BYTES, contradiction, digest, neighbours
from crypto.protocols.replicated.zero_checks import COMMITMENT_BYTES, are_zeros, tell
from crypto.protocols.sums.pairwise import PairwiseSecrets
from link.errors import ProtocolViolation
from link.session import Session
from protos.v1.verified_pb2 import (
    MaskedAnds,
    MaskedOperandSums,
    MaskedProof,
    ProofDigest,
    ProofFingerprints,
    ProofHolds,
)

P = ParamSpec("P")
R = TypeVar("R")
_AT_ONCE: Final = 1 << 14  # bytes, up to which work is not handed over: that would take as long


@dataclass(frozen=True, slots=True, repr=False)
class Ands:
    """Operands of ANDs, one plane each, and what this holder has sent of them, shape (bytes,).

    Attributes:
        x: Of one side.
        y: Of the other.
        part: This holder's.
        with_before: The mask on it that this holder and the one before it have in common.
        with_after: Likewise, the one after it.
    """

    x: ReplicatedBits
    y: ReplicatedBits
    part: Planes
    with_before: Planes
    with_after: Planes


@dataclass(frozen=True, slots=True, repr=False)
class Evaluated:
    """What is checked before an output is used.

    Attributes:
        outputs: Of the circuits.
        ands: All of them.
        following: The parts of the holder after this one.
        proof: The share that this holder has of that one's proof.
        told: What the holder before has told of its proof.
        path: Of the lane on which all that was sent.
        before: What this holder and the one before it have drawn for proofs.
        after: Likewise, the one after it.
    """

    outputs: list[Any]
    ands: Ands
    following: Planes
    proof: Hashes
    told: ProofFingerprints
    path: str
    before: Common
    after: Common


async def evaluated(
    session: Session,
    secrets: PairwiseSecrets,
    holders: Holders3,
    circuits: Sequence[Circuit[ReplicatedBits, Any]],
    size: int,
    zeros: int = 0,
) -> Evaluated:
    """Evaluates circuits side by side, and proves the parts that this holder sends.

    Args:
        session: The lane to use, fresh for this call.
        secrets: From `pairwise.agree` in this session.
        holders: The three, who call this alike.
        circuits: Of planes of one size.
        size: Bytes of all their ANDs, public: one or more.
        zeros: How many shares are to be of zeros, see `check`; public.

    Raises:
        MalformedMessage: A holder's message has another size.
    """
    before, after = neighbours(session, holders)
    context = secrets.context(session, "ANDs")
    streams = secrets.stream(before, context), secrets.stream(after, context)
    steps: list[Ands] = []
    following: list[Planes] = []
    ands: Ands | None = None
    circuit, results, done = side_by_side(circuits), None, 0
    while True:
        try:
            x, y = next(circuit) if results is None else circuit.send(results)
        except StopIteration as end:
            outputs = end.value
            break
        step = await _done(session, x.own.size, _masked, streams, x, y)
        await session.send_array(before, MaskedAnds, step.part)
        steps.append(step)
        done += step.part.size
        if done == size:  # the last ones: the proof of all goes with them
            ands = _joined(steps)
            common = await _done(session, size, _drawn, streams, size, zeros * DIGEST_BYTES)
            seed = challenge(session, session.path, session.me, ands.part)
            proof, prints = await _done(session, size, _proof, common, ands, seed)
            await session.send_array(before, MaskedProof, proof)
            await session.send(after, ProofFingerprints(seed=seed, fingerprints=prints.tobytes()))
        parts = await session.recv_array(after, MaskedAnds, np.uint8, step.part.shape)
        following.append(parts)
        shape = x.own.shape
        results = ReplicatedBits(step.part.reshape(shape), parts.reshape(shape), session.me, holders)
    if ands is None or done != size:
        raise ValueError(f"the circuits have other than {size} bytes of ANDs")
    rows = row_count(size)
    share = await session.recv_array(after, MaskedProof, np.uint8, (rows + COMBINATIONS, rows, HASH_BYTES))

    def check_told(message: ProofFingerprints) -> None:
        _check_sizes(message, seed=SEED_BYTES, fingerprints=fingerprint_bytes(rows))

    told = await session.recv(before, ProofFingerprints, check_told)
    return Evaluated(outputs, ands, np.concatenate(following), share, told, session.path, *common)


async def check(
    session: Session, holders: Holders3, of: Evaluated, zeros: Sequence[ReplicatedBits] = (), what: str = ""
) -> list[bool]:
    """Checks all ANDs; nothing that follows from the outputs may be opened before this has returned.

    What holders tell each other of shares that are to be of zeros, the receiver can read only if both others have found
    all proofs right that they have checked: `zero_checks`.

    Args:
        session: The lane to use, fresh for this call.
        holders: The three, who call this alike.
        of: From `evaluated`; its inputs have been compared by now.
        zeros: Among its outputs, as many as `evaluated` was told of.
        what: Of what these are, for an error.

    Returns:
        Whether each of them is of zeros alone.

    Raises:
        ProtocolViolation: An AND is wrong, or the two others contradict each other.
        MalformedMessage: A holder's message has another size.
    """
    before, after = neighbours(session, holders)
    size = of.ands.part.size
    own, following = (
        challenge(session, of.path, name, parts) for name, parts in ((session.me, of.ands.part), (after, of.following))
    )
    # Of the proof of the holder after, this one knows the first operands; of that of the holder before, the others.
    rows, told, pads = await _done(session, size, _sums, of, following)
    await session.send(before, ProofDigest(seed=following, digest=digest(told), pads=pads.tobytes()))
    await session.send_array(before, MaskedOperandSums, rows)
    claim = await session.recv(after, ProofDigest, _check_claim)
    summed = await session.recv_array(after, MaskedOperandSums, np.uint8, rows.shape)
    # Only if challenge and sums are the prover's is the outcome free of this holder's bits.
    if claim.seed != of.told.seed or not await _done(session, size, _are_the_provers, of, claim.pads, summed):
        raise contradiction(before, after, "what is summed up in the check of ANDs")
    expected = await _done(session, size, _expected, of, claim.seed, summed)
    if digest(expected) != claim.digest:
        raise ProtocolViolation(
            f"an AND of the comparison is wrong, by {before} or by {after}; one of these two nodes deviates"
        )
    # The holder before lacks the following components, which the one after has, too, and that one lacks the own ones.
    for peer, parts, common in (
        (before, [share.following for share in zeros], of.after),
        (after, [share.own for share in zeros], of.before),
    ):
        holds = ProofHolds(seed=claim.seed)
        tell(holds, parts, common, earlier=peer == before)
        await session.send(peer, holds)
    heard = {}
    for peer, other, seed in ((after, before, own), (before, after, following)):
        heard[peer] = await session.recv(peer, ProofHolds, partial(_check_holds, len(zeros)))
        if heard[peer].seed != seed:
            raise contradiction(peer, other, "the check of ANDs")
    found = are_zeros(zeros, heard[before], heard[after])
    if found is None:
        raise contradiction(before, after, what)
    return found


def challenge(session: Session, path: str, prover: str, parts: Planes) -> bytes:
    """The seed of the hash for a proof, from all that it is about."""
    labels = encode_labels("proof of ANDs", session.id, path, prover, digest(parts))
    return hashlib.sha256(labels).digest()


def _masked(streams: tuple[Randomness, Randomness], x: ReplicatedBits, y: ReplicatedBits) -> Ands:
    part = x.local_and(y).reshape(-1)
    with_before, with_after = (random_matrix(stream, (1, part.size), np.uint8)[0] for stream in streams)
    part ^= with_before
    part ^= with_after
    return Ands(x.reshaped(1), y.reshaped(1), part, with_before, with_after)


def _drawn(streams: tuple[Randomness, Randomness], size: int, covered: int) -> tuple[Common, Common]:
    before, after = streams
    return drawn(before, size, covered), drawn(after, size, covered)


def _proof(common: tuple[Common, Common], ands: Ands, seed: bytes) -> tuple[Hashes, Hashes]:
    """The share of this holder's proof that goes to the holder before, and fingerprints for the one after."""
    before, after = common
    rows = np.concatenate([in_rows(ands.x.own, ands.y.own), before.masks], axis=1)
    found = products(seed, rows, in_rows(ands.x.following, ands.y.following))
    found ^= after.share
    return found, fingerprints(after.keys, rows) ^ before.pads


def _sums(of: Evaluated, seed: bytes) -> tuple[Planes, Hashes, Hashes]:
    """Of the proof of the holder after: sums of its first operands under masks, of this holder's share, and of pads."""
    ands, which = of.ands, of.before.sums
    rows = in_rows(ands.x.following, ands.y.following)
    found = np.stack([summed_rows(which, *each) for each in zip(rows, of.after.masks, strict=True)])
    known = (ands.x.following & ands.y.following)[0] ^ of.following ^ ands.with_after
    pads = summed_rows(which, *np.split(of.after.pads, [rows.shape[1]]))
    return found, summed_share(which, of.proof, hashes_of(seed, known)), pads


def _are_the_provers(of: Evaluated, pads: bytes, summed: Planes) -> bool:
    """Whether the sums have the fingerprints that follow from those of the holder before."""
    told = np.frombuffer(of.told.fingerprints, np.uint8).reshape(-1, HASH_BYTES)
    which = of.after.sums
    expected = summed_rows(which, *np.split(told, [which.shape[1]]))
    expected ^= np.frombuffer(pads, np.uint8).reshape(-1, HASH_BYTES)
    return bool((fingerprints(of.before.keys, summed) == expected).all())


def _expected(of: Evaluated, seed: bytes, summed: Planes) -> Hashes:
    """Of the proof of the holder before: what the sums of the other share have to be."""
    ands = of.ands
    found = products(seed, summed, in_rows(ands.x.own, ands.y.own)).reshape(COMBINATIONS, -1)
    found ^= summed_share(of.after.sums, of.before.share, hashes_of(seed, ands.with_before))
    return found


async def _done(session: Session, size: int, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Work on so many bytes, off the event loop if these are many."""
    return function(*args, **kwargs) if size <= _AT_ONCE else await session.compute(function, *args, **kwargs)


def _joined(steps: Sequence[Ands]) -> Ands:
    x, y = (ReplicatedBits.joined(parts) for parts in zip(*((each.x, each.y) for each in steps), strict=True))
    parts = zip(*((each.part, each.with_before, each.with_after) for each in steps), strict=True)
    return Ands(x, y, *(np.concatenate(each) for each in parts))


def _check_claim(message: ProofDigest) -> None:
    _check_sizes(message, seed=SEED_BYTES, digest=DIGEST_BYTES, pads=COMBINATIONS * HASH_BYTES)


def _check_holds(zeros: int, message: ProofHolds) -> None:
    size, commitment = zeros * DIGEST_BYTES, COMMITMENT_BYTES * bool(zeros)
    _check_sizes(message, seed=SEED_BYTES, digests=size, mask=size, commitment=commitment)


def _check_sizes(message: Message, **sizes: int) -> None:
    for field, size in sizes.items():
        if len(getattr(message, field)) != size:
            raise ValueError(f"its {field} has {size} bytes, not {len(getattr(message, field))}")
