"""Signatures that a party made while its certificate was not good: after it had expired or was revoked.

A node that runs past its certificate goes on writing, since nothing may be lost, and starts again with a new one. What
it wrote meanwhile is its own word still, so it is kept apart from what was changed; but nobody else need believe it.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from cryptography import x509

from link.pki.certificates import read_certificate
from link.pki.identity import verify
from link.pki.trust import Trust


def timeless(trust: Trust, certificate_pem: bytes) -> tuple[Trust, dt.datetime]:
    """Whom to trust and at which moment, so that a signature is judged whenever it was made.

    Args:
        trust: Whom the reader trusts; its authority and pins still count.
        certificate_pem: The certificate that the signature came with.
    """
    try:
        at = read_certificate(certificate_pem).not_valid_before_utc
    except ValueError:
        at = dt.datetime.now(dt.UTC)  # of no account: who verifies finds that it is no certificate
    return replace(trust, revocations=None), at


def check_author(trust: Trust, certificate_pem: bytes, party: str, signed: bytes, signature: bytes) -> x509.Certificate:
    """Checks that a party has signed, whenever that was; `lapse` says whether the certificate was good then.

    Args:
        trust: Whom the reader trusts.
        certificate_pem: The certificate that came with the signature.
        party: Whose signature it must be.
        signed: What was signed.
        signature: As made by `Identity.sign`.

    Returns:
        The certificate.

    Raises:
        IdentityError: The certificate is foreign, not the pinned one or names someone else, or the signature is wrong.
    """
    believed, at = timeless(trust, certificate_pem)
    verify(believed, certificate_pem, party, signed, signature, at=at)
    return read_certificate(certificate_pem)


def lapse(trust: Trust, certificate: x509.Certificate, party: str, at: dt.datetime) -> str:
    """How a certificate was not good at a moment: the end of a sentence on what was signed then; empty where it was.

    Args:
        trust: Whom the reader trusts.
        certificate: The signer's, as `check_author` has returned it.
        party: The signer.
        at: The moment, in UTC.

    Raises:
        IdentityError: The list of revoked certificates cannot be believed any more.
    """
    serial = certificate.serial_number
    revoked = trust.revocations.revoked_on(serial) if trust.revocations is not None else None
    if revoked is not None and at >= revoked:
        return (
            f"after the certificate of {party} was revoked on {revoked:%Y-%m-%d %H:%M} UTC, by its node or by somebody "
            "else has the key; the chain holds, but what was written then is not to be trusted"
        )
    worth = "the signature and the chain hold, but what was written then proves nothing to others"
    if at > certificate.not_valid_after_utc:
        until = f"{certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
        return f"after the certificate of {party} had expired on {until}, by a node that ran past it; {worth}"
    if at < certificate.not_valid_before_utc:
        begin = f"{certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"
        return f"before the certificate of {party} begins, on {begin}, by a node whose clock was wrong; {worth}"
    return ""
