"""The figures of one way to do a job."""

from __future__ import annotations

from dataclasses import dataclass

from link.traffic import Traffic


@dataclass(frozen=True)
class SessionFigures:
    """What one way to do a job sends, and how long it takes.

    Attributes:
        traffic: Of the whole session.
        seconds: Of the slowest party.
    """

    traffic: Traffic
    seconds: float

    @property
    def bytes_sent(self) -> int:
        """Bytes of all parties together."""
        return sum(map(self.traffic.bytes_sent, self.traffic.parties))
