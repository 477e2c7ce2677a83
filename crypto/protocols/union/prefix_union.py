"""Union by prefixes: which elements any of n parties holds, and nothing else, whoever colludes.

Elements are hashed to points under a fresh public key. The parties go down the tree of the points' prefixes and ask for
the OR of one private bit of each of them: does anyone hold an element under this prefix? What is opened, here and
below, is a function of the union and the public key alone.

Steps:
    0  limits     whether some set, or some element, is over a limit of the job, by a masked maximum
    1  prefixes   while more than a quarter of all prefixes of a length are in use: which of their extensions are in use
    2  lengths    for each open prefix, the length of the elements under it, in words that can be laid over one another
                  (`unordered_code`): their OR is a word exactly if they are equal, and 0 if there is none
    3  names      for each prefix with one length, the bytes of the elements under it, in such words: their OR is a word
                  exactly if there is one element, and then it is this
    4             the prefixes of several elements are extended, and 2 to 4 repeated, until there is none

Rounds: n + 1 for each question, and 1. Questions: one or two of step 1 up to some thousand elements, and about
    2·(1 + log_32 |∪|) of steps 2 and 3.
Bits: 4,096, and about 13 + 5·12 + 1.2·(8L + 6) at the most, for each element of L bytes.
Output: the union in ascending order, to all parties.

Adversary: semi-honest. Nothing protects sets or the result against a party that deviates.
Collusion: n − 1 parties learn nothing but the union: the ORs are computed on shares (`shared_or`), and what is opened
    follows from the union. So do any number of unions of the same sets tell no more than one.
Leakage: whether some *other* party is over a limit.
Fails with an error if two elements have one point: with a chance of |∪|²/2^129.

Source: the tree of prefixes as in Boneh, Boyle, Corrigan-Gibbs, Gilboa and Ishai, "Lightweight Techniques for Private
Heavy Hitters", IEEE S&P 2021, with ORs in place of sums, so that counts are not seen.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from crypto.primitives import unordered_code as code
from crypto.primitives.groups.point_hash import KEY_BYTES, points_of
from crypto.primitives.hashing import derive_key, encode_labels
from crypto.protocols.comparison.shared_bits import open_bits
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.sums.masked_maximum import masked_maximum
from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.union.limits import KEY, check_limits, longest_allowed, over_limits, refuse_over_limits
from crypto.protocols.union.prefixes import DENSE_BITS, FIRST_BITS, IN_USE, LIMITS, MOST_BITS, SPARSE_BITS, Prefixes
from crypto.protocols.union.shared_or import MOST_BITS as MOST_AT_ONCE
from crypto.protocols.union.shared_or import shared_or
from crypto.protocols.union.size_classes import SETS
from link.errors import ProtocolViolation
from link.session import Session

Bits = NDArray[np.uint8]
Limits = tuple[bool, bool]
"""Whether a set holds too many elements, and whether one is too long."""
Ors = Callable[[Session, Bits], Awaitable[Bits]]


async def prefix_union(
    session: Session,
    secrets: PairwiseSecrets,
    pairs: Mapping[str, TwoParty],
    elements: Collection[bytes],
    *,
    max_element_bytes: int,
    bound: int | None = None,
    label: str = "union",
    key: str = KEY,
) -> list[bytes]:
    """Learns the union of all parties' sets.

    Every party calls this with the same arguments but `elements`.

    Args:
        session: The lane to use.
        secrets: From `pairwise.agree` in this session.
        pairs: From `shared_or.pairs_of` in this session.
        elements: This party's set; any byte strings, repeated ones count once.
        max_element_bytes: The longest element that the job allows, public; so are all of its class.
        bound: The most elements that any party's set may hold, public; rounded up to the least power of two, at least
            64, that is not below it.
        label: A label of the job's statement under which bits are opened, for `most_opened` values.
        key: The job's key that sets the bound, for people.

    Returns:
        The elements in ascending order of their bytes, equal at all parties.

    Raises:
        ConfigurationError: Some party's set is over the bound or has too long an element (reported to all alike,
            without whose it is or by how much), or the arguments make no union.
        MalformedMessage: A peer's messages have another size.
        ProtocolViolation: What came out is no union that contains this party's set.
    """

    async def over_somewhere(lane: Session, over: Limits) -> Limits:
        largest = await masked_maximum(lane, secrets, [int(each) for each in over], LIMITS)  # <-> 0
        return largest[0] == 1, largest[1] == 1

    async def ors(lane: Session, bits: Bits) -> Bits:
        shares = await shared_or(lane, pairs, bits)
        opened = await open_bits(lane, shares, label=label, holders=lane.parties, number=len(bits))
        if opened is None:
            raise AssertionError("answers are opened to all")
        return opened.astype(np.uint8)

    return await united(
        session, elements, over_somewhere, ors, max_element_bytes=max_element_bytes, bound=bound, label=label, key=key
    )


async def united(
    session: Session,
    elements: Collection[bytes],
    over_somewhere: Callable[[Session, Limits], Awaitable[Limits]],
    ors: Ors,
    *,
    max_element_bytes: int,
    bound: int | None,
    label: str,
    key: str,
) -> list[bytes]:
    """The union, whatever way ORs are found; other arguments, output and errors as of `prefix_union`.

    Args:
        session: The lane to use.
        elements: This party's set.
        over_somewhere: Whether any party's flags are set, on a lane of its own.
        ors: Opens the ORs of all parties' bits to all, on a lane of its own.
        max_element_bytes: The longest element that the job allows.
        bound: The most elements of a set.
        label: Of what is opened.
        key: The job's key that sets the bound.
    """
    lane = session.lane("union")
    own = await session.compute(lambda: sorted(set(elements)))
    check_limits(label, bound, max_element_bytes)
    over = await over_somewhere(lane.lane("limits"), over_limits(own, bound, max_element_bytes))
    refuse_over_limits(over, label, bound, max_element_bytes, key=key)

    name = derive_key(lane.id, "prefix union", encode_labels(lane.path), size=KEY_BYTES)
    prefixes = Prefixes.of(await lane.compute(points_of, own, name)).extended(FIRST_BITS)
    ask, longest = _Questions(lane, ors), longest_allowed(max_element_bytes)
    most = len(lane.parties) * (SETS.most if bound is None else SETS.rounded(bound))

    while True:
        prefixes = prefixes.only(await ask(prefixes.in_use()) == 1)  # 1
        if prefixes.number * IN_USE <= 1 << prefixes.bits:
            break
        prefixes = _within(prefixes, most, lane).extended(DENSE_BITS)
    union: list[bytes] = []
    while prefixes.number:
        found, several = await _names(ask, _within(prefixes, most, lane), own, longest)  # 2, 3
        union += found
        prefixes = prefixes.only(several)
        if prefixes.number and prefixes.bits == MOST_BITS:
            raise _no_union(lane, "has elements that cannot be told apart")
        prefixes = prefixes.extended(min(SPARSE_BITS, MOST_BITS - prefixes.bits))  # 4
    union.sort()
    if not set(own).issubset(union) or any(one == other for one, other in pairwise(union)):
        raise _no_union(lane, f"lacks elements of {lane.me} or repeats some")
    return union


async def _names(
    ask: _Questions, prefixes: Prefixes, own: Sequence[bytes], longest: int
) -> tuple[list[bytes], NDArray[np.bool_]]:
    """The elements that are alone under their prefixes, and which prefixes hold several."""
    held, lengths_bits = prefixes.held(), longest.bit_length()
    lengths = np.array([len(own[place]) for place in held], np.int64)
    words = code.words_of((lengths[:, None] >> np.arange(lengths_bits) & 1).astype(np.uint8))
    answer = (await ask(prefixes.laid_over(held, words).ravel())).reshape(prefixes.number, -1)  # 2
    alike = code.are_words(answer, lengths_bits)
    several = answer.any(axis=1) & ~alike
    length_of = np.where(alike, answer[:, :lengths_bits] @ (1 << np.arange(lengths_bits)), -1)
    if length_of.max() > longest:
        raise _no_union(ask.lane, "has longer elements than the job allows")

    groups = [(int(length), np.flatnonzero(length_of == length)) for length in np.unique(length_of[alike])]
    laid = [_laid_names(ask.lane, prefixes.only(length_of == length), own, length) for length, _ in groups]
    names = await ask(np.concatenate([each.ravel() for each in laid]) if laid else np.empty(0, np.uint8))  # 3
    found: list[bytes] = []
    done = 0
    for (length, numbers), own_part in zip(groups, laid, strict=True):
        part = names[done : done + own_part.size].reshape(own_part.shape)
        done += own_part.size
        single = code.are_words(part, 8 * length)
        several[numbers[~single]] = True
        data = np.packbits(part[single, : 8 * length], axis=1)
        found += [row.tobytes() for row in data]
    return found, several


def _laid_names(lane: Session, prefixes: Prefixes, own: Sequence[bytes], length: int) -> Bits:
    """The words of this party's elements under prefixes whose elements have this length."""
    held = prefixes.held()
    names = [own[place] for place in held]
    if any(len(name) != length for name in names):
        raise _no_union(lane, f"lacks elements of {lane.me} or repeats some")
    data = np.frombuffer(b"".join(names), np.uint8).reshape(len(names), length)
    return prefixes.laid_over(held, code.words_of(np.unpackbits(data, axis=1)))


class _Questions:
    """Asks all parties for the ORs of bits, one question after the other on lanes of their own."""

    def __init__(self, lane: Session, ors: Ors) -> None:
        self.lane, self._ors, self._asked = lane, ors, 0

    async def __call__(self, bits: Bits) -> Bits:
        """The ORs over all parties, shape (m,), each 0 or 1.

        Args:
            bits: This party's, shape (m,); m is public.
        """
        answers = [np.empty(0, np.uint8)]
        for start in range(0, len(bits), MOST_AT_ONCE):
            part = bits[start : start + MOST_AT_ONCE]
            lane = self.lane.lane(f"question {self._asked}")
            self._asked += 1
            answers.append(await self._ors(lane, part))
            self.lane.progress(self.lane.path, self._asked, self._asked + 1)
        return np.concatenate(answers)


def _within(prefixes: Prefixes, most: int, lane: Session) -> Prefixes:
    if prefixes.number > most << SPARSE_BITS:
        raise _no_union(lane, "has more elements than all sets together may")
    return prefixes


def _no_union(lane: Session, what: str) -> ProtocolViolation:
    return ProtocolViolation(
        f"the union {what}, so a peer sent wrong bits or has another version; check all nodes",
        party=lane.others[0] if len(lane.others) == 1 else None,
    )
