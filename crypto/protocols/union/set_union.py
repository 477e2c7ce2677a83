"""Set union of pseudonyms: which ones any of n parties holds, among random ones, and not who holds them.

Every party encrypts every element of every list with a commutative cipher and shuffles it. Fully encrypted, equal
elements are equal ciphertexts, so one party, the merger, removes duplicates without knowing what they are; then the
layers come off, again with a shuffle at every party, and only the union is left. Elements look random to all who do
not know them, so each party fills its set up with random ones, and the merger the union: its size is public beforehand.

Steps (the ring is the parties' order with the merger taken out and put at both ends):
    0  agree      on one capacity: the size class of the job's bound, or of the largest set, a masked maximum. Each
                  party fills its set up to it
    1  encrypt    list i starts at its owner and passes all other parties but the merger in the order of the ring; each
                  raises it to its own fresh key and permutes it; the last one hands it to the merger. The
                  merger's own list goes around under a one-time wrapping, which the merger takes off in step 2.
    2  merge      the merger removes duplicates, raises everything to a fresh blind, fills the list up to the length
                  of all lists together with random points, which decode to nothing in the end, and permutes
    3  strip      the merged list passes all other parties; each strips its own key and permutes it
    4  open       the merger strips the blind, drops fakes and what decodes to nothing, fills the union up to the sum
                  of all capacities with random elements, and opens it in ascending order

Step 2 serves as the merger's layer and the blind of the classic scheme at once: since the blind never leaves the
merger before step 3, and every list of step 3 carries it, no value of step 3 occurs in step 1.
Step 3 cannot be split into parts that go around in different orders: the merger knows which ciphertexts it put into
which part, so it would learn part by part, in a small union element by element, who holds what. Instead, parties take
turns: one permutes before it strips and passes on every piece at once, the next strips on arrival and then permutes.

Rounds: 2n + 2. Output: the sorted union, to all parties.
Group operations in all, L the length of a list with fakes: at most (2n² + 1)·L.

Adversary: semi-honest. Nothing protects sets, sizes or the result against a party that deviates.
Collusion: up to n − 2 parties learn no link between an element and its holders (decisional Diffie–Hellman), since the
    others shuffle; what counts they learn is below. To n − 1 parties whatever none of them holds is the last one's, and
    which of *their* elements it holds stays hidden.
Leakage (as data in `union_disclosure.leakage`):
    the merger learns for every pair of other parties how many elements exactly these two hold, plus a number of fakes
        that the pair has in common (shifted, truncated discrete Laplace); for every set of parties that contains the
        merger or has three members the same number exactly.
    every party learns the largest size class of the others' sets where the job fixes no bound (2^j, from 64 up: sets of
        few elements are all alike); whether some other set is over the bound, which is rounded up to a class itself.
        Nothing of it is known by party; all lists are filled up to the same length.
    with n = 2 every element that is not a party's own is the other's or random, and the merger learns how many elements
        are common; which of a party's own elements the other holds is hidden.

Source: Kantarcioglu and Clifton, "Privacy-Preserving Distributed Mining of Association Rules on Horizontally
Partitioned Data", IEEE TKDE 16(9), 2004, section 3. Changed: ristretto255 with a reversible embedding instead of
Pohlig–Hellman over a prime field, lists shuffled at *every* hop, common fakes, the blind.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from decimal import Decimal
from functools import partial

import numpy as np

from crypto.primitives import blocks
from crypto.primitives.groups.commutative import CommutativeKey
from crypto.primitives.groups.embedding import BLOCK_BYTES, Blocks
from crypto.primitives.groups.ristretto255 import POINT_BYTES, UNIFORM_BYTES, Points, from_uniform_bytes
from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.union.common_length import agree_on_length
from crypto.protocols.union.joint_prf import PSEUDONYM_BYTES
from crypto.protocols.union.layers import apply, apply_received, pieces, shuffled
from crypto.protocols.union.lists import (
    EPSILON_COMMON,
    ListSizes,
    OwnList,
    common_fakes,
    distinct,
    filled,
    padded,
    require,
    sorted_elements,
    spare_for_common_fakes,
)
from crypto.protocols.union.size_classes import SETS
from link.errors import ConfigurationError, MalformedMessage, ProtocolViolation
from link.session import Session
from link.tasks import together
from protos.v1.set_union_pb2 import EncryptedList, FullyEncryptedList, MergedPiece


async def set_union(
    session: Session,
    secrets: PairwiseSecrets,
    elements: Collection[bytes],
    *,
    merger: str,
    bound: int | None = None,
    label: str = "union",
    epsilon_dup: Decimal | float = EPSILON_COMMON,
    key: str = "[union] bound",
) -> list[bytes]:
    """Learns the union of all parties' sets, among random elements.

    Every party calls this with the same arguments but `elements`.

    Args:
        session: The lane to use.
        secrets: From `pairwise.agree` in this session.
        elements: This party's pseudonyms, of 16 bytes that look random to all who do not know them.
        merger: The party that removes duplicates and decrypts last; it learns the most.
        bound: The most elements that any party's set may hold, public; rounded up to the least power of two, at least
            64, that is not below it. With None all learn the one that holds the largest set.
        label: A label of the job's statement under which the merger opens the union; one union per label and lane.
        epsilon_dup: ε of the noise on the number of elements that exactly two parties hold, seen by the merger.
        key: The job's key that sets the bound, for people.

    Returns:
        As many elements as all sets together may hold, in ascending order of their bytes; equal at all parties.

    Raises:
        ConfigurationError: Some party's set is over the bound (reported to all alike, without whose it is or by how
            much), or the arguments make no union.
        MalformedMessage: A peer sent what is no group element, or lists of another size.
        ProtocolViolation: What came out is no union that contains this party's set.
    """
    lane = session.lane(f"union/{label}")
    ring = ring_from(session.parties, merger)
    own = await session.compute(lambda: sorted(set(elements)))
    if any(len(element) != PSEUDONYM_BYTES for element in own):
        raise ValueError(f"a pseudonym has {PSEUDONYM_BYTES} bytes")
    fakes = common_fakes(epsilon_dup)
    capacity = await agree_on_length(lane.lane("sizes"), secrets, len(own), bound, classes=SETS, key=key)  # <-> 0
    sizes = ListSizes(len(ring), capacity, spare_for_common_fakes(len(ring), fakes))
    own = filled(own, sizes.capacity, lane.randomness("filled set"))

    context = secrets.context(lane, "common fakes")
    shared = [secrets.stream(peer, context) for peer in lane.others]
    private = lane.randomness("list")
    listed = await lane.compute(lambda: padded(own, sizes, fakes, shared, private))

    if lane.me == merger:
        union = filled(await _merger(lane, ring, sizes, listed), sizes.elements, lane.randomness("filled union"))
        await lane.open(label, await lane.compute(lambda: blocks.encode(union)), lane.others)  # -> 4
    else:
        await _encryptor(lane, ring, sizes, listed)
        union = await _receive_union(lane, merger, label, sizes)
    if not set(own).issubset(union):
        raise ProtocolViolation(
            f"the union '{label}' lacks elements of {lane.me}, so a peer sent wrong lists; check all nodes' versions",
            party=merger if len(ring) == 2 and lane.me != merger else None,
        )
    return union


# -- the two roles ---------------------------------------------------------------------------------------------------
async def _encryptor(lane: Session, ring: Sequence[str], sizes: ListSizes, own: OwnList) -> None:
    """Every party but the merger: adds its layer to all lists, then strips it from the merged one."""
    key = own.key
    progress = _Steps(lane, len(ring) + 1)
    hops = {owner: lane.lane(f"list/{owner}") for owner in ring}  # all in the same round, whichever list comes first

    async def encrypt(owner: str) -> None:
        before, after = _neighbours(route_of(ring, owner), lane.me)
        hop = hops[owner]
        if before is None:
            encrypted = await apply(hop, key.encrypt_blocks, own.blocks)
        else:
            received = await hop.recv_array(before, EncryptedList, np.uint8, sizes.shape)  # <- 1
            encrypted = await apply_received(hop, key.encrypt, received, before)
        kind = FullyEncryptedList if after == ring[0] else EncryptedList
        await hop.send_array(after, kind, shuffled(hop, encrypted))  # -> 1
        progress.tick()

    await together(encrypt(owner) for owner in ring)
    await _strip(lane.lane("merged"), ring, sizes, key)
    progress.tick()


async def _merger(lane: Session, ring: Sequence[str], sizes: ListSizes, own: OwnList) -> list[bytes]:
    """The party that merges: removes duplicates, blinds, and decrypts last. Returns the elements, without fakes."""
    rest = CommutativeKey.generate(lane.randomness("blind"))
    blind = own.key.blinded(rest)  # so the wrapped list needs but the rest to be under the blind like the others
    progress = _Steps(lane, 4)

    async def around() -> Points:
        hop = lane.lane(f"list/{lane.me}")
        wrapped = await apply(hop, own.key.encrypt_blocks, own.blocks)
        await hop.send_array(ring[1], EncryptedList, shuffled(hop, wrapped))  # -> 1
        progress.tick()
        returned = await hop.recv_array(ring[-1], FullyEncryptedList, np.uint8, sizes.shape)  # <- 1
        return await apply_received(hop, rest.encrypt, returned, ring[-1])

    async def receive(owner: str) -> Points:
        last = route_of(ring, owner)[-2]
        return await lane.lane(f"list/{owner}").recv_array(last, FullyEncryptedList, np.uint8, sizes.shape)

    async def of_others() -> Points:
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
    strangers = await _strangers(lane, sizes.total - len(different))
    merged = shuffled(lane, np.concatenate([different, strangers]))
    progress.tick()

    hop = lane.lane("merged")
    for start, stop in pieces(len(merged)):
        await hop.send(ring[1], MergedPiece(data=merged[start:stop].tobytes()))  # -> 3
    plain = np.empty((len(merged), BLOCK_BYTES), np.uint8)
    for start, stop in pieces(len(merged)):
        piece = await _receive_piece(hop, ring[-1], stop - start)  # <- 3
        plain[start:stop] = await apply_received(hop, blind.decrypt_blocks, piece, ring[-1])
    progress.tick()
    union = await _read(hop, plain, len(strangers))
    if len(union) > sizes.elements:
        raise ProtocolViolation(
            f"the merged list holds more elements than all sets together may, so {' or '.join(lane.others)} sent a "
            "wrong list; check these nodes",
            party=lane.others[0] if len(ring) == 2 else None,
        )
    progress.tick()
    return union


async def _strip(hop: Session, ring: Sequence[str], sizes: ListSizes, key: CommutativeKey) -> None:
    """One party's turn in step 3; turns alternate, so that two parties work on the merged list at a time."""
    place = ring.index(hop.me)
    before, after = ring[place - 1], ring[(place + 1) % len(ring)]
    order = hop.randomness("permutation").permutation(sizes.total)
    merged = np.empty((sizes.total, POINT_BYTES), np.uint8)
    streams_out = place % 2 == (len(ring) - 1) % 2  # the last one streams to the merger, which strips on arrival

    for start, stop in pieces(sizes.total):
        piece = await _receive_piece(hop, before, stop - start)  # <- 3
        merged[start:stop] = piece if streams_out else await apply_received(hop, key.decrypt, piece, before)
    for start, stop in pieces(sizes.total):
        piece = merged[order[start:stop]]
        piece = await apply_received(hop, key.decrypt, piece, before) if streams_out else piece
        await hop.send(after, MergedPiece(data=piece.tobytes()))  # -> 3


# -- before and after the encryption ---------------------------------------------------------------------------------
async def _strangers(lane: Session, size: int) -> Points:
    """Uniform points that fill the merged list: like all in it to the others, and nothing once it is decrypted."""
    uniform = np.frombuffer(lane.randomness("strangers").bytes(size * UNIFORM_BYTES), np.uint8)
    uniform = uniform.reshape(size, UNIFORM_BYTES)
    return await apply(lane, from_uniform_bytes, uniform) if size else np.empty((0, POINT_BYTES), np.uint8)


async def _read(lane: Session, plain: Blocks, strangers: int) -> list[bytes]:
    """The elements of the decrypted list, after checking each; fakes and strangers are dropped."""
    try:
        return await lane.compute(partial(sorted_elements, plain, fakes=True, strangers=strangers))
    except ValueError:
        raise ProtocolViolation(
            f"the merged list holds a value that is neither an element nor a fake, so {' or '.join(lane.others)} "
            "sent a wrong list; check these nodes",
            party=lane.others[0] if len(lane.others) == 1 else None,
        ) from None


async def _receive_union(lane: Session, merger: str, label: str, sizes: ListSizes) -> list[bytes]:
    rows = await lane.receive_opened(merger, label, np.uint8, (sizes.elements, BLOCK_BYTES))  # <- 4
    try:
        return await lane.compute(partial(sorted_elements, rows, fakes=False))
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
async def _receive_piece(lane: Session, sender: str, size: int) -> Points:
    message = await lane.recv(sender, MergedPiece, lambda m: require(len(m.data) == size * POINT_BYTES, "length"))
    return np.frombuffer(message.data, np.uint8).reshape(size, POINT_BYTES)


# -- tasks -----------------------------------------------------------------------------------------------------------
class _Steps:
    """Counts the finished steps of one party for those who watch."""

    def __init__(self, lane: Session, total: int) -> None:
        self._lane, self._total, self._done = lane, total, 0

    def tick(self) -> None:
        self._done += 1
        self._lane.progress(self._lane.path, self._done, self._total)
