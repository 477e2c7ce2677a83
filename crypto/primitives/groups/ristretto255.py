"""The group ristretto255 (RFC 9496) on packed arrays.

Points are the rows of C-contiguous uint8 arrays of shape (n, 32), scalars are 32 bytes, little-endian and below the
prime group order `ORDER`. The functions are pure and spend their time inside libsodium with the interpreter's lock
released, so a caller splits a batch over threads by slices: `multiply(points[a:b], scalar)`. The loops run in C
(`map` over ranges of addresses), which costs about 1 % of a multiplication.

Every function that takes points checks that each is the one canonical encoding of its element. libsodium 1.0.18
ignores the top bit of byte 31, which would give each element a second name; it is refused here.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Iterable, Sequence
from itertools import compress, count, repeat
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.params import STANDARD_128
from crypto.primitives.groups.sodium import library
from link.randomness import RandomStream

ORDER: Final = STANDARD_128.group_order
POINT_BYTES: Final = STANDARD_128.point_bytes
SCALAR_BYTES: Final = STANDARD_128.scalar_bytes
UNIFORM_BYTES: Final = 64
IDENTITY: Final = bytes(POINT_BYTES)
_ZERO_SCALAR: Final = bytes(SCALAR_BYTES)
_TOP_BIT: Final = np.uint8(0x80)

Points = NDArray[np.uint8]
"""Rows of 32 bytes; also scalars (32) and uniform bytes (64), as each function says."""


def is_valid_points(points: Points) -> NDArray[np.bool_]:
    """Which rows are canonical encodings of group elements (RFC 9496, section 4.3.1).

    The identity is one. To refuse it too, compare with `IDENTITY`; `multiply` refuses it anyway.

    Args:
        points: Shape (n, 32).

    Returns:
        Shape (n,). About 3.6 µs a row.
    """
    points = _packed(points, POINT_BYTES, "points")
    valid = map(library().is_valid_point, _rows(points))
    flags = np.fromiter(valid, dtype=np.bool_, count=len(points))
    return np.logical_and(flags, points[:, -1] < _TOP_BIT, out=flags)


def multiply(points: Points, scalar: bytes) -> Points:
    """Multiply every point by one scalar, in constant time with respect to both.

    Args:
        points: Shape (n, 32).
        scalar: 32 bytes, neither zero nor reduced modulo anything but the order.

    Returns:
        Shape (n, 32). About 36 µs a row.

    Raises:
        ValueError: The scalar is zero or not below the order; or a row, which the message names by its index, is not
            a canonical encoding or is the identity.
    """
    points = _packed(points, POINT_BYTES, "points")
    check_scalar(scalar)
    products = np.empty_like(points)
    _check_canonical(points)
    codes = map(library().multiply, _rows(products), repeat(scalar), _rows(points))
    _check_codes(codes, "is not a valid group element other than the identity")
    return products


def multiply_each(points: Points, scalars: Points) -> Points:
    """Multiply point i by scalar i.

    Args:
        points: Shape (n, 32).
        scalars: Shape (n, 32), each non-zero and below the order, as from `random_scalars`.

    Returns:
        Shape (n, 32).

    Raises:
        ValueError: A product is the identity, or a row is not a canonical encoding; the message names its index.
    """
    points = _packed(points, POINT_BYTES, "points")
    scalars = _packed(scalars, SCALAR_BYTES, "scalars")
    _check_equal_length(points, scalars)
    products = np.empty_like(points)
    _check_canonical(points)
    codes = map(library().multiply, _rows(products), _rows(scalars), _rows(points))
    _check_codes(codes, "is not a valid group element, or its product is the identity")
    return products


def base_multiply(scalars: Points) -> Points:
    """Multiply the group's generator by each scalar.

    Args:
        scalars: Shape (n, 32), each non-zero and below the order.

    Returns:
        Shape (n, 32). About 12 µs a row.

    Raises:
        ValueError: A scalar is zero modulo the order; the message names its index.
    """
    scalars = _packed(scalars, SCALAR_BYTES, "scalars")
    products = np.empty_like(scalars)
    codes = map(library().base_multiply, _rows(products), _rows(scalars))
    _check_codes(codes, "times the generator is the identity")
    return products


def add(left: Points, right: Points) -> Points:
    """Add row by row.

    Args:
        left: Shape (n, 32).
        right: Shape (n, 32).

    Returns:
        Shape (n, 32); a sum may be the identity. About 11 µs a row.

    Raises:
        ValueError: A row is not a canonical encoding; the message names its index.
    """
    return _combine(library().add, left, right)


def subtract(left: Points, right: Points) -> Points:
    """Subtract row by row: `left` − `right`; shapes and errors as for `add`."""
    return _combine(library().subtract, left, right)


def from_uniform_bytes(uniform: Points) -> Points:
    """The one-way map of RFC 9496, section 4.3.4: uniform bytes to uniform elements.

    Args:
        uniform: Shape (n, 64).

    Returns:
        Shape (n, 32). About 10 µs a row.
    """
    uniform = _packed(uniform, UNIFORM_BYTES, "uniform bytes")
    points = np.empty((len(uniform), POINT_BYTES), dtype=np.uint8)
    _check_codes(map(library().from_hash, _rows(points), _rows(uniform)), "could not be mapped to the group")
    return points


def hash_to_group(messages: Sequence[bytes], domain: bytes) -> Points:
    """Hash byte strings to elements: `ristretto255_XMD:SHA-512_R255MAP_RO_` of RFC 9380, appendix B.

    In the random oracle model nobody knows a discrete logarithm between two results.

    Args:
        messages: n byte strings of any length.
        domain: Domain separation tag, 1 to 255 bytes; it names protocol and purpose.

    Returns:
        Shape (n, 32). About 13 µs a message.

    Raises:
        ValueError: The domain is empty or too long.
    """
    if not 1 <= len(domain) <= 255:
        raise ValueError(f"a domain has 1 to 255 bytes, not {len(domain)}")
    # expand_message_xmd (RFC 9380, section 5.3.1) for 64 bytes, that is for one block of SHA-512 after the first.
    sha512 = hashlib.sha512
    tag = domain + bytes([len(domain)])
    padded = sha512(bytes(128))
    middle = UNIFORM_BYTES.to_bytes(2, "big") + b"\0" + tag
    last = b"\1" + tag
    blocks = []
    for message in messages:
        first = padded.copy()
        first.update(message + middle)
        blocks.append(sha512(first.digest() + last).digest())
    return from_uniform_bytes(np.frombuffer(b"".join(blocks), dtype=np.uint8).reshape(-1, UNIFORM_BYTES))


def random_scalar(random: RandomStream) -> bytes:
    """A uniform scalar in 1 … ORDER − 1: 64 bytes reduced, at distance 2^-259 from uniform."""
    while (scalar := scalar_reduce(random.bytes(UNIFORM_BYTES))) == _ZERO_SCALAR:
        pass
    return scalar


def random_scalars(random: RandomStream, size: int) -> Points:
    """`size` uniform non-zero scalars, shape (size, 32)."""
    joined = bytearray().join(random_scalar(random) for _ in range(size))
    return np.frombuffer(joined, dtype=np.uint8).reshape(-1, SCALAR_BYTES)


def check_scalar(scalar: bytes) -> None:
    """Refuse what is not a canonical, non-zero scalar.

    Raises:
        ValueError: Wrong length, zero, or not below the order.
    """
    if len(scalar) != SCALAR_BYTES:
        raise ValueError(f"a scalar has {SCALAR_BYTES} bytes, not {len(scalar)}")
    if not 0 < int.from_bytes(scalar, "little") < ORDER:
        raise ValueError("a scalar must be non-zero and below the group order")


def scalar_reduce(wide: bytes) -> bytes:
    """Reduce 64 little-endian bytes modulo the order."""
    return _scalar(library().scalar_reduce, wide, size=UNIFORM_BYTES)


def scalar_invert(scalar: bytes) -> bytes:
    """The inverse of a non-zero scalar modulo the order.

    Raises:
        ValueError: The scalar is zero or not canonical.
    """
    check_scalar(scalar)
    return _scalar(library().scalar_invert, scalar)


def _scalar(function: Callable[..., int], *operands: bytes, size: int = SCALAR_BYTES) -> bytes:
    if any(len(operand) != size for operand in operands):
        raise ValueError(f"each operand must have {size} bytes")
    result = ctypes.create_string_buffer(SCALAR_BYTES)
    function(result, *operands)
    return result.raw


def _combine(function: Callable[..., int], left: Points, right: Points) -> Points:
    left = _packed(left, POINT_BYTES, "points")
    right = _packed(right, POINT_BYTES, "points")
    _check_equal_length(left, right)
    _check_canonical(left)
    _check_canonical(right)
    results = np.empty_like(left)
    _check_codes(map(function, _rows(results), _rows(left), _rows(right)), "is not a valid group element on both sides")
    return results


def _packed(array: Points, width: int, what: str) -> Points:
    if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != width:
        raise ValueError(f"{what} must be a uint8 array of shape (n, {width}), not {array.dtype} {array.shape}")
    return np.ascontiguousarray(array)


def _rows(array: Points) -> range:
    """Addresses of the rows. The caller keeps the array alive for as long as they are used."""
    start, width = array.ctypes.data, array.shape[1]
    return range(start, start + len(array) * width, width)


def _check_equal_length(left: Points, right: Points) -> None:
    if len(left) != len(right):
        raise ValueError(f"{len(left)} rows cannot be paired with {len(right)}")


def _check_canonical(points: Points) -> None:
    beyond = points[:, -1] >= _TOP_BIT
    if beyond.any():
        raise ValueError(f"row {int(beyond.argmax())} is not a canonical encoding")


def _check_codes(codes: Iterable[int], complaint: str) -> None:
    """Run the calls behind `codes` and stop at the first that fails."""
    failed = next(compress(count(), codes), None)
    if failed is not None:
        raise ValueError(f"row {failed} {complaint}")
