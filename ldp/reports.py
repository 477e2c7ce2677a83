"""Reports: what leaves the place of the data, many in one batch, as arrays and as bytes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from link.errors import InputDataError

FINGERPRINT_BYTES: Final = 16

_MAGIC: Final = b"LDPR\x01"
_HEADER: Final = struct.Struct(f"<5s{FINGERPRINT_BYTES}sQ")


@dataclass(frozen=True, slots=True)
class Field:
    """One part of a report.

    Attributes:
        dtype: Of its numbers, as numpy names it; little-endian on the wire.
        width: How many numbers it has; None for one that is no array.

    Example:
        >>> Field("<u4").nbytes, Field("u1", width=16).nbytes
        (4, 16)
    """

    dtype: str
    width: int | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of one report."""
        return np.dtype(self.dtype).itemsize * (1 if self.width is None else self.width)

    def shape(self, size: int) -> tuple[int, ...]:
        """Of the field of `size` reports."""
        return (size,) if self.width is None else (size, self.width)


@dataclass(frozen=True, slots=True, eq=False)
class Reports:
    """A batch of reports of one mechanism.

    Attributes:
        fingerprint: 16 bytes that the mechanism's name and parameters have; reports of others are refused.
        fields: Arrays whose first axis counts the reports, as the mechanism's `layout` says.
    """

    fingerprint: bytes
    fields: tuple[NDArray[Any], ...]

    def __len__(self) -> int:
        return len(self.fields[0])

    def __getitem__(self, which: slice | NDArray[Any]) -> Reports:
        """Some of the reports."""
        return Reports(self.fingerprint, tuple(field[which] for field in self.fields))

    def to_bytes(self) -> bytes:
        """The batch on the wire: a header of 29 bytes, then field after field."""
        parts = [_HEADER.pack(_MAGIC, self.fingerprint, len(self))]
        parts += [np.ascontiguousarray(field).astype(field.dtype.newbyteorder("<")).tobytes() for field in self.fields]
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, data: bytes, fingerprint: bytes, layout: Sequence[Field]) -> Reports:
        """Reads a batch; `Mechanism.read` also checks the values.

        Raises:
            InputDataError: It is cut, of another version, or of another mechanism.
        """
        if len(data) < _HEADER.size or data[: len(_MAGIC)] != _MAGIC:
            raise InputDataError("these bytes are no batch of reports of this version; send them again")
        _, found, size = _HEADER.unpack_from(data)
        if found != fingerprint:
            raise InputDataError("the reports belong to another mechanism or to other parameters of it")
        if len(data) != _HEADER.size + size * sum(field.nbytes for field in layout):
            raise InputDataError(f"a batch that names {size} reports has another length; it was cut or altered")
        fields, start = [], _HEADER.size
        for field in layout:
            little = np.dtype(field.dtype).newbyteorder("<")
            shape = field.shape(size)
            array = np.frombuffer(data, little, int(np.prod(shape)), start).reshape(shape)
            fields.append(array.astype(field.dtype, copy=False))
            start += array.nbytes
        return cls(fingerprint, tuple(fields))

    @classmethod
    def concatenated(cls, batches: Sequence[Reports]) -> Reports:
        """Several batches of one mechanism as one.

        Raises:
            InputDataError: There is none, or they differ in their mechanism.
        """
        if not batches or any(batch.fingerprint != batches[0].fingerprint for batch in batches):
            raise InputDataError("only batches of reports of one mechanism, at least one, can be joined")
        columns = zip(*(batch.fields for batch in batches), strict=True)
        return cls(batches[0].fingerprint, tuple(np.concatenate(column) for column in columns))
