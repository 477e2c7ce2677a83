"""A party's mask as a vector of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from crypto.primitives.shares.masks import Words, add_masks


def mask_vector(
    secrets: Mapping[str, bytes], me: str, context: bytes, size: int, word: type[np.unsignedinteger[Any]] = np.uint64
) -> Words:
    """A party's mask alone: what `add_masks` adds."""
    mask: Words = np.zeros(size, word)
    add_masks(mask, secrets, me, context)
    return mask
