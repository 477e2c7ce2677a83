from __future__ import annotations

from dataclasses import dataclass
from math import comb, e, log2
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives.bit_matrix import ROWS, transpose_back
from crypto.primitives.groups.point_hash import words_of
from crypto.primitives.linear_code import DISTANCE, WORD_BITS, encoded_columns, generator
from crypto.primitives.okvs import MOST_KEYS, Layout
from crypto.primitives.polynomial_hash import polynomial_hashes
from crypto.primitives.randomness import Randomness
from crypto.protocols.transfers import oprf_check
from crypto.protocols.transfers.oprf_check import Sent, columns_of, rows_of
from link.errors import ProtocolViolation
from link.session import Session
from protos.v1.link_pb2 import Frame
from protos.v1.oblivious_prf_pb2 import CheckedColumns, CodeColumns
from tests.crypto.protocols.transfers.test_oprf import (
    RECEIVER,
    SENDER,
    assert_fair,
    points,
    values,
)
from tests.faulty_world import Rewrite, run_faulty_parties

pytestmark = pytest.mark.turn(3)

CHALLENGE = bytes(range(32))
ROWS_SENT = rows_of(Layout.of(64))


@dataclass(frozen=True)
class Part:
    """What both parties have of a part where the receiver's rows differ from words of the code as it wants."""

    sent: Sent
    secret: Any
    columns: Any

    @classmethod
    def of(cls, seed: int, errors: Any = None) -> Part:
        random = Randomness.from_seed(seed)
        messages = transpose_back(random.uint64(2 * ROWS_SENT).reshape(-1, 2))
        streams = np.frombuffer(random.bytes(WORD_BITS * ROWS_SENT // 8), np.uint8).reshape(WORD_BITS, -1)
        words = encoded_columns(messages) ^ (0 if errors is None else errors)
        secret = random.uint64(8)
        return cls(Sent(streams, messages), secret, streams ^ words * bits_of(secret)[:, None])

    def passes(self, answer: CheckedColumns, challenge: bytes = CHALLENGE) -> bool:
        return oprf_check.agrees(answer, challenge, self.secret, self.columns)


def bits_of(secret: Any) -> Any:
    return np.unpackbits(secret.view(np.uint8), bitorder="little")


def errors_at(columns: Any, seed: int = 5) -> Any:
    """Random ones in some columns."""
    errors = np.zeros((WORD_BITS, ROWS_SENT // 8), np.uint8)
    random = Randomness.from_seed(seed)
    for column in columns:
        errors[column] = np.frombuffer(random.bytes(ROWS_SENT // 8), np.uint8)
    return errors


# -- who passes ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(5))
def test_rows_of_points_pass(seed):
    part = Part.of(seed)
    challenge = Randomness.from_seed(seed).bytes(32)
    assert part.passes(part.sent.answer(challenge), challenge)


@given(column=st.integers(0, WORD_BITS - 1), row=st.integers(0, ROWS_SENT - 1), seed=st.integers(0, 99))
def test_one_bit_that_is_changed_is_noticed_unless_it_changes_nothing(column, row, seed):
    """A row's bit counts only where s has a one; there it is caught for certain, since no hash of one bit is 0."""
    errors = np.zeros((WORD_BITS, ROWS_SENT // 8), np.uint8)
    errors[column, row // 8] = 1 << row % 8
    part = Part.of(seed, errors)
    assert part.passes(part.sent.answer(CHALLENGE)) == (not bits_of(part.secret)[column])


@given(columns=st.sets(st.integers(0, WORD_BITS - 1), min_size=1, max_size=9), seed=st.integers(0, 99))
def test_changed_columns_pass_where_the_secret_is_guessed(columns, seed):
    """So that a receiver that guesses t bits is caught but for a chance of 2^-t, and learns no more than its guess."""
    errors = errors_at(columns)
    part = Part.of(seed, errors)
    ordered, truth = sorted(columns), bits_of(part.secret)
    hashes = polynomial_hashes(errors, CHALLENGE)
    for flipped in (None, *ordered):
        answer = part.sent.answer(CHALLENGE)
        streams = np.frombuffer(bytearray(answer.streams), np.uint8).reshape(WORD_BITS, -1)
        for column in ordered:
            if truth[column] ^ (column == flipped):
                streams[column] ^= hashes[column]
        answer.streams = streams.tobytes()
        assert part.passes(answer) == (flipped is None)


def test_a_row_of_another_message_than_is_hashed_is_noticed():
    """Any two words differ at 112 columns or more; s would have to be 0 in all of them."""
    for bit in (0, 77, 127):
        errors = np.zeros((ROWS_SENT, 8), np.uint64)
        errors[9] = generator()[bit]
        part = Part.of(bit, columns_of(errors))
        assert not part.passes(part.sent.answer(CHALLENGE))


def test_rows_that_are_pseudorandom_words_are_noticed():
    """No linear code: what is hashed of some columns does not fit the others."""
    for seed in range(10):
        random = Randomness.from_seed(seed)
        words = columns_of(words_of(random.uint64(2 * ROWS_SENT).reshape(-1, 2), bytes(16), 8, "words"))
        messages = Part.of(seed).sent.messages
        part = Part.of(seed, words ^ encoded_columns(messages))
        assert not part.passes(Sent(part.sent.streams, words[:ROWS]).answer(CHALLENGE))


@given(
    field=st.sampled_from(["messages", "streams"]),
    place=st.integers(0, 4095),
    bit=st.integers(0, 7),
    seed=st.integers(0, 99),
)
def test_a_false_answer_is_noticed(field, place, bit, seed):
    """A hash of T is fixed by what the sender has; with another one of D, s would have to be 0 in 112 columns."""
    part = Part.of(seed)
    answer = part.sent.answer(CHALLENGE)
    data = bytearray(getattr(answer, field))
    data[place] ^= 1 << bit
    setattr(answer, field, bytes(data))
    assert not part.passes(answer)


def test_the_answer_to_another_challenge_or_of_another_part_does_not_pass():
    part, other = Part.of(1), Part.of(2)
    assert not part.passes(part.sent.answer(CHALLENGE[::-1]))
    assert not part.passes(other.sent.answer(CHALLENGE))


# -- what the answer reveals -----------------------------------------------------------------------------------------
def test_hashes_of_messages_are_uniform_whatever_they_are():
    """The last rows mask them, also under a challenge whose halves are equal. Fair bits fail with a chance of 10^-8."""
    for challenge in (CHALLENGE, CHALLENGE[:16] * 2):
        runs = []
        for seed in range(40):
            messages = np.zeros((128, ROWS_SENT // 8), np.uint8)
            masks = Randomness.from_seed(seed).bytes(128 * 32)
            messages[:, -32:] = np.frombuffer(masks, np.uint8).reshape(128, -1)
            runs.append(np.unpackbits(polynomial_hashes(messages, challenge), axis=1))
        assert_fair(np.array(runs))


def test_hashes_of_streams_follow_from_what_the_sender_has():
    part = Part.of(3)
    answer = part.sent.answer(CHALLENGE)
    messages = np.frombuffer(answer.messages, np.uint8).reshape(128, -1)
    known = polynomial_hashes(part.columns, CHALLENGE) ^ encoded_columns(messages) * bits_of(part.secret)[:, None]
    assert known.tobytes() == answer.streams


# -- figures of the page ---------------------------------------------------------------------------------------------
def test_the_chance_that_other_rows_than_words_pass():
    """2^k·ε + 2^-k for the best k, ε of the longest columns: docs/protocols/oprf.md."""
    blocks = rows_of(Layout.of(MOST_KEYS)) // 128
    zero = 2 * (log2(blocks + 1) - 128)
    assert min(np.logaddexp2(k + zero, -k) for k in range(256)) < -116


def test_words_of_random_messages_leave_128_secret_bits():
    """If weights of words lie as those of fair coins do, of which 510 can be 1."""
    assert -102 < log2(sum(comb(510, weight) for weight in range(128))) - 510 < -100
    assert DISTANCE == 112


@pytest.mark.parametrize(
    ("capacity", "candidates", "times"),
    [
        *((64, 40, 2.7), (64, 64, 3.6), (128, 40, 2.3), (128, 64, 3.0), (256, 40, 2.0), (256, 64, 2.7)),
        *(
            (1024, 40, 1.8),
            (1024, 64, 2.4),
            (10**5, 40, 1.8),
            (10**5, 64, 2.4),
            (MOST_KEYS, 40, 1.8),
            (MOST_KEYS, 64, 2.4),
        ),
    ],
)
def test_a_store_has_no_more_points_than_about_twice_its_capacity(capacity, candidates, times):
    """By the union bound over stores and seeds: how many of 2^40 or 2^64 candidates some store can hold."""
    rows, held = Layout.of(capacity).rows, times * capacity
    chance = 128 * (rows + 1) + held * (candidates + log2(e / held)) - 128 * held
    assert chance < -40


# -- whole runs ------------------------------------------------------------------------------------------------------
def flipped(place: int) -> Rewrite:
    """Turns a bit of the receiver's columns on their way."""

    def rewrite(frame: Frame) -> Frame:
        if not frame.type.endswith(".CodeColumns"):
            return frame
        data = bytearray(CodeColumns.FromString(frame.body).data)
        data[place // 8] ^= 1 << place % 8
        copy = Frame()
        copy.CopyFrom(frame)
        copy.body = CodeColumns(data=bytes(data)).SerializeToString()
        return copy

    return rewrite


@pytest.mark.parametrize("column", [0, 1, 2, 200, 401, 509])
def test_a_column_that_is_changed_on_its_way_ends_the_run_where_it_counts(column, monkeypatch):
    seen: list[Any] = []
    agrees = oprf_check.agrees

    def watched(answer: Any, seed: bytes, secret: Any, columns: Any) -> bool:
        seen.append(bits_of(secret)[column])
        return agrees(answer, seed, secret, columns)

    monkeypatch.setattr(oprf_check, "agrees", watched)
    parts = values(points(1, 2), points(2, 3), 64)

    async def role(session: Session) -> Any:
        return await parts[session.me](session)

    outcome, _ = run_faulty_parties((SENDER, RECEIVER), role, [], flipped(column * ROWS_SENT))
    (counts,) = seen
    assert isinstance(outcome[SENDER], ProtocolViolation) == bool(counts)
    if counts:
        assert outcome[SENDER].party == RECEIVER
