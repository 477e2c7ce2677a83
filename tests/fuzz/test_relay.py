"""The messages between a relay and who dials it, made wrong: both ends read them, or refuse them."""

from __future__ import annotations

import contextlib
import os

from hypothesis import given
from hypothesis import strategies as st

from link.errors import ComineError, IdentityError
from link.pki.authority import Authority
from link.pki.trust import Trust
from link.relay.handshake import check_hello, hello, read, read_incoming
from protos.v1.relay_pb2 import (
    RelayAccept,
    RelayAnswer,
    RelayChallenge,
    RelayDial,
    RelayHello,
    RelayIncoming,
    RelayListen,
    RelayReady,
)
from tests.examples import examples
from tests.fuzz.mutations import mutated

EXAMPLES = int(os.environ.get("COMINE_FUZZ_EXAMPLES", "0"))
FUZZED = examples(EXAMPLES or 30, EXAMPLES or 300)
AUTHORITY = Authority.create()
NORTH = AUTHORITY.issue("north")
TRUST = Trust(AUTHORITY.certificate_pem)
NONCE = bytes(16)
HELLOS = [
    hello(NORTH, "relay.example", NONCE, action).SerializeToString()
    for action in (RelayListen(), RelayDial(to="south"), RelayAccept(token=NONCE))
]
ANSWERS = [
    RelayAnswer(incoming=RelayIncoming(role="party", name="south", token=NONCE)).SerializeToString(),
    RelayAnswer(ready=RelayReady()).SerializeToString(),
]


@FUZZED
@given(data=st.data())
def test_a_hello_is_believed_or_refused(data: st.DataObject) -> None:
    """What is believed says what was signed, however it is written."""
    with contextlib.suppress(ComineError):
        sent = read(RelayHello, data.draw(mutated(HELLOS)))
        with contextlib.suppress(IdentityError):
            assert check_hello(sent, TRUST, "relay.example", NONCE) == "party"
            assert sent.name == "north"
            assert sent.WhichOneof("action") == "listen" or sent.dial.to == "south" or sent.accept.token == NONCE


@FUZZED
@given(data=st.data())
def test_an_answer_is_read_or_refused(data: st.DataObject) -> None:
    message = data.draw(mutated(ANSWERS))
    with contextlib.suppress(ComineError):
        read(RelayChallenge, message)
    with contextlib.suppress(ComineError):
        assert len(read_incoming(message).token) == len(NONCE)


def test_an_honest_hello_is_believed() -> None:
    for each in HELLOS:
        assert check_hello(read(RelayHello, each), TRUST, "relay.example", NONCE) == "party"
    assert read_incoming(ANSWERS[0]).name == "south"
