"""What sealed reports may take at a shuffler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from crypto.primitives.scratch_file import ScratchLimits

REPORT_MEMORY: Final = 256 << 20
LEAST_REPORT_MEMORY: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class SpoolLimits(ScratchLimits):
    """What sealed reports may take at a shuffler."""

    memory: int = REPORT_MEMORY


DEFAULT_SPOOL_LIMITS: Final = SpoolLimits()
