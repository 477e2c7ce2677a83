"""Which kept answer each client of a fleet reports, where answers to new values wait for their turn."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from client.description import Span
from client.fleet_state.ledger import FleetLedger, unit_of
from client.fleet_state.memo import FleetMemo

_NONE: Final = -1  # nothing reported yet


class FleetSliding:
    """What `ldp.streams.sliding_memo` does for one client, for all clients of a fleet.

    Args:
        clients: How many.
        memo: Their kept answers.
        span: What answers to new values may spend.

    Attributes:
        ledger: What they have spent on such.
    """

    def __init__(self, clients: int, memo: FleetMemo, span: Span) -> None:
        self._memo = memo
        self.ledger = FleetLedger(clients, span.steps, span.epsilon, unit_of(span.epsilon))
        self._last = np.full(clients, _NONE)

    def may_report(
        self, step: int, clients: NDArray[np.int64], keys: NDArray[np.int64], anew: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Which clients have something to report, be it the last answer once more; see `turn`."""
        kept = ~self._memo.is_new(keys) | (self._last[clients] != _NONE)
        return np.asarray(kept | (anew & self.ledger.allows(step, clients, self._memo.charge)))

    def turn(
        self, step: int, clients: NDArray[np.int64], keys: NDArray[np.int64], anew: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """The keys that clients report at a step: their own, or the last where a new answer has to wait.

        Args:
            step: Its number.
            clients: Numbers of clients that may report, none twice.
            keys: As `FleetMemo.keys` gives them.
            anew: Whose own budget allows a new answer.
        """
        new = self._memo.is_new(keys)
        drawn = new & anew & self.ledger.allows(step, clients, self._memo.charge)
        self.ledger.spend(clients[drawn], self._memo.charge)
        self._last[clients] = np.where(new & ~drawn, self._last[clients], keys)
        return self._last[clients]
