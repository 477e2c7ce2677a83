"""A receiver of an extension that deviates is caught, but where it has guessed Δ; one that does not, never."""

from __future__ import annotations

from math import log2
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import ROWS
from crypto.primitives.polynomial_hash import PolynomialHash
from crypto.primitives.randomness import Randomness
from crypto.protocols.transfers import extension_seeds
from crypto.protocols.transfers.extension_check import BatchCheck, extra
from crypto.protocols.transfers.extension_codes import CODES, SYMBOL_BITS, block_count
from crypto.protocols.transfers.extension_seeds import (
    FIELD_BITS,
    ReceiverSeeds,
    SenderSeeds,
    Told,
    prepare_receiving,
    prepare_sending,
)
from crypto.protocols.transfers.ot_extension import BATCH, receive_random, send_random
from crypto.protocols.transfers.table_transfers import BATCH as TABLES_BATCH
from link.errors import ProtocolViolation
from link.session import Session
from protos.v1 import oblivious_transfer_pb2
from protos.v1.link_pb2 import Frame
from tests.crypto.protocols.transfers_world import head_of, told_of
from tests.errors import fails
from tests.faulty_world import run_faulty_parties

SENDER, RECEIVER = "s", "r"
NUMBER = 256

Bytes = NDArray[np.uint8]


def drawn(shape: tuple[int, ...], seed: int) -> Bytes:
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def halves(k: int, seed: int = 0, delta: Any = None) -> tuple[ReceiverSeeds, SenderSeeds]:
    """As a trusted dealer would hand them out; Δ is given as k bits a block."""
    blocks = block_count(k, SYMBOL_BITS)
    bits = np.random.default_rng(seed).integers(0, 2, (blocks, k), np.uint8) if delta is None else delta
    seeds = drawn((blocks, 1 << k, 16), seed)
    return ReceiverSeeds(seeds), SenderSeeds(seeds, np.packbits(bits, bitorder="little").tobytes(), RECEIVER)


def choices_of(symbol_bits: int, seed: int = 1) -> Bytes:
    return drawn((symbol_bits, NUMBER // 8) if symbol_bits > 1 else (NUMBER // 8,), seed)


def errors_of(size: int) -> Bytes:
    """What a block's corrections are wrong by."""
    errors = np.zeros(size, np.uint8)
    errors[3] = 16
    return errors


class Deviating(BatchCheck):
    """The check of a receiver that corrects block `BLOCK` to other choices, and answers as if Δ were `guess` there."""

    BLOCK = 2
    guess: Bytes
    rows: list[int]  # to which the block's strips add

    def __init__(self, context: bytes, bound: bytes, strip_bytes: int, field_bits: int, code: Any) -> None:
        self.rows = [row for row, fold in enumerate(code.folds) if self.BLOCK in fold] or [self.BLOCK]
        super().__init__(context, bound, strip_bytes, field_bits, code)

    def told(self, planes: Any, hashes: bytes) -> bytes:
        turned = np.concatenate([errors_of(8 * planes.shape[1]) * bit for bit in self.guess])
        whole = np.frombuffer(hashes, np.uint8).reshape(-1, self.strips.size_bytes).copy()
        whole[self.rows] ^= self.strips.of_each(turned[None])[0]
        return super().told(planes, whole.tobytes())


@pytest.mark.parametrize("symbol_bits", [1, SYMBOL_BITS])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_who_deviates_in_a_block_passes_only_with_all_bits_of_delta_there(
    k: int, symbol_bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    delta = np.random.default_rng(k).integers(0, 2, (block_count(k, SYMBOL_BITS), k), np.uint8)
    passed, caught = [], []
    for value in range(1 << k):
        guess = np.array([value >> bit & 1 for bit in range(k)], np.uint8)
        receiver, sender = halves(k, k, delta)
        with monkeypatch.context() as patch:
            patch.setattr(extension_seeds, "BatchCheck", Deviating)
            patch.setattr(Deviating, "guess", guess, raising=False)
            batch = receiver.expand(choices_of(symbol_bits))
            wrong = batch.corrections.reshape(block_count(k, symbol_bits), -1)
            wrong[Deviating.BLOCK] ^= errors_of(wrong.shape[1])
            told = told_of(batch)
        try:
            sender.expand(told, symbol_bits)
            passed.append(guess.tolist())
        except ProtocolViolation as error:
            caught.append(error.party)
    assert caught == [RECEIVER] * ((1 << k) - 1)
    assert passed == [delta[Deviating.BLOCK].tolist()]


@pytest.mark.parametrize(("k", "symbol_bits"), [(1, 1), (2, 1), (2, SYMBOL_BITS), (3, 1), (3, SYMBOL_BITS)])
def test_no_message_with_a_bit_turned_passes(k: int, symbol_bits: int) -> None:
    receiver, _ = halves(k)
    told = told_of(receiver.expand(choices_of(symbol_bits)))
    random = np.random.default_rng(k)
    for turned in [told.corrections] * 30 + [told.check] * 10:
        wrong = turned.copy()
        place = random.integers(8 * len(wrong))
        wrong[place // 8] ^= 1 << place % 8
        sent = told._replace(check=wrong) if turned is told.check else Told(wrong, head_of(wrong), told.check)
        with fails("E400") as caught:
            halves(k)[1].expand(sent, symbol_bits)
        assert caught.value.party == RECEIVER


def test_no_rows_of_another_order_batch_stream_or_agreement_pass() -> None:
    receiver, sender = halves(3)
    choices, blocks = choices_of(1), block_count(3)
    told = told_of(receiver.expand(choices))
    rows = told.corrections.reshape(blocks, -1)
    swapped = rows[[1, 0, *range(2, blocks)]]
    repeated = rows[[0, 0, *range(2, blocks)]]
    for wrong in (swapped, repeated, np.roll(rows, 1, axis=1)):
        with fails("E400"):
            sent = wrong.reshape(-1)
            halves(3)[1].expand(Told(sent, head_of(sent), told.check))
    sender.expand(told)
    with fails("E400"):
        sender.expand(told)  # a replay
    with fails("E400"):
        halves(3)[1].fork(b"label").expand(told)
    with fails("E400"):
        halves(3, seed=1)[1].expand(told)


def test_a_check_under_another_head_does_not_pass() -> None:
    """Its challenge is not that of the corrections as the sender has read them, on this lane."""
    batch = halves(3)[0].expand(choices_of(1))
    with fails("E400"):
        halves(3)[1].expand(told_of(batch)._replace(bound=head_of(batch.corrections[1:])))


def test_a_batch_that_was_refused_serves_no_other() -> None:
    """Streams go on behind it, so that no second try is made of the same bits."""
    receiver, sender = halves(3)
    first, second = (receiver.expand(choices_of(1)) for _ in range(2))
    with fails("E400"):
        sender.expand(told_of(second))
    with fails("E400"):
        sender.expand(told_of(first))
    assert sender.used == receiver.used == 2 * NUMBER
    assert len(second.rows) == NUMBER


@pytest.mark.parametrize("k", FIELD_BITS)
def test_what_the_check_sends_does_not_depend_on_the_choices(k: int) -> None:
    """The hash of the choices has their last bits as a mask, which differ from batch to batch and from fork to fork."""
    receiver, _ = halves(k)
    forks = [receiver, receiver.fork(b"a"), receiver.fork(b"b")]
    same = np.zeros(NUMBER // 8, np.uint8)
    tails = [half.expand(same).check(bytes(32)).tobytes() for half in forks for _ in range(2)]
    assert len(set(tails)) == len(tails)
    seed = drawn((32,), 9).tobytes()
    basis = np.zeros((extra(k), (ROWS + extra(k)) // 8), np.uint8)
    basis[:, ROWS // 8 :] = np.packbits(np.eye(extra(k), dtype=np.uint8), axis=1)
    hashes = PolynomialHash(seed, basis.shape[1], extra(k) // ROWS).of_each(basis)
    assert rank_of(hashes) == extra(k)  # so uniform masks make the hash uniform


def rank_of(rows: Bytes) -> int:
    return rank_of_numbers([int.from_bytes(row.tobytes(), "big") for row in rows])


def rank_of_numbers(numbers: list[int]) -> int:
    left, rank = list(numbers), 0
    while left:
        pivot = left.pop()
        if pivot:
            rank += 1
            left = [row ^ pivot if row & pivot & -pivot else row for row in left]
    return rank


@pytest.mark.parametrize(("k", "most"), [(1, -91), (2, -187), (3, -94), (4, -103), (8, -107)])
def test_the_chance_of_a_collision_is_as_the_page_says(k: int, most: float) -> None:
    """Over batches of the greatest size, as docs/protocols/ot-extension.md derives it."""
    points = extra(k) // ROWS
    for symbol_bits, batch in ((1, BATCH), (SYMBOL_BITS, TABLES_BATCH)):
        code, length = CODES[symbol_bits], (batch + extra(k)) // ROWS
        of_block, of_row = (((blocks + 1) / 2.0**128) ** points for blocks in (length, k * length))
        columns = [sum(1 << row for row, fold in enumerate(code.folds) if b in fold) for b in range(len(code.masks))]
        passing = explained = 0.0
        for wrong in range(1 << len(columns)):
            some = [b for b in range(len(columns)) if wrong >> b & 1]
            weight = 2.0 ** (-k * rank_of_numbers([columns[b] for b in some]))
            passing += weight
            both = (len(set(fold) & set(some)) for fold in code.folds)
            explained += weight * sum(2.0 ** (k * number) for number in both if number > 1)
        groups = code.groups(k)
        chance = of_block * passing**groups + of_row * groups * explained * passing ** (groups - 1)
        assert log2(chance) <= most


# -- in sessions -------------------------------------------------------------------------------------------------------
def transfers(k: int, rewrite: Any = lambda frame: frame) -> dict[str, Any]:
    """Seeds, then two batches of random transfers; what either party gets, or its error."""
    choices = drawn((2, NUMBER // 8), k)

    async def sending(session: Session) -> Any:
        seeds = await prepare_sending(session.lane("seeds"), RECEIVER, field_bits=k)
        return [both for i in "01" async for both in send_random(session.lane(i), RECEIVER, seeds, NUMBER)]

    async def receiving(session: Session) -> Any:
        seeds = await prepare_receiving(session.lane("seeds"), SENDER, field_bits=k)
        lanes = zip((session.lane(i) for i in "01"), choices, strict=True)
        return [rows for lane, some in lanes async for rows in receive_random(lane, SENDER, seeds, some)]

    async def role(session: Session) -> Any:
        return await (sending if session.me == SENDER else receiving)(session)

    return run_faulty_parties((SENDER, RECEIVER), role, [], rewrite)[0]


def altering(number: int, random: Randomness) -> tuple[Any, list[str]]:
    """Turns a bit of the receiver's frame of this number, or sends the one before of its kind again; and which."""
    seen, kinds, before = [0], list[str](), dict[str, bytes]()

    def rewrite(frame: Frame) -> Frame:
        kind = frame.type.split(".")[-1]
        if frame.sender != RECEIVER or not hasattr(oblivious_transfer_pb2, kind):
            return frame
        seen[0] += 1
        if seen[0] != number + 1:
            before[kind] = frame.body
            return frame
        kinds.append(kind)
        copy = Frame()
        copy.CopyFrom(frame)
        if kind in before and random.below(2):
            copy.body = before[kind]
        else:
            body = bytearray(frame.body)
            place = random.below(8 * min(len(body), 4096)) if random.below(2) else 8 * len(body) - 1 - random.below(256)
            body[place // 8] ^= 1 << place % 8
            copy.body = bytes(body)
        return copy

    return rewrite, kinds


@pytest.mark.parametrize(("k", "frames"), [(1, 5), (2, 7), (3, 7)])
def test_a_receiver_that_alters_any_message_is_named(k: int, frames: int) -> None:
    for seed in range(4 * frames):
        rewrite, kinds = altering(seed % frames, Randomness.from_seed(b"%d %d" % (k, seed)))
        ends = transfers(k, rewrite)
        assert kinds, "no frame was altered"
        error = ends[SENDER]
        assert isinstance(error, ProtocolViolation), (kinds, error)
        assert error.party == RECEIVER


def test_without_alterations_all_is_well() -> None:
    ends = transfers(3)
    zero, one = (np.concatenate([both[i] for both in ends[SENDER]]) for i in (0, 1))
    picked = np.unpackbits(drawn((2, NUMBER // 8), 3).reshape(-1), bitorder="little")[:, None] == 1
    assert (np.concatenate(ends[RECEIVER]) == np.where(picked, one, zero)).all()
