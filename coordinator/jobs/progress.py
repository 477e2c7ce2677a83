"""What a job reports of itself while it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from link.errors import ComineError

Absence: TypeAlias = Callable[[str, ComineError | None], None]
"""Called with a party that is lost and why; None: it is back."""


class Watcher(Protocol):
    """Called with how far each party has come. Sizes and steps only, never a value."""

    def __call__(self, party: str, step: str, done: int, total: int, bytes_sent: int, bytes_received: int) -> None:
        """`done` of `total` parts of `step` are finished at `party`; it has sent and received so many bytes."""


def unwatched(party: str, step: str, done: int, total: int, bytes_sent: int, bytes_received: int) -> None:
    """A watcher that looks away."""
