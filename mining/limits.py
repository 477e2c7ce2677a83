"""How long an item's name may be, and how an enumeration stops before it grows out of hand."""

from __future__ import annotations

from typing import Final

MAX_ITEM_BYTES: Final = 4096  # of an item's name, in UTF-8


class EnumerationLimit(Exception):
    """An enumeration would exceed its limit; nothing partial is returned.

    It is not a `ComineError`: the caller decides whether to change strategy or to report it to the user.

    Args:
        limit: The number of sets that the caller, or this machine's memory, allows.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(f"the enumeration would exceed {limit} itemsets")
        self.limit = limit
