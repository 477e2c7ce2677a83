"""Pieces in which long streams of bytes go."""

from __future__ import annotations

from typing import Final

CHUNK_BYTES: Final = 1 << 20  # the sweet spot of gRPC
