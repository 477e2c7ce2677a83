"""Unions with parties that send wrong messages, and with parties that are lost."""

from __future__ import annotations

import numpy as np
import pytest

from crypto.primitives.groups.ristretto255 import from_uniform_bytes
from crypto.protocols.union import set_union as protocol
from link.errors import ComineError, MalformedMessage, PeerError, ProtocolViolation
from protos.v1.link_pb2 import Frame, Opening
from protos.v1.set_union_pb2 import EncryptedList, FullyEncryptedList, MergedPiece
from tests.crypto.protocols.set_union_world import message_of, pseudonyms_of, run_faulty, run_union
from tests.errors import fails
from tests.examples import crossed, spread

pytestmark = pytest.mark.turn(3)

SETS = pseudonyms_of("abc", "bcd", "cde")
TWO = pseudonyms_of("abc", "bcd")
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


@pytest.mark.parametrize(
    ("kind", "sender", "lane", "wrong"),
    crossed(
        [
            (EncryptedList, "east", "list/east"),  # between two that encrypt
            (EncryptedList, "north", "list/north"),  # the merger's own list leaves
            (FullyEncryptedList, "south", "list/east"),  # another's list reaches the merger
            (FullyEncryptedList, "east", "list/north"),  # the merger's own list returns
            (MergedPiece, "north", "merged"),
            (MergedPiece, "south", "merged"),
            (MergedPiece, "east", "merged"),
        ],
        [put(0, NO_POINT), put(64, bytes(32)), put(95, b"\xff"), shorter, longer],
    ),
)
def test_what_is_no_list_of_points_is_laid_at_its_senders_door(kind, sender, lane, wrong):
    outcome, _ = run_faulty(SETS, merger="north", rewrite=changed(kind, wrong, sender=sender, lane=lane))
    errors = failures(outcome)
    assert {type(error) for error in errors.values()} == {MalformedMessage}
    assert all(error.message.startswith(f"{sender} sent") for error in errors.values())
    assert sender in {error.party for error in errors.values()}


def made_up(message):
    """Points like those that fill the merged list, of which there are then too many."""
    points = from_uniform_bytes(np.frombuffer(bytes(range(256)), np.uint8).reshape(4, 64))
    message.data = points.tobytes() + message.data[128:]


def test_more_points_that_decode_to_nothing_than_the_merger_put_in_are_refused():
    outcome, _ = run_faulty(TWO, merger="north", rewrite=changed(MergedPiece, made_up, sender="south"))
    assert type(outcome["north"]) is ProtocolViolation
    assert outcome["north"].party == "south"
    assert "south" in outcome["north"].message
    assert type(outcome["south"]) is ProtocolViolation


def test_among_several_peers_the_error_names_all_who_may_have_tampered():
    outcome, _ = run_faulty(SETS, merger="north", rewrite=changed(MergedPiece, made_up, sender="south"))
    assert type(outcome["north"]) is ProtocolViolation
    assert "south or east sent" in outcome["north"].message


def test_more_elements_than_all_sets_may_hold_are_laid_at_the_peers_door(monkeypatch):
    """South ignores the bound and hides elements in the places of fakes."""

    async def smaller(*_, **__):
        return 2

    monkeypatch.setattr(protocol, "agree_on_length", smaller)
    monkeypatch.setattr(protocol, "filled", lambda own, size, random: own)
    with fails("E400") as caught:
        run_union(pseudonyms_of("abc", "defghijk"), merger="north", epsilon_dup=1.0)
    assert caught.value.party == "south"


@pytest.mark.parametrize("kind", [EncryptedList, FullyEncryptedList])
def test_a_party_whose_elements_were_dropped_notices(kind):
    sets = pseudonyms_of("abc", "bcd", "cdefgh")
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
    sets = pseudonyms_of(("secret-1", "secret-2"), ("secret-2", "secret-3"))
    for kind in (EncryptedList, FullyEncryptedList, MergedPiece):
        outcome, _ = run_faulty(sets, merger="north", rewrite=changed(kind, first_everywhere))
        assert all("secret" not in str(end) for end in outcome.values() if isinstance(end, BaseException))


@pytest.mark.costly
@pytest.mark.parametrize("lost", list(SETS))
def test_a_party_that_is_lost_at_any_frame_ends_the_union_for_all(lost):
    ends, hub = run_faulty(SETS, merger="north")
    assert all(isinstance(end, list) for end in ends.values())
    for frame in spread(hub.sent[lost], 6, hub.sent[lost]):
        outcome, _ = run_faulty(SETS, merger="north", crash=(lost, frame))
        for name, end in outcome.items():
            if name != lost and not isinstance(end, list):  # who needs nothing more of the lost party may have finished
                assert type(end) is PeerError
                assert end.party == lost
