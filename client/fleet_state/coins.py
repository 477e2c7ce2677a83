"""The coins of many clients at once: of each, they follow from its own secret and from what is drawn, and nothing else.

So a client's report of a value in a round is the same bits in whatever batch it is made: a larger or smaller one, in
another order, with other clients or other values of theirs, once more, by another process. Another value, round,
collection or mechanism has independent coins.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.row_streams import RowStreams

ABOUT_BYTES: Final = 16

_LARGEST: Final = 1 << 53  # up to which floating-point numbers are whole numbers, too

Clients = NDArray[np.int64]
"""Numbers of clients, shape (n,), none twice."""


class FleetCoins:
    """The coins of clients 0 … n − 1.

    Args:
        key: 32 secret bytes of the fleet's operator.
        secrets: Shape (n, 32): the clients' secrets.
    """

    def __init__(self, key: bytes, secrets: NDArray[np.uint8]) -> None:
        self._key, self._secrets = key, secrets

    @property
    def everybody(self) -> Clients:
        """All clients."""
        return np.arange(len(self._secrets))

    def streams(
        self, clients: Clients, *purpose: str | int | bytes, about: NDArray[np.uint8] | None = None
    ) -> RowStreams:
        """A stream for each of some clients.

        Args:
            clients: Whose.
            *purpose: What is drawn, all that it depends on included that is the same for all of them.
            about: Shape (clients, 16): what else it depends on, such as a client's value.
        """
        given = np.zeros((len(clients), ABOUT_BYTES), np.uint8) if about is None else about
        return RowStreams(self._key, ("coins of clients", *purpose), self._secrets[clients], given)


def digests(values: NDArray[Any]) -> NDArray[np.uint8]:
    """What distinguishes values, shape (n, 16): equal values have equal digests, whole and real numbers alike."""
    kind = values.dtype.kind
    if kind not in "biuf":
        return _of_texts([str(value) for value in values.ravel()])
    found = np.zeros((len(values), 2), dtype="<u8")
    if kind != "f":
        found[:, 0] = values.astype(np.uint64 if kind == "u" else np.int64).view(np.uint64)
        return found.view(np.uint8)
    real = values.astype(np.float64)
    whole = (np.abs(real) < _LARGEST) & (real == np.floor(real))
    found[:, 0] = np.where(whole, np.where(whole, real, 0).astype(np.int64).view(np.uint64), real.view(np.uint64))
    found[:, 1] = ~whole
    return found.view(np.uint8)


def _of_texts(texts: list[str]) -> NDArray[np.uint8]:
    known = {text: hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:ABOUT_BYTES] for text in set(texts)}
    return np.frombuffer(b"".join(map(known.__getitem__, texts)), np.uint8).reshape(len(texts), ABOUT_BYTES)
