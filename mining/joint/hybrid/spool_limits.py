"""What sealed reports may take at a shuffler."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

REPORT_MEMORY: Final = 256 << 20
LEAST_REPORT_MEMORY: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class SpoolLimits:
    """What sealed reports may take at a shuffler.

    Attributes:
        memory: Bytes of memory, about; what exceeds it is on the disk.
        folder: Where that is; by default where temporary files are.
    """

    memory: int = REPORT_MEMORY
    folder: Path | None = None


DEFAULT_SPOOL_LIMITS: Final = SpoolLimits()
