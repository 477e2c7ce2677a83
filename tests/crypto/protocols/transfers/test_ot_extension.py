from __future__ import annotations

import copy
import pickle
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.protocols.transfers import ot_extension
from crypto.protocols.transfers.extension_batches import batch_bytes
from crypto.protocols.transfers.extension_codes import SYMBOL_BITS
from crypto.protocols.transfers.extension_seeds import (
    FIELD_BITS,
    ReceiverSeeds,
    SenderSeeds,
    prepare_receiving,
    prepare_sending,
)
from crypto.protocols.transfers.ot_extension import (
    batches,
    fill_up,
    lowest_bits,
    receive_chosen,
    receive_correlated,
    receive_random,
    send_chosen,
    send_correlated,
    send_random,
)
from link.session import Session
from protos.v1.link_pb2 import Frame
from protos.v1.oblivious_transfer_pb2 import EncryptedMessages, ExtensionCheck, ExtensionRows, TreeSums
from tests.crypto.protocols.transfers_world import told_of
from tests.errors import fails
from tests.examples import crossed, examples
from tests.world import run_parties

pytestmark = [pytest.mark.usefixtures("real_groups"), pytest.mark.turn(6)]

SENDER, RECEIVER = "s", "r"
WORD_TYPES = (np.uint8, np.uint16, np.uint32, np.uint64)

Part = Callable[[Session, Any], Awaitable[Any]]


def run(sender: Part, receiver: Part, *, k: int = 2, seed: int = 0, frames: list[Frame] | None = None) -> Any:
    """Both parts on lane "ot" after the seeds are agreed upon; results and both halves of the seeds."""

    async def sending(session: Session) -> Any:
        seeds = await prepare_sending(session.lane("seeds"), RECEIVER, field_bits=k)
        return seeds, await sender(session.lane("ot"), seeds)

    async def receiving(session: Session) -> Any:
        seeds = await prepare_receiving(session.lane("seeds"), SENDER, field_bits=k)
        return seeds, await receiver(session.lane("ot"), seeds)

    observe = None if frames is None else frames.append
    out = run_parties([SENDER, RECEIVER], {SENDER: sending, RECEIVER: receiving}, seed=seed, observe=observe)
    return out[SENDER], out[RECEIVER]


async def collected(rows: AsyncIterator[Any]) -> list[Any]:
    return [batch async for batch in rows]


def bits(number: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, number, np.uint8)


def random_transfers(choices: np.ndarray, **options: Any) -> Any:
    """Both messages at the sender, the chosen ones at the receiver."""
    (_, sent), (_, got) = run(
        lambda s, seeds: collected(send_random(s, RECEIVER, seeds, len(choices))),
        lambda s, seeds: collected(receive_random(s, SENDER, seeds, fill_up(choices))),
        **options,
    )
    n = len(choices)
    zero, one = (np.concatenate([pair[i] for pair in sent])[:n] for i in (0, 1))
    return zero, one, np.concatenate(got)[:n]


# -- correctness -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("k", "number"), crossed(FIELD_BITS, [1, 128, 1000]))
def test_the_receiver_gets_the_messages_of_its_choice(k: int, number: int) -> None:
    choices = bits(number, k)
    zero, one, got = random_transfers(choices, k=k)
    assert (got == np.where(choices[:, None] == 1, one, zero)).all()
    assert len(np.unique(np.concatenate([zero, one]), axis=0)) == 2 * number


@pytest.mark.parametrize("k", FIELD_BITS)
def test_rows_differ_by_delta_where_the_choice_is_one(k: int) -> None:
    async def nothing(session: Session, seeds: Any) -> None:
        return None

    (sender, _), (receiver, _) = run(nothing, nothing, k=k)
    for _ in range(3):
        choices = np.random.default_rng(k).integers(0, 256, 512 // 8, np.uint8)
        batch = receiver.expand(choices)
        t, q = batch.rows, sender.expand(told_of(batch))
        picked = np.unpackbits(choices, bitorder="little")[:, None].astype(bool)
        assert (t == np.where(picked, q ^ sender.delta, q)).all()
    assert sender.used == receiver.used == 3 * 512


@pytest.mark.parametrize("k", FIELD_BITS)
def test_rows_of_symbols_differ_by_the_symbol_times_delta(k: int) -> None:
    async def nothing(session: Session, seeds: Any) -> None:
        return None

    (sender, _), (receiver, _) = run(nothing, nothing, k=k)
    bits = SYMBOL_BITS
    offsets = sender.offsets(bits)
    assert (offsets[0] == 0).all()
    assert len(np.unique(offsets, axis=0)) == 1 << bits  # whoever lacks Δ lacks every difference between two
    assert all((offsets[x] ^ offsets[y] == offsets[x ^ y]).all() for x in range(1 << bits) for y in range(1 << bits))
    for _ in range(3):
        choices = np.random.default_rng(k).integers(0, 256, (bits, 512 // 8), np.uint8)
        batch = receiver.expand(choices)
        t, q = batch.rows, sender.expand(told_of(batch), bits)
        planes = np.unpackbits(choices, axis=1, bitorder="little")
        symbols = (planes << np.arange(bits, dtype=np.uint8)[:, None]).sum(axis=0)
        assert (t == q ^ offsets[symbols]).all()
    assert sender.used == receiver.used == 3 * 512


def test_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ot_extension, "BATCH", 256)
    choices = bits(1000)
    zero, one, got = random_transfers(choices)
    assert (got == np.where(choices[:, None] == 1, one, zero)).all()
    assert len(np.unique(np.concatenate([zero, one]), axis=0)) == 2000


@settings(max_examples=15, deadline=None)
@given(data=st.data(), word=st.sampled_from(WORD_TYPES), number=st.integers(0, 300), seed=st.integers(0, 2**32))
def test_correlated_transfers_share_choice_times_correlation(
    data: st.DataObject, word: type[np.unsignedinteger[Any]], number: int, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    x = generator.integers(0, np.iinfo(word).max, number, word, endpoint=True)
    choices = bits(number, seed)
    (_, a), (_, b) = run(
        lambda s, seeds: send_correlated(s, RECEIVER, seeds, x),
        lambda s, seeds: receive_correlated(s, SENDER, seeds, choices, word),
        seed=seed,
    )
    assert a.dtype == b.dtype == word
    assert (b - a == x * choices.astype(word)).all()


@examples(4, 15)
@given(length=st.integers(1, 16), number=st.integers(0, 300), seed=st.integers(0, 2**32))
def test_chosen_messages(length: int, number: int, seed: int) -> None:
    zero, one = np.random.default_rng(seed).integers(0, 256, (2, number, length), np.uint8)
    choices = bits(number, seed)
    _, (_, got) = run(
        lambda s, seeds: send_chosen(s, RECEIVER, seeds, zero, one),
        lambda s, seeds: receive_chosen(s, SENDER, seeds, choices, length),
        seed=seed,
    )
    assert (got == np.where(choices[:, None] == 1, one, zero)).all()


def test_one_pair_of_seeds_serves_many_calls_and_repeats_nothing() -> None:
    choices = fill_up(np.zeros(256, np.uint8))

    async def sender(session: Session, seeds: SenderSeeds) -> Any:
        return [await collected(send_random(session.lane(str(i)), RECEIVER, seeds, 256)) for i in range(3)]

    async def receiver(session: Session, seeds: ReceiverSeeds) -> Any:
        return [await collected(receive_random(session.lane(str(i)), SENDER, seeds, choices)) for i in range(3)]

    (seeds, sent), _ = run(sender, receiver)
    rows = np.concatenate([side for call in sent for pair in call for side in pair])
    assert len(np.unique(rows, axis=0)) == len(rows) == 3 * 2 * 256
    assert seeds.used == 3 * 256


# -- costs -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("k", FIELD_BITS)
def test_bytes_follow_the_field(k: int) -> None:
    frames: list[Frame] = []
    random_transfers(bits(4096), k=k, frames=frames)
    kinds = {kind.DESCRIPTOR.full_name: kind for kind in (ExtensionRows, ExtensionCheck)}
    sent = [kinds[f.type].FromString(f.body).data for f in frames if f.lane == "/ot"]
    assert sum(map(len, sent)) == batch_bytes(k, 4096)
    assert sum(map(len, sent)) - 4096 * -(-128 // k) // 8 <= 128 // 8 * 256 + 64  # with two points, k < 3, just that
    trees = [f for f in frames if f.type == TreeSums.DESCRIPTOR.full_name]
    assert sum(len(TreeSums.FromString(f.body).data) for f in trees) == 7 * -(-32 // k) * (k - 1) * 32


@pytest.mark.parametrize("number", [100, 2000])
def test_rounds_do_not_grow_with_the_number(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ot_extension, "BATCH", 256)
    x, choices = np.zeros(number, np.uint32), bits(number)

    async def receiver(session: Session, seeds: ReceiverSeeds) -> int:
        lane = session.lane("fresh")
        before = lane.costs.rounds
        await receive_correlated(lane, SENDER, seeds, choices, np.uint32)
        return lane.costs.rounds - before

    _, (_, rounds) = run(lambda s, seeds: send_correlated(s.lane("fresh"), RECEIVER, seeds, x), receiver)
    assert rounds == 2


@given(st.integers(0, 10**9))
def test_batches_cover_all_transfers(number: int) -> None:
    sizes = batches(number)
    assert number <= sum(sizes) < number + 128
    assert all(size % 128 == 0 and 0 < size <= ot_extension.BATCH for size in sizes)


# -- what the parties see ----------------------------------------------------------------------------------------------
def test_the_corrections_do_not_tell_the_choices() -> None:
    """Bytes of the corrections are uniform for constant choices; a chi-square that fails with probability 1e-6."""
    for choice in (0, 1):
        frames: list[Frame] = []
        random_transfers(np.full(8192, choice, np.uint8), frames=frames, seed=choice)
        data = b"".join(ExtensionRows.FromString(f.body).data for f in frames if f.lane == "/ot")
        seen = np.bincount(np.frombuffer(data, np.uint8), minlength=256)
        expected = len(data) / 256
        assert ((seen - expected) ** 2 / expected).sum() < 371


def test_the_correlations_stay_under_a_mask() -> None:
    """What the receiver sees of x is uniform where it chose 0, whatever x is; probability of error 1e-6 each."""
    for value in (0, 255):
        frames: list[Frame] = []
        x = np.full(1 << 15, value, np.uint8)
        run(
            lambda s, seeds, x=x: send_correlated(s, RECEIVER, seeds, x),
            lambda s, seeds: receive_correlated(s, SENDER, seeds, np.zeros(1 << 15, np.uint8), np.uint8),
            frames=frames,
            seed=value,
        )
        sent = [f for f in frames if f.sender == SENDER and f.lane == "/ot"]
        data = b"".join(EncryptedMessages.FromString(f.body).data for f in sent)
        seen = np.bincount(np.frombuffer(data, np.uint8), minlength=256)
        assert ((seen - 128) ** 2 / 128).sum() < 371


def test_lowest_bits_of_both_messages_are_balanced_and_independent() -> None:
    (_, sent), _ = run(
        lambda s, seeds: collected(send_random(s, RECEIVER, seeds, 1 << 16, lowest_bits)),
        lambda s, seeds: collected(receive_random(s, SENDER, seeds, np.zeros(1 << 13, np.uint8), lowest_bits)),
    )
    zero, one = (np.unpackbits(np.concatenate([pair[i] for pair in sent])) for i in (0, 1))
    for share in (zero.mean(), one.mean(), (zero ^ one).mean()):
        assert abs(share - 0.5) < 5 / 2 / 256  # five standard deviations


def test_seeds_are_never_copied() -> None:
    async def nothing(session: Session, seeds: Any) -> None:
        return None

    (sender, _), (receiver, _) = run(nothing, nothing)
    for seeds in (sender, receiver):
        with pytest.raises(TypeError, match="never copied"):
            copy.copy(seeds)
        with pytest.raises(TypeError, match="never copied"):
            pickle.dumps(seeds)
        assert "delta" not in repr(seeds)


# -- misuse and malice -------------------------------------------------------------------------------------------------
def test_a_label_serves_once() -> None:
    seeds = np.zeros((128, 2, 16), np.uint8)
    for half in (ReceiverSeeds(seeds), SenderSeeds(seeds, bytes(16), RECEIVER)):
        forked = half.fork(b"label")
        assert half.fork(b"another").domain != forked.domain
        for family in (half, forked):
            with fails("E700"):
                family.fork(b"label")


@pytest.mark.parametrize("k", [0, 5, 16])
def test_other_field_sizes_are_refused(k: int) -> None:
    async def nothing(session: Session, seeds: Any) -> None:
        return None

    with pytest.raises(ValueError, match="field_bits"):
        run(nothing, nothing, k=k)


@pytest.mark.parametrize("length", [0, 17])
def test_messages_fit_a_row(length: int) -> None:
    zero = np.zeros((4, length), np.uint8)

    async def waiting(session: Session, seeds: ReceiverSeeds) -> None:
        await session.recv(SENDER, EncryptedMessages)

    with pytest.raises(ValueError, match="1 to 16 bytes"):
        run(lambda s, seeds: send_chosen(s, RECEIVER, seeds, zero, zero), waiting)
