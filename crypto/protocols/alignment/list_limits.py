"""What the lists of an alignment may take of memory."""

from __future__ import annotations

from typing import Final

from crypto.primitives.scratch_file import ScratchLimits

LIST_MEMORY: Final = 256 << 20
LEAST_LIST_MEMORY: Final = 16 << 20
IN_MEMORY: Final = ScratchLimits(LIST_MEMORY)
