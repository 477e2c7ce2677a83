"""What a party says of itself, signed over the asker's challenge: proof that it holds a certificate's key now."""

from __future__ import annotations

from typing import Final

from google.protobuf.message import DecodeError

from link.errors import MalformedMessage, ProtocolViolation
from link.pki.identity import Identity, verify
from link.pki.trust import Trust
from protos.v1.control_pb2 import Description, SignedDescription

CHALLENGE_BYTES: Final = 32
_PURPOSE: Final = b"comine.description/1\0"


def sign(description: Description, challenge: bytes, identity: Identity) -> SignedDescription:
    """A description as the answer to one challenge."""
    body = description.SerializeToString(deterministic=True)
    return SignedDescription(
        description=body,
        signature=identity.sign(_PURPOSE + challenge + body),
        certificate=identity.certificate_pem,
    )


def read(signed: SignedDescription, challenge: bytes, trust: Trust, party: str) -> Description:
    """The description, once it is known to be this party's answer to this challenge.

    Whether its certificate is valid today is for the caller to see to: the answer shows whose clock is wrong.

    Raises:
        IdentityError: The signature is not the party's, or its certificate is not to be believed.
        MalformedMessage: The description cannot be read.
        ProtocolViolation: It is another party's.
    """
    verify(trust, signed.certificate, party, _PURPOSE + challenge + signed.description, signed.signature, timed=False)
    description = Description()
    try:
        description.ParseFromString(signed.description)
    except DecodeError:
        raise MalformedMessage(f"{party} signed a description that cannot be read", party=party) from None
    if description.name != party:
        raise ProtocolViolation(f"{party} calls itself {description.name[:64]}", party=party)
    return description
