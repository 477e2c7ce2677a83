"""One user of RAPPOR, who reports texts again and again and never gives a second permanent response to any.

The permanent response is a pseudorandom function of the text's Bloom filter under a secret key, so there is nothing to
store but the key and the cohort, and nothing that could get lost and be drawn anew.
"""

from __future__ import annotations

import hmac
import struct
from typing import Final

import numpy as np

from crypto.primitives.randomness import KEY_BYTES, Randomness
from ldp.arithmetic.dyadic import PRECISE_BITS, Dyadic
from ldp.arithmetic.packed import Rows
from ldp.rappor.mechanism import GOOGLE_STEPS, Rappor
from ldp.reports import FINGERPRINT_BYTES, Reports
from link.errors import ConfigurationError, InputDataError

_MAGIC: Final = b"LDPK\x01"
_HEADER: Final = struct.Struct(f"<5s{FINGERPRINT_BYTES}sL")
_LEAST_SECRET: Final = 16


class RapporClient:
    """A user's cohort and secret. Both stay with the user for ever: with a new secret every text is spent anew.

    Args:
        mechanism: The RAPPOR that is reported to.
        cohort: The user's cohort, drawn without regard to the user's texts.
        secret: 32 bytes; for Google's clients 16 or more.

    Raises:
        ConfigurationError: There is no such cohort, or the secret has another length.
    """

    def __init__(self, mechanism: Rappor, cohort: int, secret: bytes) -> None:
        if not 0 <= cohort < mechanism.cohorts:
            raise ConfigurationError(f"the cohorts are numbered 0 to {mechanism.cohorts - 1}; there is no {cohort}")
        if len(secret) < _LEAST_SECRET or (not mechanism.google and len(secret) != KEY_BYTES):
            raise ConfigurationError(f"a client's secret has {KEY_BYTES} bytes, not {len(secret)}; draw a new client")
        self.mechanism, self.cohort, self._secret = mechanism, cohort, secret

    @classmethod
    def drawn(cls, mechanism: Rappor, rng: Randomness | None = None) -> RapporClient:
        """A new user with a uniform cohort and secret."""
        source = Randomness.from_os() if rng is None else rng
        return cls(mechanism, source.below(mechanism.cohorts), source.bytes(KEY_BYTES))

    def report(self, text: str, rng: Randomness | None = None) -> Reports:
        """One report of a text."""
        source = Randomness.from_os() if rng is None else rng
        mechanism = self.mechanism
        cohort = np.array([self.cohort], dtype=mechanism.layout[0].dtype)
        return Reports(mechanism.fingerprint, (cohort, mechanism.instantaneous(self.permanent(text), source)))

    def permanent(self, text: str) -> Rows:
        """The permanent response to a text, always the same; shape (1, ⌈k / 8⌉). It is never sent."""
        mechanism = self.mechanism
        filters = mechanism.filters.rows([text], np.array([self.cohort]))
        if mechanism.google:
            return google_response(self._secret, filters, mechanism.bits, int(mechanism.f * GOOGLE_STEPS))
        # Bit i is flipped if word i of a stream of its own lies below f/2: fixed for ever, so kept this simple.
        stream = Randomness.from_key(self._secret).derive("permanent response of RAPPOR", filters.tobytes())
        threshold = Dyadic.floor(mechanism.f / 2, PRECISE_BITS).threshold()
        flips = stream.uint64(mechanism.bits) < np.uint64(threshold)
        return filters ^ np.packbits(flips, bitorder="little")

    def to_bytes(self) -> bytes:
        """Cohort and secret, to be kept in a safe place."""
        return _HEADER.pack(_MAGIC, self.mechanism.fingerprint, self.cohort) + self._secret

    @classmethod
    def from_bytes(cls, data: bytes, mechanism: Rappor) -> RapporClient:
        """A client that `to_bytes` wrote.

        Raises:
            InputDataError: It is cut, of another version, or of another mechanism.
        """
        if len(data) < _HEADER.size + _LEAST_SECRET or data[: len(_MAGIC)] != _MAGIC:
            raise InputDataError("these bytes are no RAPPOR client of this version")
        _, fingerprint, cohort = _HEADER.unpack_from(data)
        if fingerprint != mechanism.fingerprint:
            raise InputDataError("the client belongs to a RAPPOR with other parameters")
        return cls(mechanism, cohort, data[_HEADER.size :])


def google_response(secret: bytes, filters: Rows, bits: int, noise: int) -> Rows:
    """The permanent response of Google's clients: byte i of HMAC-SHA256(secret, filter) decides about bit i.

    Its seven high bits say whether the permanent bit is noise, its lowest bit then which one.

    Args:
        secret: The client's.
        filters: Shape (n, ⌈k / 8⌉).
        bits: k, at most 32.
        noise: 128·f.
    """
    numbers = np.zeros((len(filters), 4), dtype=np.uint8)
    numbers[:, : filters.shape[1]] = filters
    digests = [hmac.digest(secret, number[::-1].tobytes(), "sha256")[:bits] for number in numbers]
    drawn = np.frombuffer(b"".join(digests), np.uint8).reshape(len(filters), bits)
    ones = np.unpackbits(filters, axis=1, count=bits, bitorder="little")
    return np.packbits(np.where(drawn >> 1 < noise, drawn & 1, ones), axis=1, bitorder="little")
