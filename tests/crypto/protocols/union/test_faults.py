"""Unions with parties that send wrong messages, and with parties that are lost."""

from __future__ import annotations

import pytest

from link.errors import ComineError, MalformedMessage, PeerError, ProtocolViolation
from protos.v1.link_pb2 import Frame, Opening
from protos.v1.set_union_pb2 import (
    EncryptedList,
    FullyEncryptedList,
    MergedPiece,
    MergedSize,
    UnionSize,
)
from tests.crypto.protocols.set_union_world import message_of, run_faulty, sets_of

SETS = sets_of("abc", "bcd", "cde")
TWO = sets_of("abc", "bcd")
NO_POINT = b"\xff" * 32


def changed(kind, change, *, sender=None, lane=""):
    """A rewriting of the first frame of one kind, and of one sender or lane."""
    done = []

    def rewrite(frame: Frame) -> Frame:
        wanted = frame.type == kind.DESCRIPTOR.full_name and frame.sender == (sender or frame.sender)
        if done or not wanted or not frame.lane.endswith(lane):
            return frame
        done.append(frame)
        message = message_of(frame)
        change(message)
        copy = Frame()
        copy.CopyFrom(frame)
        copy.body = message.SerializeToString()
        return copy

    return rewrite


def failures(outcome) -> dict[str, ComineError]:
    assert all(isinstance(end, ComineError) for end in outcome.values()), outcome
    return outcome


def put(start: int, value: bytes):
    def change(message):
        message.data = message.data[:start] + value + message.data[start + len(value) :]

    return change


def first_everywhere(message):
    message.data = message.data[:32] * (len(message.data) // 32)


def shorter(message):
    message.data = message.data[:-32]


def longer(message):
    message.data += message.data[:32]


@pytest.mark.parametrize("wrong", [put(0, NO_POINT), put(64, bytes(32)), put(95, b"\xff"), shorter, longer])
@pytest.mark.parametrize(
    ("kind", "sender", "lane"),
    [
        (EncryptedList, "east", "list/east"),  # between two that encrypt
        (EncryptedList, "north", "list/north"),  # the merger's own list leaves
        (FullyEncryptedList, "south", "list/east"),  # another's list reaches the merger
        (FullyEncryptedList, "east", "list/north"),  # the merger's own list returns
        (MergedPiece, "north", "merged"),
        (MergedPiece, "south", "merged"),
        (MergedPiece, "east", "merged"),
    ],
)
def test_what_is_no_list_of_points_is_laid_at_its_senders_door(kind, sender, lane, wrong):
    outcome, _ = run_faulty(SETS, merger="north", rewrite=changed(kind, wrong, sender=sender, lane=lane))
    errors = failures(outcome)
    assert {type(error) for error in errors.values()} == {MalformedMessage}
    assert all(error.message.startswith(f"{sender} sent") for error in errors.values())
    assert sender in {error.party for error in errors.values()}


def assign(name: str, value: int):
    return lambda message: setattr(message, name, value)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (MergedSize, assign("tuples", 0)),
        (MergedSize, assign("tuples", 1 << 60)),
        (UnionSize, assign("elements", 1 << 60)),
        (UnionSize, assign("elements", 3)),
    ],
)
def test_sizes_that_the_union_does_not_allow(kind, change):
    outcome, _ = run_faulty(SETS, merger="north", rewrite=changed(kind, change, sender="north"))
    assert type(outcome["south"]) is MalformedMessage  # the first to whom the north sends
    assert outcome["south"].message.startswith("north sent")


def swap_blocks(message):
    message.data = message.data[32:64] + message.data[:32] + message.data[64:]


def mixed(message):
    """The first blocks of the first two tuples of two blocks change places."""
    message.data = message.data[64:96] + message.data[32:64] + message.data[:32] + message.data[96:]


@pytest.mark.parametrize("change", [swap_blocks, mixed])
@pytest.mark.parametrize("kind", [EncryptedList, FullyEncryptedList, MergedPiece])
def test_tuples_that_were_tampered_with(kind, change):
    sets = {name: {element * 30 for element in elements} for name, elements in TWO.items()}
    outcome, _ = run_faulty(sets, merger="north", rewrite=changed(kind, change))
    assert type(outcome["north"]) is ProtocolViolation
    assert outcome["north"].party == "south"
    assert "south" in outcome["north"].message
    assert type(outcome["south"]) is ProtocolViolation


def test_among_several_peers_the_error_names_all_who_may_have_tampered():
    sets = {name: {element * 30 for element in elements} for name, elements in SETS.items()}
    outcome, _ = run_faulty(sets, merger="north", rewrite=changed(MergedPiece, mixed, sender="south"))
    assert type(outcome["north"]) is ProtocolViolation
    assert "south or east sent" in outcome["north"].message


@pytest.mark.parametrize("kind", [EncryptedList, FullyEncryptedList])
def test_a_party_whose_elements_were_dropped_notices(kind):
    sets = sets_of("abc", "bcd", "cdefgh")
    outcome, _ = run_faulty(sets, merger="north", rewrite=changed(kind, first_everywhere, lane="list/east"))
    assert type(outcome["east"]) is ProtocolViolation
    assert "lacks elements of east" in outcome["east"].message


def test_elements_that_come_out_twice_are_refused():
    outcome, _ = run_faulty(TWO, merger="north", rewrite=changed(MergedPiece, first_everywhere, sender="south"))
    assert type(outcome["north"]) is ProtocolViolation


def open_rubbish(message):
    message.values = bytes(len(message.values))


def open_a_fake(message):
    message.values = message.values[:-1] + b"\1"


@pytest.mark.parametrize("change", [open_rubbish, open_a_fake])
def test_an_opening_is_checked(change):
    outcome, _ = run_faulty(SETS, merger="north", rewrite=changed(Opening, change, lane="union/union"))
    assert type(outcome["south"]) is MalformedMessage
    assert outcome["south"].party == "north"


def test_no_error_holds_an_element():
    sets = {name: {b"secret-" + element for element in elements} for name, elements in TWO.items()}
    for kind in (EncryptedList, FullyEncryptedList, MergedPiece):
        outcome, _ = run_faulty(sets, merger="north", rewrite=changed(kind, first_everywhere))
        assert all("secret" not in str(end) for end in outcome.values() if isinstance(end, BaseException))


@pytest.mark.parametrize("lost", list(SETS))
def test_a_party_that_is_lost_at_any_frame_ends_the_union_for_all(lost):
    union = sorted(set().union(*SETS.values()))
    _, hub = run_faulty(SETS, merger="north")
    for frame in range(hub.sent[lost]):
        outcome, _ = run_faulty(SETS, merger="north", crash=(lost, frame))
        for name, end in outcome.items():
            if name != lost and end != union:  # who needs nothing more of the lost party may have finished
                assert type(end) is PeerError
                assert end.party == lost
