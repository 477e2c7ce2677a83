"""A joint pseudorandom function: each party learns the pseudonyms of its own elements, and nobody those of another's.

    F(x) = H(x)^k,   k the product of the keys k_G of all groups G of parties,   pseudonym = 16 bytes of a hash of F(x)

H hashes into ristretto255. The groups are all sets of n − t parties, t the number of colluders to withstand: any party
that colludes, one group has none of them, and without its key nobody can compute F. With t = n − 1 every party is a
group of its own and draws its key; with t = n − 2 every pair of parties derives one from its pairwise secret
(replicated secret sharing, in the exponent). Keys are fresh in every call. Equal elements have equal pseudonyms at all
parties.

Steps; list i goes around from party i over t helpers, the next parties in the order of the job:
    0  agree      on the length of all lists: the size class of the job's bound, or of the longest one, a masked maximum
    1  blind      party i raises the H(x) of its elements to 1/b_i, b_i a one-time blind, fills up the list with random
                  points, puts it into a secret order, and sends it to its first helper
    2  pass on    every helper raises each point to the keys of its groups that nobody before it on the way holds; it
                  passes the points on in the order in which they came, the last helper back to party i
    3  strip      party i raises its elements' points to b_i times the keys of its own groups, which strips the blind

The one-time blind matters. If party i sent H(x) raised to its own keys instead, the last helper would hold F(x) of all
that i holds, and with two parties read the intersection off its own pseudonyms.
All lists are on their way at once and in pieces, so that all parties work all the time; while its own list is away, a
party helps with the others'.

Rounds: t + 2.
Output: to each party the pseudonyms of its own elements.
Group multiplications of a party: two for each of its own elements, one for each point of the t lists that it helps.

Adversary: semi-honest. A party that deviates may ask for the pseudonyms of as many elements as its list has places.
Collusion: any t parties together see of another's elements a list of independent uniform points (decisional
    Diffie–Hellman, H a random oracle) and its length, and can compute F of nothing but what their own lists held.
Leakage: whether another party's elements are more than the size class of the bound; without one, the class of the
    longest of the others' lists, from 64 up, which reveals its number of elements within a quarter. Not whose list it
    is. Pseudonyms are not opened here. A party that shows some of its own reveals to all who hold these elements that
    it holds them.

Two different elements get one pseudonym with probability below N²·2^-129 for N elements altogether.

Source: the function is that of Jarecki, Kiayias and Krawczyk, "Round-Optimal Password-Protected Secret Sharing and
T-PAKE in the Password-Only Model", ASIACRYPT 2014 (2HashDH); layers of several parties' keys on blinded elements as in
Huberman, Franklin and Hogg, "Enhancing Privacy and Trust in Electronic Communities", EC 1999; keys held by groups as in
Ito, Saito and Nishizeki, "Secret Sharing Scheme Realizing General Access Structure", GLOBECOM 1987.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from crypto.params import STANDARD_128
from crypto.primitives.groups.commutative import CommutativeKey
from crypto.primitives.groups.ristretto255 import (
    POINT_BYTES,
    UNIFORM_BYTES,
    Points,
    from_uniform_bytes,
    hash_to_group,
    is_valid_points,
)
from crypto.primitives.hashing import encode_fields
from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.union import common_length
from crypto.protocols.union.layers import KERNEL_POINTS, apply, apply_received, pieces
from link.disclosure import Learned
from link.errors import ProtocolViolation
from link.randomness import RandomStream
from link.session import Session
from link.tasks import together
from protos.v1.joint_prf_pb2 import BlindedPoints

T = TypeVar("T")

PSEUDONYM_BYTES: Final = 16
_DOMAIN: Final = encode_fields(STANDARD_128.suite.encode(), b"joint prf")
_OUTPUT: Final = hashlib.sha256(encode_fields(STANDARD_128.suite.encode(), b"joint prf output"))

Pseudonyms = NDArray[np.uint8]
"""Shape (m, 16)."""

GroupKeys = Mapping[frozenset[str], CommutativeKey]
"""The keys that one party holds, by the group of parties that hold them."""


async def pseudonyms(
    session: Session,
    secrets: PairwiseSecrets,
    elements: Sequence[bytes],
    *,
    bound: int | None = None,
    colluders: int | None = None,
    key: str = "[union] bound",
) -> Pseudonyms:
    """Learns the pseudonyms of this party's elements under a function that is new in every call.

    Every party calls this with the same arguments but `elements`.

    Args:
        session: The lane to use; one call per lane.
        secrets: From `pairwise.agree` in this session.
        elements: This party's elements, different byte strings of any length; perhaps none.
        bound: The most elements that any party may hold, public; rounded up to a size class. With None all learn the
            size class of the longest list, the least (4 + q)·2^j that holds its elements (q = 0 … 3), at least 64.
        colluders: t, how many parties together must not be able to compute a pseudonym by themselves: n − 1 (by
            default), or n − 2, which spares each list one party's work.
        key: The job's key that sets the bound, for people.

    Returns:
        Shape (m, 16), in the order of `elements`.

    Raises:
        ConfigurationError: Some party has more elements than the bound allows (reported to all alike, not whose they
            are or how many), or the bound allows none.
        MalformedMessage: A peer sent what is no group element.
        ProtocolViolation: Different elements came back alike.
        ValueError: An element is given twice, which the other parties would see; or so many colluders are not among
            the choices.
    """
    routes = routes_of(session.parties, colluders)
    if len(set(elements)) != len(elements):
        raise ValueError("the elements of which pseudonyms are made must be different")
    lane = session.lane("joint-prf")
    length = await common_length.agree_on_length(lane.lane("length"), secrets, len(elements), bound, key=key)
    keys = _group_keys(lane, secrets, len(routes[lane.me]))
    helped = [party for party in lane.others if lane.me in routes[party]]
    done = 0

    async def counted(step: Awaitable[T]) -> T:
        nonlocal done
        result = await step
        done += 1
        lane.progress(lane.path, done, 1 + len(helped))
        return result

    own = lane.lane(f"list/{lane.me}")
    found, *_ = await together(
        [
            counted(_owner(own, routes[lane.me], keys, elements, length)),
            *(counted(_helper(lane.lane(f"list/{p}"), p, routes[p], keys, length)) for p in helped),
        ]
    )
    if found is None:
        raise AssertionError("the owner of a list gets its pseudonyms")
    if len(np.unique(found.view(np.dtype((np.void, PSEUDONYM_BYTES))))) != len(elements):
        raise ProtocolViolation(
            f"different elements of {lane.me} came back under one pseudonym, so {' or '.join(lane.others)} sent a "
            "wrong list; check these nodes",
            party=lane.others[0] if len(lane.others) == 1 else None,
        )
    return found


# -- the two roles ---------------------------------------------------------------------------------------------------
async def _owner(
    hop: Session, helpers: Sequence[str], keys: GroupKeys, elements: Sequence[bytes], length: int
) -> Pseudonyms:
    """The party whose list it is: blinds it, and takes it back under all layers but its own."""
    blind = CommutativeKey.generate(hop.randomness("blind"))
    # Blinded by the inverse, so that one pass with the product strips the blind and adds this party's layer.
    strip = _product(keys.values()).blinded(blind)
    order = hop.randomness("order").permutation(length)  # at place p is element order[p], or a random point
    random = hop.randomness("random points")
    for start, stop in pieces(length):
        here = order[start:stop]
        is_element = here < len(elements)
        piece = np.empty((len(here), POINT_BYTES), np.uint8)
        piece[is_element] = await _blinded(hop, blind, [elements[place] for place in here[is_element]])
        piece[~is_element] = await _random_points(hop, random, len(here) - int(is_element.sum()))
        await hop.send_array(helpers[0], BlindedPoints, piece)  # -> 1

    found, last = np.empty((len(elements), PSEUDONYM_BYTES), np.uint8), helpers[-1]
    for start, stop in pieces(length):
        here = order[start:stop]
        is_element = here < len(elements)
        piece = await hop.recv_array(last, BlindedPoints, np.uint8, (len(here), POINT_BYTES))  # <- t + 1
        if not is_element.all():  # checked like the elements, so that no error reveals which is which
            await apply_received(hop, checked, piece[~is_element], last)
        if is_element.any():
            plain = await apply_received(hop, lambda points: _digest(strip.encrypt(points)), piece[is_element], last)
            found[here[is_element]] = plain
    return found


async def _helper(hop: Session, owner: str, helpers: Sequence[str], keys: GroupKeys, length: int) -> None:
    """A party on the way of another's list: adds the layers that are its turn, and passes the points on."""
    way = (owner, *helpers, owner)
    place = way.index(hop.me)
    before, after = way[place - 1], way[place + 1]
    layer = _product(key for group, key in keys.items() if group.isdisjoint(way[:place]))
    for start, stop in pieces(length):
        piece = await hop.recv_array(before, BlindedPoints, np.uint8, (stop - start, POINT_BYTES))  # <- 1 … t
        raised = await apply_received(hop, layer.encrypt, piece, before)
        await hop.send_array(after, BlindedPoints, raised)  # -> 2 … t + 1


# -- groups and their keys ---------------------------------------------------------------------------------------------
def routes_of(parties: Sequence[str], colluders: int | None) -> dict[str, tuple[str, ...]]:
    """By party, the t helpers over which its list goes: the next parties in the order of the job.

    Every group without the owner has a member among them: it has n − t of the n − 1 others, and t of these help.

    Raises:
        ValueError: So many colluders are not among the choices.
    """
    n = len(parties)
    chosen = n - 1 if colluders is None else colluders
    if chosen not in (n - 1, n - 2) or chosen < 1:
        raise ValueError(f"joint pseudonyms of {n} parties withstand {n - 1} or {n - 2} colluders, not {chosen}")
    twice = (*parties, *parties)
    return {party: twice[place + 1 : place + 1 + chosen] for place, party in enumerate(parties)}


def _group_keys(lane: Session, secrets: PairwiseSecrets, colluders: int) -> GroupKeys:
    """The keys of all groups of n − t parties of which this one is a member."""
    if colluders == len(lane.parties) - 1:
        return {frozenset({lane.me}): CommutativeKey.generate(lane.randomness("key"))}
    context = secrets.context(lane, "joint prf")
    return {frozenset({lane.me, peer}): CommutativeKey.generate(secrets.stream(peer, context)) for peer in lane.others}


def _product(keys: Iterable[CommutativeKey]) -> CommutativeKey:
    """The key whose one pass adds the layers of all."""
    return reduce(CommutativeKey.blinded, keys)


# -- points ----------------------------------------------------------------------------------------------------------
async def _blinded(hop: Session, blind: CommutativeKey, elements: Sequence[bytes]) -> Points:
    """Hashed and blinded in one pass, several chunks at a time; shape (m, 32)."""
    chunks = [elements[start : start + KERNEL_POINTS] for start in range(0, len(elements), KERNEL_POINTS)]
    blinded = await hop.map(lambda chunk: blind.decrypt(hash_to_group(chunk, _DOMAIN)), chunks)
    return np.concatenate([np.empty((0, POINT_BYTES), np.uint8), *blinded])


async def _random_points(hop: Session, random: RandomStream, size: int) -> Points:
    """Uniform points, as all blinded ones look; shape (size, 32)."""
    if not size:
        return np.empty((0, POINT_BYTES), np.uint8)
    uniform = np.frombuffer(random.bytes(size * UNIFORM_BYTES), np.uint8).reshape(size, UNIFORM_BYTES)
    return await apply(hop, from_uniform_bytes, uniform)


def checked(points: Points) -> Points:
    """The points themselves, for those that nothing else checks.

    Raises:
        ValueError: One is not the canonical encoding of an element other than the identity.
    """
    if not (is_valid_points(points) & points.any(axis=1)).all():
        raise ValueError("a row is not a valid group element other than the identity")
    return points


def _digest(points: Points) -> Pseudonyms:
    """The pseudonyms of points of shape (m, 32)."""
    rows = points.tobytes()
    digests = []
    for start in range(0, len(rows), POINT_BYTES):
        output = _OUTPUT.copy()
        output.update(rows[start : start + POINT_BYTES])
        digests.append(output.digest()[:PSEUDONYM_BYTES])
    return np.frombuffer(b"".join(digests), np.uint8).reshape(-1, PSEUDONYM_BYTES)


# -- what follows ----------------------------------------------------------------------------------------------------
def leakage(parties: Sequence[str], bound: int | None = None) -> list[Learned]:
    """Who learns what while pseudonyms are made.

    Args:
        parties: All parties of the job.
        bound: As given to `pseudonyms`.
    """
    return [common_length.leakage(parties, "elements", bound)]
