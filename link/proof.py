"""Proof of identity between parties: every greeting is signed, for the one peer that receives it.

TLS shows the caller's certificate to the server, but gRPC in Python does not show a server's to the
caller: TLS accepts any certificate of the authority that names the server, a revoked or unpinned one too. So each party
signs its greeting, and every party checks all greetings before it sends anything else. Who has stolen a key whose
certificate was revoked since can then neither dial nor answer in its former holder's place.

The signature covers the job, the attempt, all terms, the signer's window of wire versions and nonce, and the receiver's
name, and rides on the first round. So nobody between two parties can make them speak an older version than both know. A
signature over the session's id, which depends on everybody's nonces, would cost a round more and prove no more: a party
begins an attempt of a job once, so what it has signed for it is of no use in another; and being signed for one
receiver, who gets it by a stream of its own, a greeting cannot be passed on to a third party. All nonces being signed,
so is the session's id.
"""

from __future__ import annotations

from typing import Final

from link.core import Terms
from link.errors import IdentityError
from link.pki.identity import Identity, check_span, verify
from link.pki.trust import Trust
from protos.v1.link_pb2 import Proof

_PURPOSE: Final = b"comine.greeting/2\0"


def prove(identity: Identity, terms: Terms, nonce: bytes, receiver: str) -> Proof:
    """What a party adds to its greeting of one peer.

    Args:
        identity: The party.
        terms: What it believes to be agreed.
        nonce: Its nonce.
        receiver: The peer.
    """
    signature = identity.sign(_greeting(terms, nonce, receiver))
    return Proof(signature=signature, certificate=identity.certificate_pem)


def check(proof: Proof, trust: Trust, peer: str, terms: Terms, nonce: bytes, me: str, *, lasts_s: float = 0.0) -> None:
    """Checks what came with a peer's greeting.

    Args:
        proof: What came.
        trust: Whom this party believes.
        peer: Who must have signed.
        terms: What this party believes to be agreed, with the peer's window; it has compared them with the greeting's.
        nonce: The peer's nonce, as in the greeting.
        me: This party.
        lasts_s: Seconds for which the session may take, at whose end the certificate must still be valid.

    Raises:
        IdentityError: The signature is missing or wrong, or its certificate is not to be believed.
    """
    if not proof.signature:
        raise IdentityError(f"{peer} greeted without a proof of who it is; its node must be checked", party=peer)
    verify(trust, proof.certificate, peer, _greeting(terms, nonce, me), proof.signature)
    check_span(proof.certificate, peer, lasts_s)


def _greeting(terms: Terms, nonce: bytes, receiver: str) -> bytes:
    """What is signed: each field with its length before it, so that no two greetings are the same bytes."""
    names = (*map(str, terms.window), terms.suite, receiver, *terms.parties)
    attempt = terms.attempt.to_bytes(4, "big")
    fields = (terms.job_id, attempt, nonce, terms.spec_digest, *(name.encode() for name in names))
    return _PURPOSE + b"".join(len(field).to_bytes(4, "big") + field for field in fields)
