"""Secure sum under pairwise masks: what n parties' vectors add up to modulo 2^w, and nothing about who gave what.

Every pair of parties draws a common mask; one adds it to its vector, the other subtracts it. A masked vector is
therefore one of n additive shares of the sum, and bringing all of them together in one place *is* the opening.

`secure_sum` opens the sum to the receivers; `shared_sum` leaves it as two additive shares for a later protocol.

The word size w is that of the vectors: 64 bits, or fewer where all parties know that no sum needs more (`word_for`).
Masks are uniform in every word size, so the shorter ones cost bytes and nothing else.

Rounds, after one round of `pairwise.agree` per session:
    `secure_sum`: 1 for short vectors (at most 64 KiB), one receiver or two parties: each party opens its masked vector
        to each receiver. Else 2: receiver j adds up slice j of all masked vectors and opens it to the other receivers,
        which costs 2·(n − 1)/n vectors per party instead of n − 1.
    `shared_sum`: 1, none with two parties.
Output: `secure_sum` the sum, to the receivers; `shared_sum` one share to each of the two holders.

Adversary: semi-honest; a party may still choose its input as it likes, and receivers that get the sum first may keep
it. All parties must stay to the end: one that is lost ends the sum.
Collusion: up to n − 2 parties, receivers among them or not, learn from the masked vectors only the sum over the others.
    With n = 2 and an open result each receiver computes the other's vector: there is nothing to hide it behind.
    With `shared_sum` the two holders together open the sum, so with n = 3 they learn the third's vector, with n ≥ 4 the
    sum over the others, never one contribution; a holder alone, or any parties without the other holder, learn nothing.
Leakage: the public m, and that the parties took part. A receiver learns the sum.

Source: Bonawitz et al., "Practical Secure Aggregation for Privacy-Preserving Machine Learning", CCS 2017, section 4,
pairwise masking without its recovery from drop-outs; Ács and Castelluccia, "I have a DREAM! (DiffeRentially privatE
smArt Metering)", Information Hiding 2011. The slices are the reduce-scatter and all-gather of Thakur, Rabenseifner and
Gropp, "Optimization of Collective Communication Operations in MPICH", IJHPCA 19(1), 2005.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

import numpy as np

from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.masks import Words
from crypto.protocols.sums.pairwise import PairwiseSecrets
from link.disclosure import Declared
from link.session import Session
from link.tasks import together
from protos.v1.secure_sum_pb2 import MaskedValues

R = TypeVar("R")

DIRECT_BYTES: Final = 64 << 10  # up to here one round outweighs what slices save
_HEAVY_BYTES: Final = 1 << 20  # from here work leaves the event loop


def declared(label: str, receivers: Iterable[str], maximum: int, *, what: str, when: str) -> Declared:
    """The statement's line for sums opened under `label`.

    Args:
        label: As given to `secure_sum`.
        receivers: Who learns the sums.
        maximum: The most values of all sums under the label together.
        what: What is summed, in words.
        when: The step of the job.
    """
    return Declared(label, frozenset(receivers), what, maximum, when)


def word_for(largest: int) -> np.dtype[np.unsignedinteger[Any]]:
    """The shortest word in which sums of up to `largest`, a public bound, do not wrap around."""
    return np.min_scalar_type(largest)


async def secure_sum(
    session: Session,
    secrets: PairwiseSecrets,
    values: Words,
    *,
    label: str,
    to: Sequence[str] | None = None,
) -> Words | None:
    """Opens the sum of all parties' vectors to the receivers.

    Every party calls this with the same m, label and receivers, in the same order on one lane.

    Args:
        session: The lane to use.
        secrets: From `pairwise.agree` in this session.
        values: Shape (m,), unsigned; m and the type are public and equal at all parties; m may be 0.
        label: A label of the job's statement, for at least m values per receiver.
        to: The receivers; all parties by default.

    Returns:
        Shape (m,), the sum modulo 2^w in the type of `values`; None to a party that is no receiver.

    Raises:
        UndeclaredDisclosure: The statement does not name the label, a receiver or enough values.
        MalformedMessage: A peer's vector has another length. In slices not every receiver sees it, but one that does
            ends the job before anybody has the whole sum.
    """
    receivers = _receivers(session, to)
    _check(values)
    masked = await _masked(session, secrets, values, f"secure sum '{label}'")
    if values.nbytes <= DIRECT_BYTES or len(receivers) == 1 or len(session.parties) == 2:
        return await _open_whole(session, masked, label, receivers)
    return await _open_sliced(session, masked, label, receivers)


async def _open_whole(session: Session, masked: Words, label: str, receivers: Sequence[str]) -> Words | None:
    """Every party opens its masked vector to every receiver: 1 round."""
    await session.open(label, masked, receivers)  # -> 1
    if session.me not in receivers:
        return None
    await _add_opened(session, masked, label)  # <- 1
    return masked


async def _open_sliced(session: Session, masked: Words, label: str, receivers: Sequence[str]) -> Words | None:
    """Receiver j adds up slice j and opens it to the other receivers: 2 rounds."""
    parts = dict(zip(receivers, slices(len(masked), len(receivers)), strict=True))
    others = [r for r in receivers if r != session.me]
    # All is sent before anything is taken, so that a frame counts as round 1 whatever has already arrived; the
    # transport receives meanwhile.
    await together(session.open(label, masked[parts[r]], [r]) for r in others)  # -> 1
    if session.me not in receivers:
        return None

    total = masked  # in place: what has been sent is a copy
    mine = total[parts[session.me]]
    await _add_opened(session, mine, label)  # <- 1
    await together(session.open(label, mine, [r]) for r in others)  # -> 2
    for receiver in others:
        part = total[parts[receiver]]
        part[:] = await session.receive_opened(receiver, label, part.dtype, part.shape)  # <- 2
    return total


async def shared_sum(
    session: Session, secrets: PairwiseSecrets, values: Words, holders: tuple[str, str]
) -> AdditiveShare | None:
    """Leaves the sum of all parties' vectors as additive shares of two parties; nothing is opened.

    The masks among all n parties stay on: what the first holder adds up is still masked by the second's.

    Args:
        session: The lane to use.
        secrets: From `pairwise.agree` in this session.
        values: Shape (m,), unsigned; m and the type are public and equal at all parties.
        holders: Two different parties, in the same order at all parties.

    Returns:
        The holder's share, of length m in the word of `values`; None to the other parties.

    Raises:
        MalformedMessage: A peer's vector has another length.
    """
    _check(values)
    if len(set(holders)) != 2 or not set(holders) <= set(session.parties):
        raise ValueError(f"the holders of a shared sum are two different parties of the job, not {holders}")
    first, second = holders
    masked = await _masked(session, secrets, values, "shared sum")
    if session.me == second:
        return AdditiveShare(masked, session.me, holders)
    if session.me != first:
        await session.send_array(first, MaskedValues, masked)  # -> 1
        return None
    for peer in session.others:
        if peer != second:
            theirs = await session.recv_array(peer, MaskedValues, masked.dtype, masked.shape)  # <- 1
            await _add(session, masked, theirs)
    return AdditiveShare(masked, session.me, holders)


def slices(m: int, count: int) -> list[slice]:
    """0 … m − 1 in `count` consecutive slices whose lengths differ by at most one."""
    return [slice(j * m // count, (j + 1) * m // count) for j in range(count)]


def _receivers(session: Session, to: Sequence[str] | None) -> tuple[str, ...]:
    """In the order of the job, whatever order the caller names them in."""
    if to is None:
        return session.parties
    if not to or not set(to) <= set(session.parties):
        raise ValueError(f"the receivers of a sum are parties of the job, at least one, not {list(to)}")
    return tuple(p for p in session.parties if p in set(to))


def _check(values: Words) -> None:
    if values.dtype.kind != "u" or values.ndim != 1:
        raise ValueError(f"a sum is over vectors of unsigned integers, not over {values.dtype} of shape {values.shape}")


async def _masked(session: Session, secrets: PairwiseSecrets, values: Words, purpose: str) -> Words:
    context = secrets.context(session, purpose)
    return await _work(session, values.nbytes, lambda: secrets.mask(values, context))


async def _add_opened(session: Session, total: Words, label: str) -> None:
    """Adds what all others open to this party's masked values, in place: the masks cancel."""
    for peer in session.others:
        await _add(session, total, await session.receive_opened(peer, label, total.dtype, total.shape))


async def _add(session: Session, total: Words, part: Words) -> None:
    await _work(session, part.nbytes, lambda: np.add(total, part, out=total))


async def _work(session: Session, size_bytes: int, function: Callable[[], R]) -> R:
    """Off the event loop where it would hold up the streams; a short call costs less than the change of thread."""
    return await session.compute(function) if size_bytes > _HEAVY_BYTES else function()
