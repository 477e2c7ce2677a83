"""Whether what a party sees tells it anything of what it must not learn: statistical tests on many samples of a view.

Either test refuses views that are independent of the secret with probability `ERROR` at most.
"""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tests.crypto.protocols.two_party_world import ERROR

Bits = NDArray[np.uint8]
SLACK: Final = 20  # 2^-20 is below ERROR


def bits_of(words: NDArray[np.uint64], width: int = 64) -> Bits:
    """The lowest bits of words, shape (n, width)."""
    return (words[:, None] >> np.arange(width, dtype=np.uint64) & np.uint64(1)).astype(np.uint8)


def tells(views: Bits, secret: Bits) -> bool:
    """Whether some XOR of bits of the view, or its complement, is the secret bit in every sample.

    Of independent ones this is so with probability 2^-(samples − rank), as one of the two is uniform.

    Args:
        views: Shape (samples, bits).
        secret: Shape (samples,).
    """
    ones = np.ones((1, len(views)), np.uint8)
    basis: dict[int, int] = {}
    for column in np.packbits(np.concatenate([ones, views.T]), axis=1):
        rest = _reduced(int.from_bytes(column.tobytes(), "big"), basis)
        if rest:
            basis[rest.bit_length()] = rest
    assert len(views) >= len(basis) + SLACK, "too few samples for so large a view"
    return _reduced(int.from_bytes(np.packbits(secret).tobytes(), "big"), basis) == 0


def _reduced(number: int, basis: dict[int, int]) -> int:
    while number and (pivot := basis.get(number.bit_length())) is not None:
        number ^= pivot
    return number


def are_alike(one: Bits, other: Bits) -> bool:
    """Whether each bit of a view is as often 1 in two worlds; of bits that are always the same, whether they are.

    Args:
        one: Shape (samples, bits).
        other: Likewise, of as many bits.
    """
    first, second = one.mean(axis=0), other.mean(axis=0)
    pooled = (one.sum(axis=0) + other.sum(axis=0)) / (len(one) + len(other))
    spread = np.sqrt(np.maximum(pooled * (1 - pooled), 1e-12) * (1 / len(one) + 1 / len(other)))
    bound = NormalDist().inv_cdf(1 - ERROR / (2 * one.shape[1]))
    # A binomial has heavier tails than the normal one where samples are few.
    return bool((np.abs(first - second) <= bound * spread + 3 / sqrt(len(one) * len(other))).all())
