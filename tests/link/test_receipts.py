"""Receipts that do not hold are found."""

from __future__ import annotations

import asyncio

import pytest

from link.authority import Authority
from link.errors import IdentityError, ProtocolViolation
from link.receipts import Receipts, check_receipt
from link.trust import Trust
from protos.v1.link_pb2 import ChainHead, Receipt, SignedReceipt
from tests.link.kits import AB, run, sessions
from tests.link.messages import Note

AUTHORITY = Authority.create()
MINE = Receipt(
    session=b"s" * 32,
    sender="a",
    peer="b",
    sent=[ChainHead(lane="/x", frames=2, head=b"1" * 32)],
    received=[ChainHead(lane="/x", frames=1, head=b"2" * 32)],
)


def _theirs(**change) -> Receipt:
    fields = {
        "session": MINE.session,
        "sender": "b",
        "peer": "a",
        "sent": MINE.received,
        "received": MINE.sent,
    } | change
    return Receipt(**fields)


def _signed(receipt: Receipt, identity=None) -> SignedReceipt:
    identity = identity or AUTHORITY.issue("b")
    content = receipt.SerializeToString()
    return SignedReceipt(
        receipt=content,
        signature=identity.sign(b"comine receipt 1\0" + content),
        certificate=identity.certificate_pem,
    )


def _check(signed: SignedReceipt) -> None:
    check_receipt(signed, "b", MINE, Trust(AUTHORITY.certificate_pem))


def test_a_true_receipt_holds():
    _check(_signed(_theirs()))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"sent": []}, "sent to this party differs .* lane '/x'"),
        ({"received": []}, "received from this party differs .* lane '/x'"),
        ({"sent": [ChainHead(lane="/x", frames=1, head=b"3" * 32)]}, "sent to"),
        ({"received": [*MINE.sent, ChainHead(lane="/y", frames=1, head=b"3" * 32)]}, "lane '/y'"),
        ({"session": b"t" * 32}, "another session"),
        ({"sender": "c"}, "another session or party"),
        ({"peer": "c"}, "another session or party"),
    ],
)
def test_another_account_is_found(change, sentence):
    with pytest.raises(ProtocolViolation, match=sentence) as found:
        _check(_signed(_theirs(**change)))
    assert found.value.party == "b"


def test_what_cannot_be_read_is_refused():
    identity = AUTHORITY.issue("b")
    signature = identity.sign(b"comine receipt 1\0\xff")
    with pytest.raises(ProtocolViolation, match="cannot be read"):
        _check(SignedReceipt(receipt=b"\xff", signature=signature, certificate=identity.certificate_pem))


@pytest.mark.parametrize(
    "signer",
    [
        AUTHORITY.issue("c"),
        AUTHORITY.issue("b", "coordinator"),
        AUTHORITY.issue("b", valid_days=-1),
        Authority.create().issue("b"),
    ],
    ids=["another party", "coordinator", "outdated", "foreign"],
)
def test_only_the_peer_can_sign(signer):
    with pytest.raises(IdentityError):
        _check(_signed(_theirs(), signer))


def test_changed_content_and_changed_signature():
    signed = _signed(_theirs())
    with pytest.raises(IdentityError, match="signature"):
        _check(
            SignedReceipt(
                receipt=signed.receipt + b"\x12\x01b", signature=signed.signature, certificate=signed.certificate
            )
        )
    with pytest.raises(IdentityError, match="signature"):
        _check(SignedReceipt(receipt=signed.receipt, signature=b"x", certificate=signed.certificate))
    with pytest.raises(IdentityError, match="PEM"):
        _check(SignedReceipt(receipt=signed.receipt, signature=signed.signature, certificate=b"x"))


def test_a_frame_that_only_one_end_has_recorded_is_found():
    async def main():
        async with sessions("memory", AB) as world:
            await world["a"].send("b", Note(number=1))
            await world["b"].recv("a", Note)
            frame = next(iter(world["b"].transcript._chains["a", "received"].values()))
            frame.head = bytes(32)
            outcomes = await asyncio.gather(
                *(Receipts(world[p], AUTHORITY.issue(p)).exchange() for p in AB), return_exceptions=True
            )
            assert [o.party for o in outcomes if isinstance(o, ProtocolViolation)] == ["b", "a"]

    run(main())
