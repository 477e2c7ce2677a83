"""Named, reviewed parameter sets.

The suite's name goes into handshakes and, as salt, into every derived key. Two nodes whose names differ do not work
together, so whatever changes a byte on the wire (a size, a hash, a number of rounds) needs a new name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Parameters:
    """Sizes and limits that every party of a session must share.

    Attributes:
        suite: Name of the set: protocol version, group, keystream, hash.
        version: Version of the encodings; the number in `suite`.
        security_bits: Claimed computational security.
        group_order: Prime order ℓ of ristretto255 (RFC 9496, section 4).
        point_bytes: Encoded group element.
        scalar_bytes: Encoded scalar, little-endian and below ℓ.
        max_element_bytes: Longest element of a union by prefixes.
        max_elements: Most elements in one call of a protocol.
    """

    suite: str
    version: int
    security_bits: int
    group_order: int
    point_bytes: int
    scalar_bytes: int
    max_element_bytes: int
    max_elements: int


STANDARD_128: Final = Parameters(
    suite="comine-1:ristretto255:aes128ctr:sha256",
    version=1,
    security_bits=128,
    group_order=2**252 + 27742317777372353535851937790883648493,
    point_bytes=32,
    scalar_bytes=32,
    max_element_bytes=65_535,
    max_elements=1 << 24,
)
