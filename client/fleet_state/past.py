"""What the clients of a fleet have done before, in this process and in others, as their record shows it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from client.fleet_state.coins import Clients, digests
from client.fleet_state.ledger import FleetLedger
from client.fleet_state.record import FleetRecord, Leaving, Rows, digests_of
from client.pseudonym import PSEUDONYM_BYTES, record_names

Mask = NDArray[np.bool_]


class Before(NamedTuple):
    """Of some clients that are to report.

    Attributes:
        again: Who has reported the very same before.
        changed: Who has reported something else in the period.
    """

    again: Mask
    changed: Mask


class FleetPast:
    """The record of a fleet's clients.

    Args:
        path: Of the record.
        secrets: Shape (n, 32): the clients'.
    """

    def __init__(self, path: Path, secrets: NDArray[np.uint8]) -> None:
        self._path, self._secrets = path, secrets
        self._names = record_names(secrets)
        self._order = np.argsort(_whole(self._names))
        self._sorted = _whole(self._names)[self._order]
        self._record: FleetRecord | None = None
        self._digests = np.zeros((len(secrets), self._names.shape[1]), np.uint8)
        self._last = -1

    @contextmanager
    def held(self) -> Generator[bool]:
        """Nobody else reports by the record meanwhile; returns whether somebody has since the last time.

        Raises:
            ConfigurationError: The record is gone, empty, damaged, or of another version.
            ResourceError: It cannot be used.
        """
        with FleetRecord.held(self._path) as self._record:
            try:
                yield self._record.last != self._last
            finally:
                self._last, self._record = self._record.last, None

    @property
    def record(self) -> FleetRecord:
        """It, while it is held."""
        assert self._record is not None
        return self._record

    def compare(self, collection: bytes, period: int, terms: bytes, clients: Clients, values: NDArray[Any]) -> Before:
        """Which clients have reported in a period, and whether the same.

        Args:
            collection: Its id.
            period: The period.
            terms: Round and mechanism.
            clients: Numbers of clients, none twice.
            values: Theirs.
        """
        own = self._digests[clients] = digests_of(self._secrets[clients], terms, digests(values))
        sent, what = self.record.sent(collection, period)
        earlier = np.zeros_like(self._digests)
        reported = np.zeros(len(self._names), np.bool_)
        known, places = self._numbers(sent)
        earlier[known], reported[known] = what[places], True
        same = np.all(earlier[clients] == own, axis=1)
        return Before(reported[clients] & same, reported[clients] & ~same)

    def put(self, leaving: Leaving, epsilon: Fraction, charged: Clients, others: Clients) -> None:
        """Writes down reports of clients that were compared, before they are sent; those of `others` spend nothing."""
        self.record.put(
            leaving,
            *(
                (each, self._names[who], self._digests[who])
                for each, who in ((epsilon, charged), (Fraction(0), others))
            ),
        )

    def recall(self, ledger: FleetLedger, *, collection: bytes | None = None, after: float = 0.0) -> FleetLedger:
        """A new ledger with what was spent: of a collection by step, else of all collections by time."""
        for found in self.record.charged(collection=collection, after=after):
            clients, _ = self._numbers(found.clients)
            ledger.recall(found.at if collection is None else found.step, clients, found.epsilon)
        return ledger

    def _numbers(self, known_as: Rows) -> tuple[Clients, NDArray[np.int64]]:
        """The fleet's clients among some names, and where in these they are."""
        wanted = _whole(known_as)
        places = np.minimum(np.searchsorted(self._sorted, wanted), len(self._sorted) - 1)
        ours = np.flatnonzero(self._sorted[places] == wanted)
        return self._order[places[ours]], ours


def _whole(rows: Rows) -> NDArray[Any]:
    """Each row as one value that can be compared; all are of one length, so zeros at their ends do no harm."""
    return np.ascontiguousarray(rows).view(f"S{PSEUDONYM_BYTES}").reshape(-1)
