"""What a console writes into the log of whoever runs it."""

from __future__ import annotations

from typing import Final

from link.logs.structured import Kinds, matches

EVENTS: Final = frozenset(
    {
        "console ready",
        "console without accounts",
        "console entered",
        "console left",
        "console refused",
        "console fault",
    }
)
KINDS: Final[Kinds] = {"person": matches(r"[A-Za-z0-9][A-Za-z0-9 _.@+-]{0,63}")}
