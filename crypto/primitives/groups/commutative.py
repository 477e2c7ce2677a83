"""The commutative cipher x ↦ x^k over ristretto255 (Pohlig–Hellman / SRA, written additively as k·X).

Layers of several parties come on and off in any order: k₁·(k₂·X) = k₂·(k₁·X), and k⁻¹·(k·X) = X.

Security: if the X are independent uniform elements (results of `hash_to_group`, in the random oracle model), the k·X
are indistinguishable from uniform elements under the decisional Diffie–Hellman assumption.

What it does not give: it is deterministic, so equal plaintexts under one key have equal ciphertexts (protocols count on
it), and counts and equality patterns are visible. It is malleable, and it keeps linear relations: encrypted points with
a known relation, such as X and 2·X, stay recognisable, so plaintexts must not be chosen as group elements by anyone.
A key serves one call of one protocol: two calls under one key show which elements they share.
"""

from __future__ import annotations

from typing import Never

from crypto.primitives.groups.ristretto255 import (
    Points,
    check_scalar,
    multiply,
    random_scalar,
    scalar_invert,
)
from link.randomness import RandomStream


class CommutativeKey:
    """A secret exponent. It shows nothing of itself and is not pickled; threads may share it.

    Args:
        scalar: 32 bytes, non-zero and below the group order.
    """

    __slots__ = ("_inverse", "_scalar")

    def __init__(self, scalar: bytes) -> None:
        check_scalar(scalar)
        self._scalar = scalar
        self._inverse = scalar_invert(scalar)

    @classmethod
    def generate(cls, random: RandomStream) -> CommutativeKey:
        """A fresh uniform key."""
        return cls(random_scalar(random))

    def encrypt(self, points: Points) -> Points:
        """Add this key's layer.

        Args:
            points: Shape (n, 32); a slice of a batch serves, so chunks can run in threads.

        Returns:
            Shape (n, 32).

        Raises:
            ValueError: A row is not a canonical encoding of an element other than the identity.
        """
        return multiply(points, self._scalar)

    def decrypt(self, points: Points) -> Points:
        """Remove this key's layer, wherever it lies; shapes and errors as for `encrypt`."""
        return multiply(points, self._inverse)

    def __reduce_ex__(self, protocol: object) -> Never:
        raise TypeError("a key is never copied or pickled")

    def __repr__(self) -> str:
        return "<CommutativeKey>"
