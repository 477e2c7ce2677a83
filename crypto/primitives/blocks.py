"""Elements of any length as tuples of 30-byte blocks that are ready for the embedding.

All tuples of one union have the same number b of blocks, so that lengths do not show. The order of blocks inside a
tuple is fixed and tuples are permuted whole. An element is written as a string

    mark ‖ content ‖ zero padding                                         (17·b bytes)

that is cut into b payloads. The mark's top bit distinguishes a fake from a real element; its low seven bits are the
length of the content up to 126, or 127, and then two bytes of length follow (big-endian, 127 … 65,535). A fake's
content is 16 random bytes. So one block carries up to 16 bytes of a real element, and every fake fits one block.

    block i = (T ⊕ (i div 256)) ‖ (i mod 256) ‖ payload i                 (12 + 1 + 17 bytes)

T is the tag of the whole element: SHA-256 of domain, mark and content, truncated to 12 bytes; the position's upper part
goes into its last two bytes. All blocks of one element differ, since their positions do, whatever the content repeats;
blocks of two elements are equal only if their tags collide (2^-57 for 2^20 elements), so equal prefixes do not show.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.params import STANDARD_128
from crypto.primitives.hashing import encode_fields
from link.randomness import RandomStream

BLOCK_BYTES: Final = STANDARD_128.block_bytes
MAX_ELEMENT_BYTES: Final = STANDARD_128.max_element_bytes
MAX_BLOCKS: Final = STANDARD_128.max_blocks
_TAG: Final = STANDARD_128.tag_bytes
_PAYLOAD: Final = STANDARD_128.payload_bytes
_FAKE_CONTENT: Final = STANDARD_128.fake_bytes
_LONG: Final = 127
_FAKE: Final = 0x80
_FAKE_MARK: Final = bytes([_FAKE | _FAKE_CONTENT])
_DOMAIN: Final = encode_fields(STANDARD_128.suite.encode(), b"element tag")

Tuples = NDArray[np.uint8]
"""Shape (n, b, 30): n elements of b blocks each."""


def blocks_needed(length: int) -> int:
    """Number of blocks of an element of `length` bytes.

    Raises:
        ValueError: The element is longer than 65,535 bytes.
    """
    if length > MAX_ELEMENT_BYTES:
        raise ValueError(f"an element must not be longer than {MAX_ELEMENT_BYTES:,} bytes")
    mark_bytes = 1 if length < _LONG else 3
    return -(-(mark_bytes + length) // _PAYLOAD)


def most_bytes(width: int) -> int:
    """The longest element that so many blocks carry, in bytes."""
    space = _PAYLOAD * width
    return min(space - (1 if space <= _LONG else 3), MAX_ELEMENT_BYTES)


def encode(elements: Sequence[bytes], blocks_per_element: int | None = None) -> Tuples:
    """Encode real elements.

    Args:
        elements: n byte strings of 0 to 65,535 bytes each.
        blocks_per_element: The common number b of blocks, which is public; by default what the longest element needs,
            which discloses that length class.

    Returns:
        Shape (n, b, 30).

    Raises:
        ValueError: An element, named by its index, does not fit.
    """
    width = _width(elements, blocks_per_element)
    return _assemble([_mark(len(element)) + element for element in elements], width)


def fake(random: RandomStream, count: int, blocks_per_element: int) -> Tuples:
    """Fakes, which nobody can distinguish from real elements before they are decrypted.

    Two parties with equal streams get equal fakes: their common ones.

    Args:
        random: The stream to draw 16 bytes a fake from.
        count: How many.
        blocks_per_element: The number b of blocks of the real elements.

    Returns:
        Shape (count, b, 30).
    """
    contents = random.bytes(_FAKE_CONTENT * count)
    parts = [contents[start : start + _FAKE_CONTENT] for start in range(0, len(contents), _FAKE_CONTENT)]
    return _assemble([_FAKE_MARK + part for part in parts], _checked_width(blocks_per_element))


def decode(tuples: Tuples) -> list[bytes | None]:
    """Give back the elements, None for each fake, after checking every part of their encoding.

    Args:
        tuples: Shape (n, b, 30).

    Returns:
        n elements. Each has exactly one encoding of b blocks, so different tuples give different elements or fakes.

    Raises:
        ValueError: A tuple, named by its index, has a wrong position, tag, mark or padding. Nothing of its content is
            shown.
    """
    if tuples.dtype != np.uint8 or tuples.ndim != 3 or tuples.shape[2] != BLOCK_BYTES:
        raise ValueError(f"tuples must be a uint8 array of shape (n, b, {BLOCK_BYTES}), not {tuples.shape}")
    size, width = tuples.shape[:2]
    _checked_width(width)
    tags = tuples[:, :, :_TAG] ^ _position_masks(width)
    _require((tags == tags[:, :1]).all(axis=(1, 2)), "has blocks of different tags")
    _require((tuples[:, :, _TAG] == _positions(width)).all(axis=1), "has a block in the wrong position")

    stride = _PAYLOAD * width
    payloads = tuples[:, :, _TAG + 1 :].tobytes()
    claimed = tags[:, 0].tobytes()
    sha256 = hashlib.sha256
    elements: list[bytes | None] = []
    for index in range(size):
        start = index * stride
        first = payloads[start]
        begin, length = start + 1, first & _LONG
        if length == _LONG:
            begin, length = start + 3, int.from_bytes(payloads[start + 1 : start + 3], "big")
            if length < _LONG:
                raise ValueError(f"element {index} is malformed: it has a wrong mark")
        end = begin + length
        if end > start + stride or (first >= _FAKE and (first != _FAKE_MARK[0])):
            raise ValueError(f"element {index} is malformed: it has a wrong mark")
        if sha256(_DOMAIN + payloads[start:end]).digest()[:_TAG] != claimed[index * _TAG : (index + 1) * _TAG]:
            raise ValueError(f"element {index} is malformed: its tag does not match")
        if payloads.count(0, end, start + stride) != start + stride - end:
            raise ValueError(f"element {index} is malformed: its padding is not empty")
        elements.append(payloads[begin:end] if first < _FAKE else None)
    return elements


def _mark(length: int) -> bytes:
    return bytes([length]) if length < _LONG else bytes([_LONG]) + length.to_bytes(2, "big")


def _width(elements: Sequence[bytes], blocks_per_element: int | None) -> int:
    longest = max((blocks_needed(len(element)) for element in elements), default=1)
    if blocks_per_element is None:
        return longest
    width = _checked_width(blocks_per_element)
    if longest > width:
        index = next(i for i, element in enumerate(elements) if blocks_needed(len(element)) > width)
        raise ValueError(f"element {index} does not fit the {width} blocks that every element has here")
    return width


def _checked_width(width: int) -> int:
    if not 1 <= width <= MAX_BLOCKS:
        raise ValueError(f"an element has 1 to {MAX_BLOCKS:,} blocks, not {width:,}")
    return width


def _assemble(marked: list[bytes], width: int) -> Tuples:
    """Blocks of the strings mark ‖ content."""
    size, stride = len(marked), _PAYLOAD * width
    sha256 = hashlib.sha256
    tags = b"".join([sha256(_DOMAIN + string).digest()[:_TAG] for string in marked])
    payloads = b"".join([string.ljust(stride, b"\0") for string in marked])
    tuples = np.empty((size, width, BLOCK_BYTES), dtype=np.uint8)
    tuples[:, :, :_TAG] = np.frombuffer(tags, dtype=np.uint8).reshape(size, 1, _TAG) ^ _position_masks(width)
    tuples[:, :, _TAG] = _positions(width)
    tuples[:, :, _TAG + 1 :] = np.frombuffer(payloads, dtype=np.uint8).reshape(size, width, _PAYLOAD)
    return tuples


def _positions(width: int) -> NDArray[np.uint8]:
    """Low bytes of the positions, shape (b,)."""
    return (np.arange(width) & 0xFF).astype(np.uint8)


def _position_masks(width: int) -> NDArray[np.uint8]:
    """Upper parts of the positions as masks of the tags, shape (b, 12)."""
    masks = np.zeros((width, _TAG), dtype=np.uint8)
    masks[:, -2:] = (np.arange(width) >> 8).astype(">u2").view(np.uint8).reshape(width, 2)
    return masks


def _require(flags: NDArray[np.bool_], complaint: str) -> None:
    if not flags.all():
        raise ValueError(f"element {int(flags.argmin())} is malformed: it {complaint}")
