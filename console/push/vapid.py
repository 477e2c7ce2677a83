"""Who sends a notification, as push services learn it: Voluntary Application Server Identification (RFC 8292)."""

from __future__ import annotations

import json
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from console.push.base64url import written
from crypto.primitives.push_encryption import point_of

VALID_S: Final = 43_200.0  # services refuse more than a day


def new_key() -> str:
    """A key pair on P-256, as PEM; from the operating system's generator inside the library `cryptography`."""
    key = generate_private_key(SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode("ascii")


def key_of(pem: str) -> EllipticCurvePrivateKey:
    """The key pair.

    Raises:
        ValueError: The text is none on P-256.
    """
    try:
        key = load_pem_private_key(pem.encode(), None)
    except (TypeError, UnsupportedAlgorithm):  # with a password, or of another kind
        raise ValueError("no key on P-256") from None
    if not isinstance(key, EllipticCurvePrivateKey) or not isinstance(key.curve, SECP256R1):
        raise ValueError("no key on P-256")
    return key


def public_of(key: EllipticCurvePrivateKey) -> str:
    """The public key as browsers take it, to bind a subscription to who may use it."""
    return written(point_of(key))


def authorization(key: EllipticCurvePrivateKey, origin: str, contact: str, now: float) -> str:
    """The header `Authorization` for a push service.

    Args:
        key: The console's.
        origin: The service's; it serves no other.
        contact: Whom the service can reach, a `mailto:` or `https:` address.
        now: Unix seconds.
    """
    claims = {"aud": origin, "exp": int(now + VALID_S), "sub": contact}
    signed = ".".join(written(json.dumps(part).encode()) for part in ({"typ": "JWT", "alg": "ES256"}, claims))
    r, s = decode_dss_signature(key.sign(signed.encode(), ECDSA(SHA256())))
    signature = written(r.to_bytes(32, "big") + s.to_bytes(32, "big"))
    return f"vapid t={signed}.{signature}, k={public_of(key)}"
