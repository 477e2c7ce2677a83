"""One small run of every protocol, the same from the same seed: what a change of the wire is noticed by."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from crypto.primitives.bit_matrix import pack_bits
from crypto.primitives.groups.point_hash import points_of
from crypto.primitives.randomness import Randomness
from crypto.primitives.shares.additive import AdditiveShare, share
from crypto.protocols.alignment.alignment import LONG_LISTS, cardinality, intersection, union, union_of_listed
from crypto.protocols.authenticated.authenticated_sums import Keyed, decided, opened, summed
from crypto.protocols.comparison.and_triples import make_triples
from crypto.protocols.comparison.argmin import argmin
from crypto.protocols.comparison.comparison import at_least, equal_to
from crypto.protocols.comparison.conversion import to_additive
from crypto.protocols.comparison.multiplication import multiply
from crypto.protocols.comparison.shared_bits import open_bits
from crypto.protocols.comparison.shared_lookup import look_up
from crypto.protocols.comparison.shared_permutation import permute
from crypto.protocols.comparison.two_party import TwoParty, pairs_of
from crypto.protocols.paillier.dot import evaluate_opened, hold_opened
from crypto.protocols.paillier.kept import KeptColumns, KeptRows, evaluate_kept, hold_kept
from crypto.protocols.products import dealer
from crypto.protocols.products.class_counts import class_counts
from crypto.protocols.products.ot_matrix import all_pairs, pair_products
from crypto.protocols.products.outside_dealer import Dealer
from crypto.protocols.products.outside_products import OutsideProducts
from crypto.protocols.products.replicated_counts import spanning_counts
from crypto.protocols.products.shared_products import spanning_products
from crypto.protocols.replicated import verified_sums
from crypto.protocols.replicated.comparison import sums_at_least
from crypto.protocols.replicated.crosschecks import opened as components_opened
from crypto.protocols.replicated.verified_counts import count, deal_columns
from crypto.protocols.replicated.verified_or import verified_or
from crypto.protocols.replicated.verified_total import opened_total
from crypto.protocols.sums.masked_maximum import masked_maximum
from crypto.protocols.sums.pairwise import agree
from crypto.protocols.sums.ring_sum import ring_sum
from crypto.protocols.sums.secure_sum import DIRECT_BYTES, secure_sum, shared_sum
from crypto.protocols.transfers.base_ot import receive_keys, send_keys
from crypto.protocols.transfers.extension_seeds import prepare_receiving, prepare_sending
from crypto.protocols.transfers.oblivious_transfer import (
    receive_k_of_n,
    receive_one_of_two,
    send_k_of_n,
    send_one_of_two,
)
from crypto.protocols.transfers.oprf import receive_values, send_values
from crypto.protocols.transfers.programmable_oprf import receive_programmed, send_programmed
from crypto.protocols.union.prefix_union import prefix_union
from link.disclosure import Declared
from link.session import Session
from protos.v1.link_pb2 import Frame
from tests.faulty_world import Rewrite, run_faulty_parties
from tests.paillier_world import empty_pool, full_key
from tests.world import run_parties

NORTH, SOUTH, EAST = THREE = ("north", "south", "east")
TWO = (NORTH, SOUTH)
FOUR = (*THREE, "west")
LABELS: Final = ("opened", "opened-size", "size classes")
ROWS: Final = 300

Role = Callable[[Session], Awaitable[Any]]


@dataclass(frozen=True)
class Run:
    """Who takes part in a protocol, and what each does."""

    role: Role | Mapping[str, Role]
    parties: Sequence[str] = THREE

    @property
    def declared(self) -> list[Declared]:
        """What may be opened."""
        return [Declared(label, frozenset(self.parties), "", 1 << 20, "") for label in LABELS]

    def frames(self, seed: int = 1) -> list[Frame]:
        """All that is sent from a seed."""
        found: list[Frame] = []
        run_parties(self.parties, self.role, declared=self.declared, seed=seed, observe=found.append)
        return found

    def ends(self, rewrite: Rewrite) -> dict[str, Any]:
        """How the same run ends at each party, an error as what is returned, where frames are changed on their way."""

        async def role(session: Session) -> Any:
            return await (self.role[session.me] if isinstance(self.role, Mapping) else self.role)(session)

        return run_faulty_parties(tuple(self.parties), role, self.declared, rewrite, seed=1)[0]

    def digests(self) -> dict[str, str]:
        """By direction the SHA-256 of its frames, lane by lane."""
        digests: defaultdict[str, Any] = defaultdict(hashlib.sha256)
        for frame in sorted(self.frames(), key=lambda frame: (frame.lane, frame.seq)):
            digests[f"{frame.sender} to {frame.receiver}"].update(frame.SerializeToString(deterministic=True))
        return {direction: digest.hexdigest() for direction, digest in sorted(digests.items())}


def _numbers(session: Session, size: int = 20) -> Any:
    return np.random.default_rng(sum(session.me.encode())).integers(0, 1000, size).astype(np.uint64)


def _elements(session: Session) -> list[bytes]:
    return [b"all"] + [f"{session.me}{number}".encode() for number in range(5)]


def _columns(session: Session, columns: int = 3) -> Any:
    generator = np.random.default_rng(sum(session.me.encode()))
    return pack_bits(generator.random((columns, ROWS)) < 0.5)


def _shares(session: Session, word: type[np.unsignedinteger[Any]] = np.uint64, size: int = 20) -> AdditiveShare:
    values = (np.arange(size) % 7).astype(word)
    return dict(zip(TWO, share(values, TWO, Randomness.from_seed(b"shares")), strict=True))[session.me]


def _pair(session: Session) -> TwoParty:
    return TwoParty(session.lane("pair"), TWO)


def _other(session: Session) -> str:
    return SOUTH if session.me == NORTH else NORTH


async def _secure_sum(session: Session) -> None:
    await secure_sum(session, await agree(session), _numbers(session), label="opened")


async def _long_secure_sum(session: Session) -> None:
    await secure_sum(session, await agree(session), _numbers(session, DIRECT_BYTES // 8 + 1), label="opened")


async def _shared_sum(session: Session) -> None:
    await shared_sum(session, await agree(session), _numbers(session), TWO)


async def _ring_sum(session: Session) -> None:
    await ring_sum(session, _numbers(session), label="opened")


async def _masked_maximum(session: Session) -> None:
    await masked_maximum(session, await agree(session), [len(session.me), 3], [9, 9], label="opened")


async def _prefix_union(session: Session) -> None:
    secrets, pairs = await agree(session), pairs_of(session.lane("pairs"))
    await prefix_union(session, secrets, pairs, _elements(session), max_element_bytes=60, label="opened")


async def _alignment(session: Session) -> None:
    await intersection(session, await agree(session), _elements(session), merger=NORTH, label="opened")


async def _cardinality(session: Session) -> None:
    await cardinality(
        session, await agree(session), pairs_of(session), _elements(session), merger=NORTH, label="opened"
    )


async def _listed_union(session: Session) -> None:
    listed, others = _elements(session)[:1], _elements(session)[1:]
    secrets, pairs = await agree(session), pairs_of(session)
    await union_of_listed(session, secrets, pairs, listed, others, merger=NORTH, label="opened")


async def _row_union(session: Session) -> None:
    await union(session, await agree(session), pairs_of(session), _elements(session), merger=NORTH, label="opened")


async def _long_alignment(session: Session) -> None:
    secrets = await agree(session)
    await intersection(session, secrets, _elements(session), merger=NORTH, bound=LONG_LISTS, label="opened")


def _points(session: Session) -> Any:
    return points_of(_elements(session), bytes(16))


async def _prf_sender(session: Session) -> None:
    seeds = await prepare_receiving(session.lane("seeds"), SOUTH, field_bits=1, symbol_bits=1)
    await send_values(session, SOUTH, seeds, _points(session), 9, 10)


async def _prf_receiver(session: Session) -> None:
    seeds = await prepare_sending(session.lane("seeds"), NORTH, field_bits=1, symbol_bits=1)
    await receive_values(session, NORTH, seeds, _points(session), 9, 10)


async def _programmed_sender(session: Session) -> None:
    seeds = await prepare_receiving(session.lane("seeds"), SOUTH, field_bits=1, symbol_bits=1)
    await send_programmed(session, SOUTH, seeds, _points(session), _numbers(session, 12).reshape(6, 2), (9, 8))


async def _programmed_receiver(session: Session) -> None:
    seeds = await prepare_sending(session.lane("seeds"), NORTH, field_bits=1, symbol_bits=1)
    await receive_programmed(session, NORTH, seeds, _points(session), (9, 8), 2)


async def _base_ot_sender(session: Session) -> None:
    await send_keys(session, SOUTH, 9)


async def _base_ot_receiver(session: Session) -> None:
    await receive_keys(session, NORTH, np.arange(9, dtype=np.uint8) % 2)


async def _transfer_sender(session: Session) -> None:
    await send_one_of_two(session.lane("two"), SOUTH, [(b"left", b"right"), (b"up", b"down")])
    await send_k_of_n(session.lane("k"), SOUTH, [b"a", b"b", b"c", b"d", b"e"], 2)


async def _transfer_receiver(session: Session) -> None:
    await receive_one_of_two(session.lane("two"), NORTH, [0, 1])
    await receive_k_of_n(session.lane("k"), NORTH, [1, 3], 5)


async def _at_least(session: Session) -> None:
    two = _pair(session)
    bits = await at_least(session.lane("reach"), two, _shares(session), 3, 12)
    await open_bits(session.lane("open"), bits, label="opened", holders=TWO, number=20)
    await equal_to(session.lane("equal"), two, _shares(session), 3, 12)


async def _triples(session: Session) -> None:
    await make_triples(session, _pair(session), 1000)


async def _argmin(session: Session) -> None:
    await argmin(session, _pair(session), [_shares(session), _shares(session)], 50)


async def _conversion(session: Session) -> None:
    two = _pair(session)
    bits = await at_least(session.lane("reach"), two, _shares(session), 3, 12)
    await to_additive(session.lane("convert"), two, bits)


async def _multiplication(session: Session) -> None:
    await multiply(session, _pair(session), _shares(session), _shares(session))


async def _permutation(session: Session) -> None:
    order = np.arange(20)[::-1].copy() if session.me == NORTH else None
    await permute(session, _pair(session), _shares(session, np.uint8), 1, NORTH, order)


async def _lookup(session: Session) -> None:
    await look_up(session, _pair(session), _shares(session, np.uint32), np.arange(7) % 2 == 1)


async def _paillier_holder(session: Session) -> None:
    pairs = all_pairs(3, 3)
    dot, kept = session.lane("dot"), KeptColumns(ROWS, full_key().public.n.bit_length())
    await hold_opened(dot, SOUTH, full_key(), empty_pool(), _columns(session), ROWS, pairs, label="opened")
    for call in ("first", "again"):
        lane = session.lane(call)
        await hold_kept(lane, SOUTH, full_key(), empty_pool(), kept, _columns(session), pairs, "abc")


async def _paillier_evaluator(session: Session) -> None:
    pairs = all_pairs(3, 3)
    bits = full_key().public.n.bit_length()
    kept = KeptRows(KeptColumns(ROWS, bits))
    await evaluate_opened(session.lane("dot"), NORTH, _columns(session), ROWS, pairs, label="opened", key_bits=bits)
    for call in ("first", "again"):
        await evaluate_kept(session.lane(call), NORTH, kept, _columns(session), pairs, "abc")


async def _ot_matrix(session: Session) -> None:
    await pair_products(session, _pair(session), _columns(session), ROWS, all_pairs(3, 3))


async def _dealt(session: Session) -> None:
    secrets, pairs, work = await agree(session), all_pairs(3, 3), session.lane("work")
    if session.me == EAST:
        await dealer.deal(work, secrets, TWO, rows=ROWS, pairs=pairs)
    else:
        await dealer.pair_products(work, secrets, _pair(session), EAST, _columns(session), ROWS, pairs)


async def _outside_dealt(session: Session) -> None:
    dealings = Dealer(Randomness.from_seed(b"dealer")).here()[TWO.index(session.me)]
    products = OutsideProducts(dealings)
    await products.pair_products(session.lane("work"), _pair(session), _columns(session), ROWS, all_pairs(3, 3))


async def _authenticated_sums(session: Session) -> None:
    keyed = Keyed(session.lane("keys"), TWO) if session.me in TWO else None
    rows = np.array([1000], np.uint64)
    found = await summed(session.lane("rows"), keyed, rows, TWO, 12)
    limits = None if found is None else found[1]
    shares = await decided(session.lane("work"), keyed, _numbers(session), TWO, limits, 900, 12)
    reached = None if shares is None else shares.reached
    await opened(session, keyed, reached, label="opened", holders=TWO, number=20, width=1, to=THREE)


async def _replicated(session: Session) -> None:
    two = _pair(session) if session.me in TWO else None
    itemsets = [{NORTH: 0, SOUTH: 1}, {NORTH: 1, SOUTH: 1, EAST: 2}]
    secrets, work = await agree(session), session.lane("work")
    await spanning_counts(work, secrets, THREE, two, _columns(session), ROWS, itemsets)


async def _sums_of_three(session: Session) -> None:
    await sums_at_least(session.lane("work"), await agree(session), _numbers(session), THREE, 3, 18)


async def _verified_sums(session: Session) -> None:
    secrets, values = await agree(session), _numbers(session)
    _, limits = await opened_total(session.lane("rows"), secrets, 1000, THREE, 12, label="opened")
    shares = await verified_sums.decided(session.lane("work"), secrets, values, THREE, 1000, limits, 900, 12)
    reached = None if shares is None else shares.reached
    await components_opened(session, reached, label="opened", holders=THREE, number=20, width=1, to=session.parties)


async def _verified_counts(session: Session) -> None:
    secrets, numbers = await agree(session), dict.fromkeys(session.parties, 1)
    columns = await deal_columns(session.lane("deal"), _columns(session, 1), numbers, ROWS, THREE)
    found = None
    if columns is not None:
        found = await count(session.lane("work"), secrets, THREE, columns[NORTH], columns[SOUTH], ROWS, 9)
    reached = None if found is None else found.reached
    await components_opened(session, reached, label="opened", holders=THREE, number=1, width=1, to=session.parties)


async def _verified_union(session: Session) -> None:
    await verified_or(session, await agree(session), _numbers(session) % 2 == 1, THREE, label="opened")


async def _shared_products(session: Session) -> None:
    itemsets = [{NORTH: 0, SOUTH: 1}, {NORTH: 1, SOUTH: 1, EAST: 2}]
    secrets, pairs = await agree(session), pairs_of(session.lane("pairs"))
    await spanning_products(session.lane("work"), secrets, pairs, _columns(session), ROWS, itemsets, TWO)


async def _class_counts(session: Session) -> None:
    own = np.arange(50) % (3 if session.me == NORTH else 4)
    await class_counts(session, _pair(session), own, (3, 4))


PROTOCOLS: Final = {
    "secure sum": Run(_secure_sum),
    "secure sum in slices": Run(_long_secure_sum),
    "shared sum": Run(_shared_sum),
    "ring sum": Run(_ring_sum),
    "masked maximum": Run(_masked_maximum),
    "union by prefixes": Run(_prefix_union),
    "alignment": Run(_alignment),
    "alignment of two parties": Run(_alignment, TWO),
    "alignment of two parties' long lists": Run(_long_alignment, TWO),
    "alignment by cardinality": Run(_cardinality),
    "alignment by union": Run(_row_union),
    "alignment by union of what is listed": Run(_listed_union),
    "base oblivious transfer": Run({NORTH: _base_ot_sender, SOUTH: _base_ot_receiver}, TWO),
    "oblivious transfer": Run({NORTH: _transfer_sender, SOUTH: _transfer_receiver}, TWO),
    "pseudorandom function": Run({NORTH: _prf_sender, SOUTH: _prf_receiver}, TWO),
    "programmable pseudorandom function": Run({NORTH: _programmed_sender, SOUTH: _programmed_receiver}, TWO),
    "comparison": Run(_at_least, TWO),
    "comparison among three": Run(_sums_of_three),
    "AND triples": Run(_triples, TWO),
    "argmin": Run(_argmin, TWO),
    "conversion": Run(_conversion, TWO),
    "multiplication": Run(_multiplication, TWO),
    "shared permutation": Run(_permutation, TWO),
    "shared look-up": Run(_lookup, TWO),
    "Paillier": Run({NORTH: _paillier_holder, SOUTH: _paillier_evaluator}, TWO),
    "products by oblivious transfer": Run(_ot_matrix, TWO),
    "products with a dealer": Run(_dealt),
    "products with a dealer outside": Run(_outside_dealt, TWO),
    "products by replicated sharing": Run(_replicated),
    "authenticated sums": Run(_authenticated_sums),
    "verified comparison": Run(_verified_sums, FOUR),
    "verified counts": Run(_verified_counts, FOUR),
    "verified union": Run(_verified_union, FOUR),
    "products of shared bits": Run(_shared_products),
    "class counts": Run(_class_counts, TWO),
}
