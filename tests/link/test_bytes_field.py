"""A field of bytes that is written and read without copies is the one of the library, and what is none is refused."""

from __future__ import annotations

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from link.encoding.bytes_field import data_of, message_of
from protos.v1.oblivious_transfer_pb2 import EncryptedMessages, ExtensionRows
from tests.examples import examples

SIZES = (0, 1, 127, 128, 16_383, 16_384, 1 << 20)


@pytest.mark.parametrize("kind", [ExtensionRows, EncryptedMessages])
@pytest.mark.parametrize("size", SIZES)
def test_messages_are_those_of_the_library(kind: type[ExtensionRows] | type[EncryptedMessages], size: int) -> None:
    data = bytes(range(256)) * (size // 256 + 1)
    message = message_of(kind, memoryview(data)[:size])
    assert message == kind(data=data[:size]).SerializeToString()
    assert bytes(data_of(kind, message)) == data[:size]


def test_other_encodings_are_read_too() -> None:
    longer = b"\x0a\x83\x80\x00abc"  # a varint of more bytes than it needs
    assert bytes(data_of(ExtensionRows, longer)) == ExtensionRows.FromString(longer).data == b"abc"
    twice = ExtensionRows(data=b"abc").SerializeToString() + ExtensionRows(data=b"de").SerializeToString()
    assert data_of(ExtensionRows, twice) == b"de"  # the last one counts
    with_length = EncryptedMessages(length=7, data=b"abc").SerializeToString()
    assert data_of(EncryptedMessages, with_length) == b"abc"


@given(st.binary(max_size=12))
@examples(20, 400)
def test_what_the_library_refuses_is_refused_and_all_else_is_read_alike(end: bytes) -> None:
    for message in (end, b"\x0a" + end, b"\x0a\xff\xff\xff\xff" + end):
        try:
            expected = ExtensionRows.FromString(message).data
        except DecodeError:
            with pytest.raises(DecodeError):
                data_of(ExtensionRows, message)
        else:
            assert bytes(data_of(ExtensionRows, message)) == expected
