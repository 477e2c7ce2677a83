"""What a session costs a party."""

from __future__ import annotations

from typing import NamedTuple


class Costs(NamedTuple):
    """What a session has cost this party so far."""

    bytes_sent: int
    bytes_received: int
    rounds: int
    seconds: float
