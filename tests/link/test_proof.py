"""Greetings prove who greets: to the dialled end and to the dialling one."""

from __future__ import annotations

import asyncio
import dataclasses
import re

import pytest
from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from link.errors import ComineError, IdentityError, PeerError
from link.executor import ThreadExecutor
from link.pki.authority import Authority
from link.pki.revocation import RevocationList
from link.pki.trust import Trust, fingerprint
from link.proof import check, prove
from link.session import Session
from link.transports.conformance.kit import AB, ABC
from link.transports.memory import Hub
from protos.v1.link_pb2 import Abort, Hello, Proof
from tests.errors import fails
from tests.link.kits import run
from tests.world import nodes, terms

AUTHORITY = Authority.create()
NAMES = {name: AUTHORITY.issue(name) for name in ABC}
TERMS = terms(AB)
NONCE = bytes(range(16))


def _with(identity, trust):
    return dataclasses.replace(identity, trust=trust)


@pytest.fixture
def revoked(tmp_path):
    """Trust in the authority but not in the certificate of an identity."""

    def made(identity):
        AUTHORITY.revoke(tmp_path, [x509.load_pem_x509_certificate(identity.certificate_pem).serial_number])
        path = tmp_path / "ca.crl"
        return Trust(AUTHORITY.certificate_pem, RevocationList(path, AUTHORITY.certificate_pem, required=True))

    return made


def _pinned(other):
    """Trust in another certificate of the same name."""
    pin = fingerprint(x509.load_pem_x509_certificate(AUTHORITY.issue(other).certificate_pem))
    return Trust(AUTHORITY.certificate_pem, pins={f"party/{other}": frozenset({pin})})


async def _greet(identity, transport, agreed=TERMS, name=None):
    return await Session.establish(
        agreed,
        name or identity.name,
        transport,
        random=Randomness.from_os(),
        executor=ThreadExecutor(1),
        identity=identity,
        deadline_s=10,
    )


def test_a_proof_is_for_one_greeting_and_one_receiver():
    proof = prove(NAMES["a"], TERMS, NONCE, "b")
    trust = NAMES["b"].trust
    check(proof, trust, "a", TERMS, NONCE, "b")
    for change in (
        {"job_id": bytes(32)},
        {"attempt": 2},
        {"spec_digest": bytes(32)},
        {"parties": ("b", "a")},
        {"suite": "other"},
    ):
        with fails("E201", party="a"):
            check(proof, trust, "a", dataclasses.replace(TERMS, **change), NONCE, "b")
    for nonce, me in ((bytes(16), "b"), (NONCE, "c")):
        with fails("E201", party="a"):
            check(proof, trust, "a", TERMS, nonce, me)
    with fails("E201", party="c"):
        check(proof, trust, "c", TERMS, NONCE, "b")
    with fails("E201", party="a"):
        check(Proof(), trust, "a", TERMS, NONCE, "b")


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_no_byte_of_a_proof_can_be_changed(data):
    proof = prove(NAMES["a"], TERMS, NONCE, "b")
    field = data.draw(st.sampled_from(["signature", "certificate"]))
    content = bytearray(getattr(proof, field))
    content[int(data.draw(st.floats(0, 1, exclude_max=True)) * len(content))] ^= 1 << data.draw(st.integers(0, 7))
    setattr(proof, field, bytes(content))
    try:
        check(proof, NAMES["b"].trust, "a", TERMS, NONCE, "b")
    except IdentityError:
        return
    before = x509.load_pem_x509_certificate(NAMES["a"].certificate_pem)
    assert x509.load_pem_x509_certificate(proof.certificate) == before  # only the wrapping of the PEM was touched


@pytest.mark.parametrize("kind", ["memory", "grpc"])
def test_all_who_prove_themselves_meet(kind):
    async def main():
        agreed = terms(ABC)
        if kind == "memory":
            hub = Hub()
            made = await asyncio.gather(*(_greet(NAMES[p], hub.endpoint(p), agreed) for p in ABC))
        else:
            async with nodes(NAMES) as links:
                opened = {p: links[p].open(agreed.job_id, ABC) for p in ABC}
                made = await asyncio.gather(*(_greet(NAMES[p], opened[p], agreed) for p in ABC))
        assert len({session.id for session in made}) == 1

    run(main())


def _stranger(party):
    return {
        "foreign": Authority.create().issue(party),
        "another": _with(AUTHORITY.issue("z"), NAMES[party].trust),
        "coordinator": AUTHORITY.issue(party, "coordinator"),
        "outdated": AUTHORITY.issue(party, valid_days=-1),
    }


@pytest.mark.parametrize("party", AB)
@pytest.mark.parametrize("who", ["foreign", "another", "coordinator", "outdated"])
def test_who_is_somebody_else_is_refused(party, who):
    async def main():
        hub, (other,) = Hub(), set(AB) - {party}
        outcomes = await asyncio.gather(
            _greet(_stranger(party)[who], hub.endpoint(party), name=party),
            _greet(NAMES[other], hub.endpoint(other)),
            return_exceptions=True,
        )
        assert isinstance(outcomes[1], IdentityError)
        assert outcomes[1].party == party

    run(main())


def test_who_proves_nothing_is_refused():
    async def main():
        hub, silent = Hub(), {"random": Randomness.from_os(), "executor": ThreadExecutor(1), "deadline_s": 10}
        outcomes = await asyncio.gather(
            Session.establish(TERMS, "a", hub.endpoint("a"), **silent),
            _greet(NAMES["b"], hub.endpoint("b")),
            return_exceptions=True,
        )
        assert isinstance(outcomes[1], IdentityError)
        assert "without a proof" in outcomes[1].message

    run(main())


@pytest.mark.parametrize("bad", AB)  # a dials b: so the dialling and the dialled end
@pytest.mark.parametrize("why", ["revoked", "pinned"])
def test_over_real_streams_a_certificate_that_is_not_believed_stands_at_neither_end(bad, why, revoked):
    """TLS alone would let both in."""

    async def main():
        (other,) = set(AB) - {bad}
        trust, words = (revoked(NAMES[bad]), "revoked on") if why == "revoked" else (_pinned(bad), "pins")
        identities = {bad: NAMES[bad], other: _with(NAMES[other], trust)}
        patience_s = 0.5 if bad == "a" else 10  # b waits it out for the true a
        async with nodes(identities, patience_s=patience_s) as links:
            opened = {p: links[p].open(TERMS.job_id, AB) for p in AB}
            greetings = (_greet(identities[p], opened[p]) for p in AB)
            a, b = await asyncio.gather(*greetings, return_exceptions=True)
            assert isinstance(a, IdentityError)
            assert words in a.message
            if bad == "b":  # a dialled it, and refused its greeting
                assert a.party == "b"
            else:  # b refused its stream, and waits for the true a
                assert "b refused a" in a.message
                assert isinstance(b, PeerError)
                assert re.search(f"a was not there within 0.5 s .*{words}", b.message)

    run(main())


def test_a_revoked_party_sees_greetings_and_nothing_else(revoked):
    """What reaches the impostor before it is found out: terms that it knew, and the reason for the end."""

    async def main():
        frames = []
        hub = Hub(frames.append)
        outcomes = await asyncio.gather(
            _greet(_with(NAMES["a"], revoked(NAMES["b"])), hub.endpoint("a")),
            _greet(NAMES["b"], hub.endpoint("b")),
            return_exceptions=True,
        )
        assert all(isinstance(outcome, (ComineError, Session)) for outcome in outcomes)
        seen = {frame.type for frame in frames if frame.receiver == "b"}
        assert seen == {Hello.DESCRIPTOR.full_name, Abort.DESCRIPTOR.full_name}

    run(main())
