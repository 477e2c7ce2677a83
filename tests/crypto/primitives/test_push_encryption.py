"""Messages to browsers: the published examples, one length for all, and what is no key."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, derive_private_key

from crypto.primitives.push_encryption import POINT_BYTES, encrypt, encrypt_with, point_of, read_point, record
from tests.console.push.receiver import Receiver


def bytes_of(vector: dict[str, str]) -> dict[str, bytes]:
    return {name: base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)) for name, text in vector.items()}


def test_the_published_message_comes_out(vectors) -> None:
    given = bytes_of(vectors("push_encryption_rfc8291")["push"])
    sender = derive_private_key(int.from_bytes(given["sender_private"], "big"), SECP256R1())
    assert point_of(sender) == given["sender_public"]
    body = encrypt_with(given["plaintext"], given["receiver_public"], given["secret"], sender, given["salt"])
    assert body == given["body"]
    receiver = Receiver.of(given["receiver_private"], given["secret"])
    assert receiver.point == given["receiver_public"]
    assert receiver.opened(body) == given["plaintext"]


def test_the_published_record_comes_out(vectors) -> None:
    given = bytes_of(vectors("push_encryption_rfc8291")["record"])
    assert record(given["plaintext"], given["key"], given["salt"], b"") == given["body"]


def test_all_messages_have_one_length_and_none_is_like_another() -> None:
    receiver = Receiver.new()
    bodies = [encrypt(message, receiver.point, receiver.secret, 256) for message in (b"", b"a" * 256, b"milk", b"milk")]
    assert {len(body) for body in bodies} == {256 + 103}
    assert [receiver.opened(body) for body in bodies] == [b"", b"a" * 256, b"milk", b"milk"]
    assert len({body[:16] for body in bodies}) == len({body[21:86] for body in bodies}) == len(bodies)
    with pytest.raises(ValueError, match="at most 256 bytes"):
        encrypt(b"a" * 257, receiver.point, receiver.secret, 256)


@pytest.mark.parametrize("point", [b"", b"\4" + bytes(64), b"\2" + bytes(32), b"\4" + b"\xff" * 64, bytes(POINT_BYTES)])
def test_what_is_no_point_is_refused(point: bytes) -> None:
    with pytest.raises(ValueError, match=r"point|curve|Invalid"):
        read_point(point)
