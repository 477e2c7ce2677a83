"""What is kept of collections, of their rounds, and of what became of reports."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final


@dataclass(frozen=True, slots=True)
class Counters:
    """How many reports were counted, and how many refused, by the reason; as in the message of that name."""

    counted: int = 0
    duplicate: int = 0
    malformed: int = 0
    foreign: int = 0
    late: int = 0
    early: int = 0
    over_quota: int = 0

    def __add__(self, other: Counters) -> Counters:
        return Counters(*(getattr(self, name) + getattr(other, name) for name in COUNTERS))


COUNTERS: Final = tuple(field.name for field in fields(Counters))


@dataclass(frozen=True, slots=True)
class StoredCollection:
    """A collection. Times are Unix seconds.

    Attributes:
        name: As people call it.
        id: 16 bytes.
        spec: Its specification as canonical JSON.
        labels: The domain's values as UTF-8 lines, or nothing.
        creator: The coordinator that created it.
        created: When.
        closed: When it was closed.
        state: Of its schedule.
    """

    name: str
    id: bytes
    spec: bytes
    labels: bytes
    creator: str
    created: float
    closed: float | None = None
    state: bytes = b""


@dataclass(frozen=True, slots=True)
class StoredRound:
    """A round of a collection. Times are Unix seconds.

    Attributes:
        number: From 0 on.
        period: In which a client takes part once.
        step: Of the window ledger.
        opens: When its first report is taken.
        closes: When its last report is taken; 0 where only closing ends it.
        mechanism: The mechanism's document.
        purpose: publication, dissimilarity or prefixes.
        share: How probably a client takes part, as a fraction; empty: always.
        ended: When it ended.
        tally: `Aggregator.to_bytes` over all its reports, once it has ended.
        result: What was made of them at its end.
        counters: What became of the reports for it, as far as it is on disk.
    """

    number: int
    period: int
    step: int
    opens: float
    closes: float
    mechanism: bytes
    purpose: str = "publication"
    share: str = ""
    ended: float | None = None
    tally: bytes = b""
    result: bytes = b""
    counters: Counters = Counters()
