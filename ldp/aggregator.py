"""Adding reports up, in any order, at any number of places."""

from __future__ import annotations

import struct
from typing import Final, Generic, Self, TypeVar

import numpy as np

from ldp.mechanism import Mechanism
from ldp.reports import FINGERPRINT_BYTES, Reports
from link.errors import InputDataError

E = TypeVar("E")

_MAGIC: Final = b"LDPA\x01"
_HEADER: Final = struct.Struct(f"<5s{FINGERPRINT_BYTES}sQ")
_BATCH: Final = 1 << 20  # reports that are tallied at once, so that memory stays bounded


class Aggregator(Generic[E]):
    """The sums over the reports that were added; estimates can be had at any time.

    Args:
        mechanism: Whose reports these are.
    """

    def __init__(self, mechanism: Mechanism[E]) -> None:
        self.mechanism = mechanism
        self._tally = np.zeros(mechanism.tally_shape, dtype=np.int64)
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def add(self, reports: Reports) -> Self:
        """Adds reports.

        Raises:
            InputDataError: They belong to another mechanism.
        """
        self._check(reports.fingerprint)
        for start in range(0, len(reports), _BATCH):
            self._tally += self.mechanism.tally(reports[start : start + _BATCH])
        self._n += len(reports)
        return self

    def merge(self, other: Aggregator[E]) -> Self:
        """Adds what another aggregator of the same mechanism has, over other reports.

        Raises:
            InputDataError: It belongs to another mechanism.
        """
        self._check(other.mechanism.fingerprint)
        self._tally += other._tally
        self._n += len(other)
        return self

    def estimate(self) -> E:
        """What the reports so far say.

        Raises:
            InputDataError: There are none.
        """
        return self.mechanism.estimate(self._tally, self._n)

    def to_bytes(self) -> bytes:
        """The state, to be kept or sent."""
        return _HEADER.pack(_MAGIC, self.mechanism.fingerprint, self._n) + self._tally.astype("<i8").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, mechanism: Mechanism[E]) -> Aggregator[E]:
        """A state that `to_bytes` wrote.

        Raises:
            InputDataError: It is cut, of another version, or of another mechanism.
        """
        aggregator = cls(mechanism)
        if len(data) != _HEADER.size + aggregator._tally.nbytes or data[: len(_MAGIC)] != _MAGIC:
            raise InputDataError("these bytes are no aggregation state of this mechanism and version")
        _, fingerprint, aggregator._n = _HEADER.unpack_from(data)
        aggregator._check(fingerprint)
        tally = np.frombuffer(data, "<i8", offset=_HEADER.size).reshape(mechanism.tally_shape)
        aggregator._tally = tally.astype(np.int64)
        return aggregator

    def _check(self, fingerprint: bytes) -> None:
        if fingerprint != self.mechanism.fingerprint:
            raise InputDataError("the reports belong to another mechanism or to other parameters of it")
