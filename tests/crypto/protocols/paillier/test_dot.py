from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Literal

import numpy as np
import pytest
from gmpy2 import mpz
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import pack_bits
from crypto.primitives.paillier.ciphertexts import Ciphertexts, bytes_of, encrypt, values_of
from crypto.primitives.paillier.pool import ZeroPool
from crypto.primitives.paillier.slots import STATISTICAL_BITS
from crypto.primitives.paillier.zeros import OwnerZeros
from crypto.primitives.randomness import Randomness
from crypto.primitives.shares.additive import AdditiveShare, reconstruct
from crypto.protocols.comparison.comparison import width_for
from crypto.protocols.comparison.shared_bits import open_bits
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.paillier import arrangement as paillier_arrangement
from crypto.protocols.paillier import dot as paillier_dot
from crypto.protocols.paillier import rows as paillier_rows
from crypto.protocols.paillier.arrangement import Arrangement
from crypto.protocols.paillier.dot import declared, evaluate_opened, hold_opened
from crypto.protocols.paillier.kept import KeptColumns, KeptRows, evaluate_kept, hold_kept
from crypto.protocols.products.ot_matrix import all_pairs
from link.disclosure import Declared
from link.errors import UndeclaredDisclosure, UnexpectedMessage
from link.process_executor import ProcessExecutor
from link.session import Session
from protos.v1.link_pb2 import Frame, Opening
from protos.v1.oblivious_transfer_pb2 import EncryptedMessages, ExtensionRows
from protos.v1.paillier_pb2 import EncryptedRows, MaskedProducts, PaillierKey
from tests.crypto.protocols.two_party_world import A, B, assert_alike, assert_uniform, shapes_of
from tests.errors import fails
from tests.examples import examples, slowly
from tests.paillier_world import empty_pool, full_key, residue_part, select_sums, small_key
from tests.world import below, run_parties

BITS = 2048
LABEL = "products"
KEY = full_key()

Bits = NDArray[np.bool_]
Part = Callable[[Session], Awaitable[Any]]
Result = Literal["opened", "doubled"]


# -- a call ------------------------------------------------------------------------------------------------------------
def holder(result: Result, columns: Bits, pairs: Any, **options: Any) -> Part:
    rows, packed, pool = columns.shape[1], pack_bits(columns), empty_pool()
    if result == "opened":
        return lambda s: hold_opened(s.lane("dot"), B, KEY, pool, packed, rows, pairs, label=LABEL, **options)
    return lambda s: hold_kept(s.lane("dot"), B, KEY, pool, KeptColumns(rows, BITS), packed, pairs, None, **options)


def evaluator(result: Result, columns: Bits, pairs: Any, **options: Any) -> Part:
    rows, packed = columns.shape[1], pack_bits(columns)
    if result == "opened":
        return lambda s: evaluate_opened(s.lane("dot"), A, packed, rows, pairs, label=LABEL, key_bits=BITS, **options)
    kept = KeptRows(KeptColumns(rows, BITS))
    return lambda s: evaluate_kept(s.lane("dot"), A, kept, packed, pairs, None, **options)


def run(
    one: Part,
    other: Part,
    *,
    frames: list[Frame] | None = None,
    allowed: Iterable[Declared] | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    labels = [declared(LABEL, A, 10_000, when="at the end")] if allowed is None else allowed
    return run_parties(
        (A, B), {A: one, B: other}, observe=below("/dot", frames), declared=labels, seed=seed, deadline_s=60
    )


def both(result: Result, a: Bits, b: Bits, pairs: Any, **options: Any) -> dict[str, Any]:
    return run(holder(result, a, pairs), evaluator(result, b, pairs), **options)


def products(result: Result, out: dict[str, Any], rows: int) -> NDArray[np.uint64]:
    """From what the two have; of doubled shares also whether β is a bit."""
    if result == "opened":
        assert out[B] is None
        return out[A]  # type: ignore[no-any-return]
    doubled = reconstruct([out[A].share, out[B].share]) & np.uint64((1 << width_for(2 * rows + 1)) - 1)
    return doubled >> np.uint64(1)


def columns(rng: np.random.Generator, number: int, rows: int, kinds: Iterable[str]) -> Bits:
    made = {
        "empty": lambda: np.zeros(rows, np.bool_),
        "constant": lambda: np.ones(rows, np.bool_),
        "sparse": lambda: rng.random(rows) < 0.1,
        "dense": lambda: rng.random(rows) < 0.7,
    }
    names = list(kinds)
    return np.stack([made[names[i % len(names)]]() for i in range(number)])


KINDS = st.lists(st.sampled_from(["empty", "constant", "sparse", "dense"]), min_size=1, max_size=4)


@examples(10, 25)
@given(
    result=st.sampled_from(["opened", "doubled"]),
    rows=st.sampled_from([0, 1, 7, 8, 9, 64, 200]) | st.integers(0, 300),
    width=st.integers(1, 60),
    other=st.integers(1, 4),
    kinds=st.tuples(KINDS, KINDS),
    seed=st.integers(0, 2**32),
    some=st.booleans(),
)
def test_products_are_those_of_numpy(
    result: Result, rows: int, width: int, other: int, kinds: Any, seed: int, some: bool
) -> None:
    rng = np.random.default_rng(seed)
    a, b = columns(rng, width, rows, kinds[0]), columns(rng, other, rows, kinds[1])
    pairs = all_pairs(width, other)
    if some:  # in any order, some of them twice
        pairs = pairs[rng.integers(0, len(pairs), min(10, len(pairs)))]
    want = (a.astype(np.uint64) @ b.T.astype(np.uint64))[pairs[:, 0], pairs[:, 1]]
    got = products(result, both(result, a, b, pairs, seed=seed), rows)
    assert (got == want).all()


@pytest.mark.parametrize("transport", ["memory", "grpc"])
def test_over_both_transports(transport: Any) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.random((3, 500)) < 0.4, rng.random((2, 500)) < 0.4
    pairs = all_pairs(3, 2)
    out = run_parties(
        (A, B),
        {A: holder("opened", a, pairs), B: evaluator("opened", b, pairs)},
        declared=[declared(LABEL, A, 6, when="at the end")],
        transport=transport,
    )
    assert (out[A].reshape(3, 2) == a.astype(int) @ b.T).all()


@pytest.mark.slow
def test_with_worker_processes() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.random((40, 1500)) < 0.4, rng.random((2, 1500)) < 0.4
    pairs, workers = all_pairs(40, 2), ProcessExecutor(2)
    try:
        out = run(holder("opened", a, pairs, workers=workers), evaluator("opened", b, pairs, workers=workers))
    finally:
        workers.close()
    assert (out[A].reshape(40, 2) == a.astype(int) @ b.T).all()


def test_rows_come_in_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """With messages of 8 ciphertexts and windows of one message the holder waits for the evaluator, again and again."""
    monkeypatch.setattr(paillier_arrangement, "CHUNK_BYTES", 1)
    monkeypatch.setattr(paillier_rows, "WINDOW", 1)
    rng, frames = np.random.default_rng(3), list[Frame]()
    a, b = rng.random((50, 133)) < 0.4, rng.random((1, 133)) < 0.4
    pairs = all_pairs(50, 1)
    assert Arrangement.of(133, pairs, BITS).layout.rows == 2
    out = both("opened", a, b, pairs, frames=frames)
    assert (out[A] == a.astype(int) @ b[0]).all()
    kinds = [frame.type.rpartition(".")[2] for frame in frames]
    assert kinds.count("EncryptedRows") == 9
    assert kinds.count("RowsTaken") == 7
    last = max(i for i, kind in enumerate(kinds) if kind == "EncryptedRows")
    assert kinds.index("RowsTaken") < last


def test_doubled_shares_are_compared() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.random((12, 90)) < 0.6, rng.random((3, 90)) < 0.6
    pairs = all_pairs(12, 3)
    counts = (a.astype(int) @ b.T).reshape(-1)
    thresholds = np.concatenate([counts[:12], counts[12:24] + 1, np.full(12, 30)]).astype(np.uint64).clip(0, 90)

    def compared(part: Part) -> Part:
        async def role(session: Session) -> Any:
            share = await part(session)
            parties = TwoParty(session.lane("pair"), (A, B))
            found = []
            for name, threshold in (("each", thresholds), ("all", 32), ("none", 0), ("rows", 90)):
                bits = await share.reach(session.lane(name), parties, threshold)
                found.append(await open_bits(session, bits, label="bits", holders=(A, B), number=36))
            return found

        return role

    allowed = [Declared("bits", frozenset((A, B)), "bits", 1000, "at the end")]
    out = run(compared(holder("doubled", a, pairs)), compared(evaluator("doubled", b, pairs)), allowed=allowed)
    for party in (A, B):
        each, all_of, none, rows = out[party]
        assert (each == (counts >= thresholds)).all()
        assert (all_of == (counts >= 32)).all()
        assert none.all()
        assert (rows == (counts >= 90)).all()


@examples(6, 12)
@given(
    rows=st.sampled_from([0, 1, 2, 63, 64, 127, 128]) | st.integers(0, 300),
    width=st.integers(1, 40),
    other=st.integers(1, 4),
    kinds=st.tuples(KINDS, KINDS),
    seed=st.integers(0, 2**32),
    turned=st.booleans(),
)
def test_doubled_shares_are_made_exact(rows: int, width: int, other: int, kinds: Any, seed: int, turned: bool) -> None:
    """Whichever comes first in the agreement of the two."""
    rng, frames = np.random.default_rng(seed), list[Frame]()
    a, b = columns(rng, width, rows, kinds[0]), columns(rng, other, rows, kinds[1])
    pairs = all_pairs(width, other)

    def exact(part: Part) -> Part:
        async def role(session: Session) -> Any:
            share = await part(session)
            parties = TwoParty(session.lane("pair"), (B, A) if turned else (A, B))
            return await share.exact(session.lane("dot").lane("exact"), parties)

        return role

    out = run(exact(holder("doubled", a, pairs)), exact(evaluator("doubled", b, pairs)), frames=frames, seed=seed)
    assert {share.holders for share in out.values()} == {(A, B)}
    assert (reconstruct([out[A], out[B]]) == (a.astype(np.uint64) @ b.T.astype(np.uint64)).reshape(-1)).all()
    sent = {(frame.sender, frame.type.rpartition(".")[2]) for frame in frames if frame.lane.endswith("/exact")}
    assert sent == {(A, "EncryptedMessages"), (B, "ExtensionRows")}


def test_carries_and_wraps_are_made_exact() -> None:
    """All shares of small numbers: 2·product + β for each β, with every first share of their width."""
    rows, width = 3, 4
    numbers = np.repeat(np.arange(2 * rows + 2, dtype=np.uint64), 1 << width)
    first = np.tile(np.arange(1 << width, dtype=np.uint64), 2 * rows + 2)
    shares = {A: first, B: (numbers - first) & np.uint64((1 << width) - 1)}

    async def role(session: Session) -> Any:
        doubled = paillier_dot.DoubledShare(rows, AdditiveShare(shares[session.me], session.me, (A, B)))
        return await doubled.exact(session.lane("exact"), TwoParty(session.lane("pair"), (A, B)))

    out = run(role, role)
    assert (reconstruct([out[A], out[B]]) == numbers >> np.uint64(1)).all()


def test_what_makes_shares_exact_is_uniform() -> None:
    """Both directions, whatever the products: chi-square of their bytes, error 1e-6 each; and both views alike."""
    seen: dict[str, list[NDArray[np.uint8]]] = {A: [], B: []}
    for ones in (False, True):
        frames: list[Frame] = []
        number = 3000
        values = {A: np.full(number, 8 * ones, np.uint64), B: np.full(number, 7, np.uint64)}

        async def role(session: Session, values: dict[str, NDArray[np.uint64]] = values) -> Any:
            doubled = paillier_dot.DoubledShare(3, AdditiveShare(values[session.me], session.me, (A, B)))
            return await doubled.exact(session.lane("dot"), TwoParty(session.lane("pair"), (A, B)))

        run(role, role, frames=frames, seed=int(ones))
        for sender, kind in ((A, EncryptedMessages), (B, ExtensionRows)):
            data = b"".join(kind.FromString(frame.body).data for frame in frames if frame.sender == sender)
            seen[sender].append(np.frombuffer(data, np.uint8))
            assert_uniform(seen[sender][-1])
    for views in seen.values():
        assert_alike(*views)


def test_doubled_shares_show_nothing_and_are_no_numbers() -> None:
    a = b = np.ones((1, 3), np.bool_)
    out = both("doubled", a, b, all_pairs(1, 1))
    assert repr(out[A]) == "<DoubledShare of length 1>"
    with pytest.raises(TypeError):
        _ = out[A] + out[B]


# -- costs -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("asked", "requests", "replies"), [(slice(None), 334, 12), (slice(1, None), 1000, 4)])
def test_bytes_and_rounds(asked: slice, requests: int, replies: int) -> None:
    rng, frames = np.random.default_rng(5), list[Frame]()
    a, b = rng.random((40, 1000)) < 0.2, rng.random((4, 1000)) < 0.2
    pairs = all_pairs(40, 4)[asked]
    arrangement = Arrangement.of(1000, pairs, BITS)
    assert (arrangement.requests, arrangement.replies) == (requests, replies)
    rounds = {}

    def counted(part: Part) -> Part:
        async def role(session: Session) -> Any:
            before = session.costs.rounds
            await part(session)
            rounds[session.me] = session.costs.rounds - before

        return role

    run(counted(holder("opened", a, pairs)), counted(evaluator("opened", b, pairs)), frames=frames)
    assert rounds[A] == 2
    sent = {A: b"", B: b"", "opened": b""}
    for frame in frames:
        kind = frame.type.rpartition(".")[2]
        if kind == "EncryptedRows":
            sent[A] += EncryptedRows.FromString(frame.body).data
        elif kind == "MaskedProducts":
            sent[B] += MaskedProducts.FromString(frame.body).data
        elif kind == "Opening":
            sent["opened"] += Opening.FromString(frame.body).values
    assert len(sent[A]) == requests * BITS // 4
    assert len(sent[B]) == replies * BITS // 4
    assert len(sent["opened"]) == 8 * len(pairs)


def test_the_plan_of_a_hundred_thousand_rows() -> None:
    """What the documentation says of 50 × 50 columns."""
    found = {
        (asked, bits): Arrangement.of(100_000, all_pairs(50, 50)[:asked], bits).requests * bits // 4
        for asked in (2500, 2499)
        for bits in (2048, 3072)
    }
    assert found == {
        (2500, 2048): 25_600_000,
        (2500, 3072): 25_600_512,
        (2499, 2048): 102_400_000,
        (2499, 3072): 76_800_000,
    }


# -- what is seen ------------------------------------------------------------------------------------------------------
def replies_of(frames: Iterable[Frame]) -> list[mpz]:
    kind = MaskedProducts.DESCRIPTOR.full_name
    data = b"".join(MaskedProducts.FromString(f.body).data for f in frames if f.type == kind)
    return values_of(KEY.public, data)


def rows_of(frames: Iterable[Frame]) -> list[mpz]:
    kind = EncryptedRows.DESCRIPTOR.full_name
    return values_of(KEY.public, b"".join(EncryptedRows.FromString(f.body).data for f in frames if f.type == kind))


def test_the_holder_sees_masks_where_it_has_not_asked() -> None:
    """Of 2 × 36 slots in 12 replies one pair is asked for. All others' low 40 bits are uniform to the key's holder,
    whether the products are zero or as large as they can be: chi-square of 4,300 bytes, error 1e-6 each.
    """
    a, pairs = np.ones((36, 60), np.bool_), np.array([[i, i % 12] for i in range(36)])
    seen = []
    for ones in (False, True):
        frames: list[Frame] = []
        b = np.full((12, 60), ones)
        out = both("opened", a, b, pairs, frames=frames)
        assert (out[A] == (60 if ones else 0)).all()
        layout = Arrangement.of(60, pairs, BITS).layout
        assert layout.masking == "each"
        plaintexts = KEY.decrypt(Ciphertexts(KEY.public, replies_of(frames)))
        slots = layout.unpack(plaintexts)
        octets = np.ascontiguousarray(slots).astype("<u8").view(np.uint8).reshape(*slots.shape, 8)[..., :5].reshape(-1)
        assert_uniform(octets)
        assert_uniform(octets[: len(octets) // 2])
        seen.append(octets)
        opened = [Opening.FromString(f.body) for f in frames if f.type == Opening.DESCRIPTOR.full_name]
        assert [o.number for o in opened] == [36]
        # Above a slot's mask there is nothing; above all slots neither.
        assert int(slots.max()) >> (layout.width - 1) in (0, 1)
        assert max(plaintexts).bit_length() <= layout.rows * layout.block_bits
    assert_alike(*seen)


@pytest.mark.parametrize("first", slowly([0, 1], now=[1]))
def test_every_block_that_is_decrypted_is_under_a_mask(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of products of different rows too: low bytes of each block's slots in 80 replies uniform, error 1e-6."""
    monkeypatch.setattr(paillier_arrangement, "REPLY_WORK", 0)
    rng, frames = np.random.default_rng(6), list[Frame]()
    a, b = rng.random((10, 100)) < 0.5, rng.random((20, 100)) < 0.5
    pairs = all_pairs(10, 20)[first:]
    arrangement = Arrangement.of(100, pairs, BITS)
    layout = arrangement.layout
    assert layout.rows > 3
    both("opened", a, b, pairs, frames=frames)
    plaintexts = KEY.decrypt(Ciphertexts(KEY.public, replies_of(frames)))
    size = layout.slots_bits // 8
    for block in range(layout.rows):
        of_block = [plaintext >> block * layout.block_bits for plaintext in plaintexts]
        if layout.masking == "whole":
            octets = b"".join((value & ((1 << 8 * size) - 1)).to_bytes(size, "little") for value in of_block)
        else:
            mask = (1 << STATISTICAL_BITS) - 1
            octets = b"".join(
                (value >> slot * layout.width & mask).to_bytes(5, "little")
                for value in of_block
                for slot in range(layout.slots)
            )
        assert_uniform(np.frombuffer(octets, np.uint8))


@pytest.mark.parametrize("some", [False, True])
def test_opened_masks_show_no_partial_sum(some: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key's holder has the partial sums of both places under masks, and gets the masks' sum: neither mask is it.

    Were one the same, all 120 of its differences would be partial sums, at most 30. Of uniform numbers of at least 6
    bits two thirds and more are so with a probability below 2^-20, since each is with at most 31/64.
    """
    monkeypatch.setattr(paillier_arrangement, "REPLY_WORK", 0)
    rng, frames = np.random.default_rng(8), list[Frame]()
    columns = 13 if some else 120
    a, b = rng.random((columns, 60)) < 0.9, rng.random((10, 60)) < 0.9
    pairs = all_pairs(columns, 10)[1:] if some else all_pairs(columns, 10)
    arrangement = Arrangement.of(60, pairs, BITS)
    layout = arrangement.layout
    assert layout.rows >= 2
    out = both("opened", a, b, pairs, frames=frames)
    assert (out[A] == (a.astype(int) @ b.T)[pairs[:, 0], pairs[:, 1]]).all()
    plaintexts = KEY.decrypt(Ciphertexts(KEY.public, replies_of(frames)))
    (opening,) = (Opening.FromString(f.body) for f in frames if f.type == Opening.DESCRIPTOR.full_name)
    masks = np.frombuffer(opening.values, "<u8")
    keep = np.uint64((1 << layout.width) - 1)
    for place in range(layout.rows):
        alone = [m if i % layout.rows == place else mpz(0) for i, m in enumerate(plaintexts)]
        partial = (arrangement.of_pairs(layout.unpack(alone)) - masks) & keep
        assert (partial <= 60 // layout.rows).mean() < 2 / 3


def test_a_guess_of_the_evaluators_column_is_not_confirmed() -> None:
    """The key's holder knows its ciphertexts and n's factors. Of a reply that is not made fresh the residue part is
    that of a right guess; of ours it never is, and no two replies on equal inputs have one in common.
    """
    rng = np.random.default_rng(7)
    a, b = rng.random((50, 300)) < 0.5, rng.random((1, 300)) < 0.5
    pairs = all_pairs(50, 1)
    residues = set()
    for seed in range(4):
        frames: list[Frame] = []
        both("opened", a, b, pairs, frames=frames, seed=seed)
        arrangement = Arrangement.of(300, pairs, BITS)
        layout, replies = arrangement.layout, Ciphertexts(KEY.public, replies_of(frames))
        assert layout.rows == len(replies) == 3
        rows = Ciphertexts(KEY.public, rows_of(frames))
        guess = Ciphertexts(KEY.public, [select_sums(rows, b[0].reshape(-1, 3)).values[place] for place in range(3)])
        # The guess is right: under no masks it would hold the replies' products.
        assert layout.unpack(KEY.decrypt(guess))[0].tolist() == (a.astype(int) @ b[0]).tolist()
        for reply, guessed in zip(residue_parts(replies), residue_parts(guess), strict=True):
            assert reply != guessed
            residues.add(reply)
    assert len(residues) == 12


def residue_parts(ciphertexts: Ciphertexts) -> list[Any]:
    plaintexts = KEY.decrypt(ciphertexts)
    return [residue_part(KEY, int(c), m) for c, m in zip(ciphertexts.values, plaintexts, strict=True)]


def test_both_views_have_the_same_shape_whatever_the_bits() -> None:
    pairs, shapes = all_pairs(5, 3), []
    for fill in (False, True):
        frames: list[Frame] = []
        both("opened", np.full((5, 77), fill), np.full((3, 77), not fill), pairs, frames=frames)
        shapes.append(shapes_of(frames))
    assert shapes[0] == shapes[1]


def test_equal_rows_have_different_ciphertexts() -> None:
    frames: list[Frame] = []
    both("opened", np.zeros((50, 40), np.bool_), np.zeros((1, 40), np.bool_), all_pairs(50, 1), frames=frames)
    rows = rows_of(frames)
    assert len(set(rows)) == len(rows) > 10
    assert KEY.decrypt(Ciphertexts(KEY.public, rows)) == [0] * len(rows)


@pytest.mark.parametrize(
    "allowed",
    [
        [],
        [declared("another", A, 10, when="at the end")],
        [declared(LABEL, B, 10, when="at the end")],
        [declared(LABEL, A, 3, when="at the end")],
    ],
)
def test_undeclared_products_stay_masked(allowed: list[Declared]) -> None:
    a = b = np.ones((2, 9), np.bool_)
    frames: list[Frame] = []
    with pytest.raises(UndeclaredDisclosure):
        both("opened", a, b, all_pairs(2, 2), frames=frames, allowed=allowed)
    assert not [f for f in frames if f.type == Opening.DESCRIPTOR.full_name]


# -- wrong messages ----------------------------------------------------------------------------------------------------
ONES, PAIRS = np.ones((2, 9), np.bool_), all_pairs(2, 2)


def bad_moduli() -> dict[str, bytes]:
    n = int(KEY.public.n)
    return {
        "empty": b"",
        "short": KEY.public.to_bytes()[1:],
        "long": b"\0" + KEY.public.to_bytes(),
        "even": (n - 1).to_bytes(256, "big"),
        "small": int(small_key().public.n).to_bytes(256, "big"),
        "a multiple of three": (3 * (n // 3 | 1)).to_bytes(256, "big"),
    }


@pytest.mark.parametrize("name", list(bad_moduli()))
def test_a_bad_key_is_refused_and_named(name: str) -> None:
    async def cheating(session: Session) -> None:
        lane = session.lane("dot")
        await lane.send(B, PaillierKey(modulus=bad_moduli()[name]))
        await lane.recv(B, MaskedProducts)

    with fails("E402") as caught:
        run(cheating, evaluator("opened", ONES, PAIRS))
    assert caught.value.party == A


def wrong_rows() -> dict[str, Callable[[list[mpz]], bytes]]:
    key = KEY.public
    return {
        "a zero": lambda rows: bytes_of(key, [mpz(0), *rows[1:]]),
        "a multiple of p": lambda rows: bytes_of(key, [*rows[:-1], KEY.p * 77]),
        "n": lambda rows: bytes_of(key, [*rows[:-1], key.n]),
        "too large": lambda rows: bytes_of(key, rows[:-1]) + b"\xff" * 512,
        "too few": lambda rows: bytes_of(key, rows[1:]),
        "too many": lambda rows: bytes_of(key, [*rows, mpz(1)]),
        "a cut one": lambda rows: bytes_of(key, rows)[:-1],
        "nothing": lambda rows: b"",
    }


@pytest.mark.parametrize("name", list(wrong_rows()))
def test_wrong_rows_are_refused_and_named(name: str) -> None:
    requests = Arrangement.of(9, PAIRS, BITS).requests
    rows = [mpz(2)] * requests

    async def cheating(session: Session) -> None:
        lane = session.lane("dot")
        await lane.send(B, PaillierKey(modulus=KEY.public.to_bytes()))
        await lane.send(B, EncryptedRows(data=wrong_rows()[name](rows)))
        await lane.recv(B, MaskedProducts)

    with fails("E402") as caught:
        run(cheating, evaluator("opened", ONES, PAIRS))
    assert caught.value.party == A


@pytest.mark.parametrize("name", list(wrong_rows()))
def test_wrong_replies_are_refused_and_named(name: str) -> None:
    replies = [mpz(2)] * Arrangement.of(9, PAIRS, BITS).replies

    async def cheating(session: Session) -> None:
        lane = session.lane("dot")
        await lane.recv(A, PaillierKey)
        await lane.recv(A, EncryptedRows)
        await lane.send(A, MaskedProducts(data=wrong_rows()[name](replies)))

    with fails("E402") as caught:
        run(holder("opened", ONES, PAIRS), cheating)
    assert caught.value.party == B


def test_masks_of_other_products_are_noticed() -> None:
    async def cheating(session: Session) -> None:
        lane = session.lane("dot")
        await lane.recv(A, PaillierKey)
        await lane.recv(A, EncryptedRows)
        zeros = empty_pool()
        drawn = await zeros.draw(2, Randomness.from_seed(1), session)
        await lane.send_array(A, MaskedProducts, np.frombuffer(encrypt(KEY.public, [5, 5], drawn).to_bytes(), np.uint8))
        await lane.open(LABEL, np.full(4, 1, np.uint64), [A])  # of slots that hold 0

    with fails("E402") as caught:
        run(holder("opened", ONES, PAIRS), cheating)
    assert caught.value.party == B


def test_another_message_is_refused_and_named() -> None:
    async def cheating(session: Session) -> None:
        lane = session.lane("dot")
        await lane.send(B, EncryptedRows(data=b""))
        await lane.recv(B, MaskedProducts)

    with pytest.raises(UnexpectedMessage) as caught:
        run(cheating, evaluator("opened", ONES, PAIRS))
    assert caught.value.party == A


# -- wrong calls -------------------------------------------------------------------------------------------------------
def test_wrong_calls_are_refused_before_anything_leaves() -> None:
    frames: list[Frame] = []
    for pairs in (np.array([[2, 0]]), np.array([[-1, 0]]), np.empty((0, 2), np.int64)):
        with pytest.raises(ValueError, match=r"outside the 2|at least one"):
            run(holder("opened", ONES, pairs), evaluator("opened", ONES, np.array([[0, 0]])), frames=frames)
    random = Randomness.from_seed(1)
    other = ZeroPool(OwnerZeros.of(small_key(), random))
    with pytest.raises(TypeError, match="a pool under the key itself"):
        run(
            lambda s: hold_opened(s.lane("dot"), B, KEY, other, pack_bits(ONES), 9, PAIRS, label=LABEL),
            evaluator("opened", ONES, PAIRS),
            frames=frames,
        )
    assert [f for f in frames if f.sender == A] == []


def test_more_rows_than_slots_can_count_are_refused() -> None:
    Arrangement.of(2**23 - 1, PAIRS[1:], BITS)
    with pytest.raises(ValueError, match="65 bits under masks"):
        Arrangement.of(2**23, PAIRS[1:], BITS)
