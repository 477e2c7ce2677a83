"""Elements of 16 bytes as 30-byte blocks that are ready for the embedding.

    block = tag ‖ 0 ‖ mark ‖ element                 (12 + 1 + 1 + 16 bytes)

The mark is the number of the element's bytes, with its top bit set in a fake, whose 16 bytes are random. The tag is
SHA-256 of domain, mark and element, truncated to 12 bytes: what decrypts to no block has the tag of its content with
probability 2^-96.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.params import STANDARD_128
from crypto.primitives.groups.embedding import BLOCK_BYTES, Blocks
from crypto.primitives.hashing import encode_fields
from link.randomness import RandomStream

ELEMENT_BYTES: Final = STANDARD_128.element_bytes
_TAG: Final = STANDARD_128.tag_bytes
_MARK: Final = _TAG + 1  # its place
_REAL: Final = ELEMENT_BYTES
_FAKE: Final = 0x80 | ELEMENT_BYTES
_DOMAIN: Final = encode_fields(STANDARD_128.suite.encode(), b"element tag")


def encode(elements: Sequence[bytes]) -> Blocks:
    """Encode real elements.

    Args:
        elements: n byte strings of 16 bytes each.

    Returns:
        Shape (n, 30).

    Raises:
        ValueError: An element, named by its index, has another length.
    """
    wrong = next((index for index, element in enumerate(elements) if len(element) != ELEMENT_BYTES), None)
    if wrong is not None:
        raise ValueError(f"element {wrong} must have {ELEMENT_BYTES} bytes")
    return _assemble(_REAL, b"".join(elements))


def fake(random: RandomStream, count: int) -> Blocks:
    """Fakes, which nobody can distinguish from real elements before they are decrypted.

    Two parties with equal streams get equal fakes: their common ones.

    Args:
        random: The stream to draw 16 bytes a fake from.
        count: How many.

    Returns:
        Shape (count, 30).
    """
    return _assemble(_FAKE, random.bytes(ELEMENT_BYTES * count))


def are_encodings(blocks: Blocks) -> NDArray[np.bool_]:
    """Whether each block, of shape (n, 30), is the encoding of an element or a fake.

    Raises:
        ValueError: Wrong shape or type.
    """
    if blocks.dtype != np.uint8 or blocks.ndim != 2 or blocks.shape[1] != BLOCK_BYTES:
        raise ValueError(f"blocks must be a uint8 array of shape (n, {BLOCK_BYTES}), not {blocks.shape}")
    found: NDArray[np.bool_] = (_tags(blocks) == blocks[:, :_TAG]).all(axis=1)
    found &= (blocks[:, _TAG] == 0) & np.isin(blocks[:, _MARK], (_REAL, _FAKE))
    return found


def decode(blocks: Blocks) -> list[bytes | None]:
    """Give back the elements, None for each fake, after checking every part of their encoding.

    Args:
        blocks: Shape (n, 30).

    Returns:
        n elements. Each has exactly one encoding, so different blocks give different elements or fakes.

    Raises:
        ValueError: A block, named by its index, is no encoding. Nothing of its content is shown.
    """
    whole = are_encodings(blocks)
    if not whole.all():
        raise ValueError(f"block {int(whole.argmin())} is malformed")
    contents = blocks[:, _MARK + 1 :].tobytes()
    places = range(0, len(contents), ELEMENT_BYTES)
    return [
        contents[start : start + ELEMENT_BYTES] if real else None
        for start, real in zip(places, (blocks[:, _MARK] == _REAL).tolist(), strict=True)
    ]


def _assemble(mark: int, contents: bytes) -> Blocks:
    """Blocks of the elements, which stand one after the other, under one mark."""
    blocks = np.zeros((len(contents) // ELEMENT_BYTES, BLOCK_BYTES), np.uint8)
    blocks[:, _MARK] = mark
    blocks[:, _MARK + 1 :] = np.frombuffer(contents, np.uint8).reshape(-1, ELEMENT_BYTES)
    blocks[:, :_TAG] = _tags(blocks)
    return blocks


def _tags(blocks: Blocks) -> NDArray[np.uint8]:
    """The tags that marks and elements of the blocks have, shape (n, 12)."""
    marked, size, sha256 = blocks[:, _MARK:].tobytes(), BLOCK_BYTES - _MARK, hashlib.sha256
    tags = b"".join(
        [sha256(_DOMAIN + marked[start : start + size]).digest()[:_TAG] for start in range(0, len(marked), size)]
    )
    return np.frombuffer(tags, np.uint8).reshape(-1, _TAG)
