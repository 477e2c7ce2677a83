"""Secure set union: which elements any of n parties holds, and not who holds them.

Every party encrypts every element of every list with a commutative cipher and shuffles it. Fully encrypted, equal
elements are equal ciphertexts, so one party, the merger, removes duplicates without knowing what they are; then the
layers come off, again with a shuffle at every party, and only the union is left.

Steps (the ring is the parties' order with the merger taken out and put at both ends):
    0  agree      on one length class, and on one size class where the job fixes no bound: the masked maxima over all
                  parties' sets, and whether some set is over a limit, which is rounded up to a class itself
    1  encrypt    list i starts at its owner and passes all other parties but the merger in the order of the ring; each
                  raises it to its own fresh key and permutes the tuples; the last one hands it to the merger. The
                  merger's own list goes around under a one-time wrapping, which the merger takes off in step 2.
    2  merge      the merger removes duplicates, raises everything to a fresh blind, and permutes
    3  strip      the merged list passes all other parties; each strips its own key and permutes the tuples
    4  open       the merger strips the blind, drops fakes, and opens the sorted union

Step 2 serves as the merger's layer and the blind of the classic scheme at once: since the blind never leaves the
merger before step 3, and every list of step 3 carries it, no value of step 3 occurs in step 1.
Step 3 cannot be split into parts that go around in different orders: the merger knows which ciphertexts it put into
which part, so it would learn part by part, in a small union element by element, who holds what. Instead, parties take
turns: one permutes before it strips and passes on every piece at once, the next strips on arrival and then permutes.

Rounds: 2n + 2. Output: the sorted union, to the receivers and the merger.
Group operations in all, L_i the length of list i with fakes, U the number of different tuples, m the merger:
    (n − 1)·ΣL_i + 2·L_m + |∪_{i≠m} list i| + n·U,  that is at most n·(ΣL_i + U) + L_m,  per block.

Adversary: semi-honest. Nothing protects sets, sizes or the result against a party that deviates.
Collusion: up to n − 2 parties learn no link between an element and its holders (decisional Diffie–Hellman), since the
    others shuffle; what counts they learn is below. To n − 1 parties whatever none of them holds is the last one's, and
    which of *their* elements it holds stays hidden.
Leakage (as data in `union_disclosure.leakage`):
    the merger learns for every pair of other parties how many elements exactly these two hold, plus a number of fakes
        that the pair has in common (shifted, truncated discrete Laplace); for every set of parties that contains the
        merger or has three members the same number exactly.
    every party learns U and with it, from the union, Σ|S_i| plus the numbers of common fakes of pairs without it.
    every party learns the largest length class of the others' sets, and the largest size class where the job fixes no
        bound (2^j, from 64 up: sets of few elements are all alike); whether some other set is over a limit. Nothing of
        it is known by party; all lists are filled up to the same length.
    with n = 2 both so learn the other's set size and the number of common elements; only *which* of a party's own
        elements the other holds is hidden.
    `fill` hides more. "merged": the merger fills the merged list up to the length of all lists together with random
        points, which it drops where they decode to nothing; U is known to the merger alone. "union": besides, every set
        is filled up to its capacity, and the union to the sum of all capacities, with random elements: not even the
        merger learns the size of a set, and nobody else anything of the union's.

Source: Kantarcioglu and Clifton, "Privacy-Preserving Distributed Mining of Association Rules on Horizontally
Partitioned Data", IEEE TKDE 16(9), 2004, section 3. Changed: ristretto255 with a reversible embedding instead of
Pohlig–Hellman over a prime field, whole tuples shuffled at *every* hop, common fakes, the blind.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from decimal import Decimal
from functools import partial

import numpy as np

from crypto.primitives import blocks
from crypto.primitives.commutative import CommutativeKey
from crypto.primitives.ristretto255 import POINT_BYTES, UNIFORM_BYTES, from_uniform_bytes
from crypto.protocols.sums.masked_maximum import masked_maximum
from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.union.layers import apply, apply_received, pieces, shuffled
from crypto.protocols.union.lists import (
    EPSILON_COMMON,
    KEY,
    MOST_CLASSES,
    Fill,
    ListSizes,
    OwnList,
    PointTuples,
    check_limits,
    classes,
    common_fakes,
    distinct,
    filled,
    longest_allowed,
    padded,
    require,
    sizes_of,
    sorted_elements,
    spare_for_common_fakes,
)
from link.errors import ConfigurationError, MalformedMessage, ProtocolViolation
from link.session import Session
from link.tasks import together
from protos.v1.set_union_pb2 import (
    EncryptedList,
    FullyEncryptedList,
    MergedPiece,
    MergedSize,
    UnionSize,
)


async def set_union(
    session: Session,
    secrets: PairwiseSecrets,
    elements: Collection[bytes],
    *,
    merger: str,
    max_element_bytes: int,
    bound: int | None = None,
    label: str = "union",
    epsilon_dup: Decimal | float = EPSILON_COMMON,
    to: Collection[str] | None = None,
    fill: Fill = "lists",
    key: str = KEY,
) -> list[bytes]:
    """Learns the union of all parties' sets.

    Every party calls this with the same arguments but `elements`.

    Args:
        session: The lane to use.
        secrets: From `pairwise.agree` in this session.
        elements: This party's set; any byte strings, repeated ones count once.
        merger: The party that removes duplicates and decrypts last; it learns the most.
        max_element_bytes: The longest element that the job allows, public; elements of as many blocks are allowed, too.
        bound: The most elements that any party's set may hold, public; rounded up to the least power of two, at least
            64, that is not below it. With None all learn the one that holds the largest set.
        label: A label of the job's statement under which the merger opens the union; one union per label and lane.
        epsilon_dup: ε of the noise on the number of elements that exactly two parties hold, seen by the merger.
        to: Who learns the union besides the merger; all parties by default.
        fill: What is filled up to a public size: the `lists` alone; the `merged` list too, so that only the merger
            learns how many tuples differ; or also the `union` and the sets, with random elements. The latter asks for
            elements of exactly `max_element_bytes` bytes that look random to all who do not know them, such as
            pseudonyms of 16 bytes.
        key: The job's key that sets the bound, for people.

    Returns:
        The elements in ascending order of their bytes; equal at all who learn it, empty at a party that does not. A
        union that is filled has as many as all capacities together.

    Raises:
        ConfigurationError: Some party's set is over the bound or has too long an element (reported to all alike,
            without whose it is or by how much), or the arguments make no union.
        MalformedMessage: A peer sent what is no group element, or sizes that the job does not allow.
        ProtocolViolation: What came out is no union that contains this party's set.
    """
    lane = session.lane(f"union/{label}")
    ring = ring_from(session.parties, merger)
    own = await session.compute(lambda: sorted(set(elements)))
    check_limits(own, label, bound, max_element_bytes, fill)
    longest = longest_allowed(max_element_bytes, fill)
    fakes = common_fakes(epsilon_dup)
    spare = spare_for_common_fakes(len(ring), fakes)
    here = classes(own, bound, max_element_bytes, fill)
    largest = await masked_maximum(lane.lane("sizes"), secrets, here, MOST_CLASSES)  # <-> 0
    sizes = sizes_of((largest[0], largest[1]), len(ring), label, bound, max_element_bytes, spare, fill, key=key)
    if fill == "union":
        own = filled(own, sizes.capacity, max_element_bytes, lane.randomness("filled set"))

    context = secrets.context(lane, "common fakes")
    shared = [secrets.stream(peer, context) for peer in lane.others]
    private = lane.randomness("list")
    listed = await lane.compute(lambda: padded(own, sizes, fakes, shared, private))

    if lane.me == merger:
        union = await _merger(lane, ring, sizes, listed, longest, fill)
        if fill == "union":
            union = filled(union, sizes.most_elements, max_element_bytes, lane.randomness("filled union"))
        await _open(lane, label, union, sizes, to)
    else:
        await _encryptor(lane, ring, sizes, listed, fill)
        if to is not None and lane.me not in to:
            return []
        union = await _receive_union(lane, merger, label, sizes, longest, fill)
    if not set(own).issubset(union):
        raise ProtocolViolation(
            f"the union '{label}' lacks elements of {lane.me}, so a peer sent wrong lists; check all nodes' versions",
            party=merger if len(ring) == 2 and lane.me != merger else None,
        )
    return union


# -- the two roles ---------------------------------------------------------------------------------------------------
async def _encryptor(lane: Session, ring: Sequence[str], sizes: ListSizes, own: OwnList, fill: Fill) -> None:
    """Every party but the merger: adds its layer to all lists, then strips it from the merged one."""
    key = own.key
    progress = _Steps(lane, len(ring) + 1)
    hops = {owner: lane.lane(f"list/{owner}") for owner in ring}  # all in the same round, whichever list comes first

    async def encrypt(owner: str) -> None:
        before, after = _neighbours(route_of(ring, owner), lane.me)
        hop = hops[owner]
        if before is None:
            encrypted = await apply(hop, key.encrypt_blocks, own.tuples)
        else:
            received = await hop.recv_array(before, EncryptedList, np.uint8, sizes.shape)  # <- 1
            encrypted = await apply_received(hop, key.encrypt, received, before)
        kind = FullyEncryptedList if after == ring[0] else EncryptedList
        await hop.send_array(after, kind, shuffled(hop, encrypted))  # -> 1
        progress.tick()

    await together(encrypt(owner) for owner in ring)
    await _strip(lane.lane("merged"), ring, sizes, key, fill)
    progress.tick()


async def _merger(
    lane: Session, ring: Sequence[str], sizes: ListSizes, own: OwnList, max_element_bytes: int, fill: Fill
) -> list[bytes]:
    """The party that merges: removes duplicates, blinds, and decrypts last."""
    rest = CommutativeKey.generate(lane.randomness("blind"))
    blind = own.key.blinded(rest)  # so the wrapped list needs but the rest to be under the blind like the others
    progress = _Steps(lane, 4)

    async def around() -> PointTuples:
        hop = lane.lane(f"list/{lane.me}")
        wrapped = await apply(hop, own.key.encrypt_blocks, own.tuples)
        await hop.send_array(ring[1], EncryptedList, shuffled(hop, wrapped))  # -> 1
        progress.tick()
        returned = await hop.recv_array(ring[-1], FullyEncryptedList, np.uint8, sizes.shape)  # <- 1
        return await apply_received(hop, rest.encrypt, returned, ring[-1])

    async def receive(owner: str) -> PointTuples:
        last = route_of(ring, owner)[-2]
        return await lane.lane(f"list/{owner}").recv_array(last, FullyEncryptedList, np.uint8, sizes.shape)

    async def of_others() -> PointTuples:
        theirs = await together(receive(owner) for owner in ring[1:])  # <- 1
        others = await lane.compute(lambda: distinct(theirs))
        try:
            return await apply(lane, blind.encrypt, others)
        except ValueError:
            for owner, received in zip(ring[1:], theirs, strict=True):  # once more, to name the sender
                await apply_received(lane, blind.encrypt, received, route_of(ring, owner)[-2])
            raise

    mine, blinded = await together([around(), of_others()])  # the others' lists need not wait for this party's own
    different = await lane.compute(lambda: distinct([blinded, mine]))
    strangers = await _strangers(lane, 0 if fill == "lists" else sizes.total - len(different), sizes.blocks)
    merged = shuffled(lane, np.concatenate([different, strangers]))
    progress.tick()

    hop = lane.lane("merged")
    await hop.broadcast(MergedSize(tuples=len(merged)))  # -> 3
    for start, stop in pieces(len(merged), sizes.blocks):
        await hop.send(ring[1], MergedPiece(data=merged[start:stop].tobytes()))  # -> 3
    plain = np.empty((*merged.shape[:2], blocks.BLOCK_BYTES), np.uint8)
    for start, stop in pieces(len(merged), sizes.blocks):
        piece = await _receive_piece(hop, ring[-1], (stop - start, *merged.shape[1:]))  # <- 3
        plain[start:stop] = await apply_received(hop, blind.decrypt_blocks, piece, ring[-1])
    progress.tick()
    union = await _read(hop, plain, max_element_bytes, len(strangers))
    if len(union) > sizes.most_elements:
        raise ProtocolViolation(
            f"the merged list holds more elements than all sets together may, so {' or '.join(lane.others)} sent a "
            "wrong list; check these nodes",
            party=lane.others[0] if len(ring) == 2 else None,
        )
    progress.tick()
    return union


async def _strip(hop: Session, ring: Sequence[str], sizes: ListSizes, key: CommutativeKey, fill: Fill) -> None:
    """One party's turn in step 3; turns alternate, so that two parties work on the merged list at a time."""
    place = ring.index(hop.me)
    before, after = ring[place - 1], ring[(place + 1) % len(ring)]
    least, most = sizes.length if fill == "lists" else sizes.total, sizes.total
    size = (await hop.recv(ring[0], MergedSize, lambda m: require(least <= m.tuples <= most, "size"))).tuples  # <- 3
    order = hop.randomness("permutation").permutation(size)
    merged = np.empty((size, *sizes.shape[1:]), np.uint8)
    streams_out = place % 2 == (len(ring) - 1) % 2  # the last one streams to the merger, which strips on arrival

    for start, stop in pieces(size, sizes.blocks):
        piece = await _receive_piece(hop, before, (stop - start, *merged.shape[1:]))  # <- 3
        merged[start:stop] = piece if streams_out else await apply_received(hop, key.decrypt, piece, before)
    for start, stop in pieces(size, sizes.blocks):
        piece = merged[order[start:stop]]
        piece = await apply_received(hop, key.decrypt, piece, before) if streams_out else piece
        await hop.send(after, MergedPiece(data=piece.tobytes()))  # -> 3


# -- before and after the encryption ---------------------------------------------------------------------------------
async def _strangers(lane: Session, size: int, width: int) -> PointTuples:
    """Uniform points that fill the merged list: like all in it to the others, and nothing once it is decrypted."""
    uniform = np.frombuffer(lane.randomness("strangers").bytes(size * width * UNIFORM_BYTES), np.uint8)
    uniform = uniform.reshape(size, width, UNIFORM_BYTES)
    return await apply(lane, from_uniform_bytes, uniform) if size else np.empty((0, width, POINT_BYTES), np.uint8)


async def _read(lane: Session, plain: blocks.Tuples, max_element_bytes: int, strangers: int) -> list[bytes]:
    """The elements of the decrypted list, after checking each; fakes and strangers are dropped."""
    try:
        return await lane.compute(partial(sorted_elements, plain, max_element_bytes, fakes=True, strangers=strangers))
    except ValueError:
        raise ProtocolViolation(
            f"the merged list holds a tuple that is neither an element nor a fake, so {' or '.join(lane.others)} "
            "sent a wrong list; check these nodes",
            party=lane.others[0] if len(lane.others) == 1 else None,
        ) from None


async def _open(
    lane: Session, label: str, union: Sequence[bytes], sizes: ListSizes, to: Collection[str] | None
) -> None:
    receivers = [party for party in lane.others if to is None or party in to]
    rows = await lane.compute(lambda: blocks.encode(union, sizes.blocks))
    for party in receivers:
        await lane.send(party, UnionSize(elements=len(union)))  # -> 4
    await lane.open(label, rows, receivers)  # -> 4


async def _receive_union(
    lane: Session, merger: str, label: str, sizes: ListSizes, max_element_bytes: int, fill: Fill
) -> list[bytes]:
    most = sizes.most_elements
    least = most if fill == "union" else 0
    size = (await lane.recv(merger, UnionSize, lambda m: require(least <= m.elements <= most, "size"))).elements  # <- 4
    shape = (size, sizes.blocks, blocks.BLOCK_BYTES)
    rows = await lane.receive_opened(merger, label, np.uint8, shape)  # <- 4
    try:
        return await lane.compute(partial(sorted_elements, rows, max_element_bytes, fakes=False))
    except ValueError:
        raise MalformedMessage(f"{merger} opened a union with a wrong element; check that node", party=merger) from None


# -- the ring --------------------------------------------------------------------------------------------------------
def ring_from(parties: Sequence[str], merger: str) -> tuple[str, ...]:
    """The parties in the order of the job, turned so that the merger comes first."""
    if len(parties) < 2 or merger not in parties:
        raise ConfigurationError(f"a union needs two or more parties with the merger among them, not {merger}")
    place = parties.index(merger)
    return (*parties[place:], *parties[:place])


def route_of(ring: Sequence[str], owner: str) -> tuple[str, ...]:
    """The parties that `owner`'s list passes: the owner, all others but the merger, then the merger."""
    place = ring.index(owner)
    around = (*ring[1:], ring[0]) if place == 0 else (*ring[place + 1 :], *ring[1:place], ring[0])
    return (owner, *around)


def _neighbours(route: Sequence[str], me: str) -> tuple[str | None, str]:
    place = route.index(me)
    return (route[place - 1] if place else None), route[place + 1]


# -- pieces of the merged list ---------------------------------------------------------------------------------------
async def _receive_piece(lane: Session, sender: str, shape: tuple[int, ...]) -> PointTuples:
    expected = int(np.prod(shape))
    message = await lane.recv(sender, MergedPiece, lambda m: require(len(m.data) == expected, "length"))
    return np.frombuffer(message.data, np.uint8).reshape(shape)


# -- tasks -----------------------------------------------------------------------------------------------------------
class _Steps:
    """Counts the finished steps of one party for those who watch."""

    def __init__(self, lane: Session, total: int) -> None:
        self._lane, self._total, self._done = lane, total, 0

    def tick(self) -> None:
        self._done += 1
        self._lane.progress(self._lane.path, self._done, self._total)
