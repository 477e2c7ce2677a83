"""Receipts that do not hold are found."""

from __future__ import annotations

import asyncio
import hashlib
from fnmatch import fnmatch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from link.errors import IdentityError, ProtocolViolation, outward
from link.pki.authority import Authority
from link.pki.trust import Trust
from link.transcripts import transcript
from link.transcripts.receipts import LANE, Receipts, check_receipt, differences
from link.transcripts.transcript import folded
from link.transports.conformance.kit import AB
from link.transports.conformance.messages import Note
from protos.v1.link_pb2 import ChainHead, Receipt, SignedReceipt
from tests.errors import fails
from tests.link.kits import run, sessions

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
    "change",
    [
        {"sent": []},
        {"received": []},
        {"sent": [ChainHead(lane="/x", frames=1, head=b"3" * 32)]},
        {"received": [*MINE.sent, ChainHead(lane="/y", frames=1, head=b"3" * 32)]},
        {"session": b"t" * 32},
        {"sender": "c"},
        {"peer": "c"},
    ],
)
def test_another_account_is_found(change):
    with fails("E400", party="b") as found:
        _check(_signed(_theirs(**change)))
    assert found.value.party == "b"
    assert outward(found.value, "a").message == found.value.message  # the name of a lane looks like no path


def test_what_cannot_be_read_is_refused():
    identity = AUTHORITY.issue("b")
    signature = identity.sign(b"comine receipt 1\0\xff")
    with fails("E400", party="b"):
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
    with fails("E201", party="b"):
        _check(
            SignedReceipt(
                receipt=signed.receipt + b"\x12\x01b", signature=signed.signature, certificate=signed.certificate
            )
        )
    with fails("E201", party="b"):
        _check(SignedReceipt(receipt=signed.receipt, signature=b"x", certificate=signed.certificate))
    with fails("E201", party="b"):
        _check(SignedReceipt(receipt=signed.receipt, signature=signed.signature, certificate=b"x"))


def _heads(frames: dict[str, int]) -> list[ChainHead]:
    """Chains of so many frames; equal numbers of frames in a lane are equal frames."""
    return [
        ChainHead(lane=lane, frames=n, head=hashlib.sha256(f"{lane}|{n}".encode()).digest())
        for lane, n in frames.items()
    ]


def _long(batches: int) -> dict[str, int]:
    """The lanes of a session with a long search and some other steps."""
    lanes = {"": 3, "/search": 1, "hello": 1} | {f"/step-{i}/sum": 2 for i in range(20)}
    lanes |= {f"/search/batch-{i}/{part}": 1 for i in range(batches) for part in ("sum", "compare/bits")}
    return dict(sorted(lanes.items()))


@pytest.fixture
def short(monkeypatch):
    """Receipts hold less, so that some hundred lanes are many."""
    monkeypatch.setattr(transcript, "MAX_HEADS_BYTES", 1 << 14)


def test_few_lanes_stay_by_themselves():
    assert folded([]) == []
    heads = _heads(_long(500))
    assert folded(heads) == heads


def test_many_lanes_are_taken_together_as_deep_as_can_be(short):
    lanes = _long(300)
    heads = folded(_heads(lanes))
    assert [h.lane for h in heads if h.lane.endswith("*")][:3] == ["/search/*", "/step-0/*", "/step-1/*"]
    assert {h.lane: h.frames for h in heads if "*" not in h.lane} == {"": 3, "/search": 1, "hello": 1}
    assert sum(h.frames for h in heads) == sum(lanes.values())

    wide = folded(_heads({f"/{i}": 1 for i in range(1_000)} | {"hello": 1}))
    assert [(h.lane, h.frames) for h in wide] == [("/*", 1_000), ("hello", 1)]
    deep = folded(_heads({f"/{i // 10}" + "/x" * 300 + f"/{i}": 1 for i in range(500)}))
    assert [h.lane for h in deep][:2] == ["/0" + "/x" * 14 + "/*", "/1" + "/x" * 14 + "/*"]
    assert len(deep) == 50


@pytest.mark.parametrize("lane", ["/search/batch-0/sum", "/search/batch-299/compare/bits", "/step-7/sum", ""])
@pytest.mark.parametrize("change", ["frames", "head"])
def test_what_differs_among_many_lanes_is_found(lane, change, short):
    truth, lie = _heads(_long(300)), _heads(_long(300))
    (wrong,) = (head for head in lie if head.lane == lane)
    if change == "frames":
        wrong.frames += 1
    else:
        wrong.head = bytes(32)
    mine, theirs = Receipt(sent=folded(truth)), Receipt(received=folded(lie))
    (found,) = differences(mine, theirs)
    assert found[0] == "sent"
    assert fnmatch(lane, found[1])
    assert len(list(differences(mine, theirs, ended=False))) == (change == "head")


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.text("ab/", max_size=6), st.tuples(st.integers(1, 3), st.integers(0, 3)), max_size=30),
    st.integers(0, 600),
)
def test_frames_under_way_are_no_difference(lanes, most):
    """Whatever part of what A sent has reached B, and however far each has to take its lanes together."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transcript, "MAX_HEADS_BYTES", most)
        sent = folded(_heads({lane: n for lane, (n, _) in sorted(lanes.items())}))
        received = folded(_heads({lane: min(n, came) for lane, (n, came) in sorted(lanes.items()) if came}))
        assert list(differences(Receipt(sent=sent), Receipt(received=received), ended=False)) == []
        again = folded(_heads({lane: n for lane, (n, _) in sorted(lanes.items())}))
        assert list(differences(Receipt(sent=sent), Receipt(received=again))) == []


def test_a_frame_that_only_one_end_has_recorded_is_found():
    async def main():
        async with sessions("memory", AB) as world:
            await world["a"].send("b", Note(number=1))
            await world["b"].recv("a", Note)
            frame = next(iter(world["b"].transcript.chains["a", "received"].values()))
            frame.head = bytes(32)
            outcomes = await asyncio.gather(
                *(Receipts(world[p], AUTHORITY.issue(p)).exchange() for p in AB), return_exceptions=True
            )
            assert [o.party for o in outcomes if isinstance(o, ProtocolViolation)] == ["b", "a"]

    run(main())


@pytest.mark.parametrize("pad", ["certificate", "unknown field"])
def test_a_receipt_with_ballast_is_refused_and_not_kept(pad):
    """The audit log would keep it for ever."""
    ballast = bytes(100_000)

    async def main():
        async with sessions("memory", AB) as world:
            honest, other = (Receipts(world[name], AUTHORITY.issue(name)) for name in AB)
            signed = other.accounts()["a"].mine
            if pad == "certificate":
                signed.certificate = b"\n" * len(ballast) + signed.certificate
            else:
                signed.MergeFromString(b"\xc2\x3e\xa0\x8d\x06" + ballast)  # field 1000
            await world["b"].lane(LANE).send("a", signed)
            with fails("E403", party="b") as found:
                await honest.exchange()
            assert found.value.party == "b"
            assert honest.accounts()["b"].theirs is None

    run(main())
