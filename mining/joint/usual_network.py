"""The network that a choice takes for granted which all parties must make alike, before anything is known of theirs."""

from __future__ import annotations

from typing import Final

LATENCY_S: Final = 0.005  # of a message, on a good network
BYTES_PER_S: Final = 1.25e8
