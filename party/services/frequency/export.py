"""A collection as files: what it is, the estimates of all its rounds, and the sums that others can go on with."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np

from jobs.collections.estimates import FOUND, MEAN, Asked, intervals
from link.files.spreadsheet import write_rows
from party.services.frequency.collection import Collection, Snapshot
from party.services.frequency.estimates import Answer
from party.services.frequency.storage.records import COUNTERS, Counters

SCHEMA: Final = "comine.collection/1"
COLLECTION_FILE: Final = "collection.json"
ESTIMATES_FILE: Final = "estimates.csv"
COLUMNS: Final = (
    *("round", "purpose", "opens", "closes", "final", "reports"),
    *("value", "estimate", "variance", "low", "high"),
)


def state_file(number: int) -> str:
    """Where the sums of a round are, as `Aggregator.to_bytes` writes them."""
    return f"round-{number}.state"


def collection_json(collection: Collection, counters: Counters, snapshots: Iterable[Snapshot], node: str) -> bytes:
    """What the collection is, and what became of the reports of each round."""
    stored = collection.stored
    rounds = [_round(each) for each in snapshots]
    content = {
        "schema": SCHEMA,
        "name": stored.name,
        "id": stored.id.hex(),
        "node": node,
        "creator": stored.creator,
        "created": stored.created,
        "state": "closed" if collection.closed else "open",
        "spec": json.loads(stored.spec),
        "domain_digest": collection.domain_digest.hex(),
        "counters": _counters(counters),
        "rounds": rounds,
    }
    return json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n"


def header() -> bytes:
    """The first line of the estimates."""
    return (",".join(COLUMNS) + "\n").encode()


def lines(snapshot: Snapshot, answer: Answer, labels: tuple[str, ...] | None) -> Iterator[bytes]:
    """The estimates of a round as lines of CSV, in pieces.

    Args:
        snapshot: The reports.
        answer: All their estimates.
        labels: Of the domain, where it has any.
    """
    stored, n = snapshot.stored, len(snapshot.aggregator)
    closes = snapshot.stored.ended if snapshot.final else stored.closes
    head = [stored.number, stored.purpose, stored.opens, closes, "true" if snapshot.final else "false", n]
    first = 0
    for piece in answer.pieces():
        text = io.StringIO()
        write_rows(text, ([*head, *row] for row in _rows(piece, first, n, labels)))
        first += len(piece)
        yield text.getvalue().encode()


def _rows(piece: Answer, first: int, n: int, labels: tuple[str, ...] | None) -> Iterator[tuple[Any, ...]]:
    if piece.kind == FOUND:
        values = [value for value, _, _ in piece.found]
        counts = np.array([frequency for _, frequency, _ in piece.found]) * n
        variances = (np.array([deviation for _, _, deviation in piece.found]) * n) ** 2
    elif piece.kind == MEAN:
        values, counts, variances = [MEAN], piece.counts, piece.variances
    else:
        numbers = range(first, first + len(piece))
        values = list(map(str, numbers)) if labels is None else list(labels[first : first + len(piece)])
        counts, variances = piece.counts, piece.variances
    low, high = intervals(counts, Asked().reach(1) * np.sqrt(variances), None if piece.kind == MEAN else n)
    return zip(values, *(column.tolist() for column in (counts, variances, low, high)), strict=True)


def _round(snapshot: Snapshot) -> dict[str, Any]:
    stored = snapshot.stored
    return {
        "number": stored.number,
        "period": stored.period,
        "step": stored.step,
        "opens": stored.opens,
        "closes": stored.closes,
        "ended": stored.ended,
        "purpose": stored.purpose,
        "share": stored.share,
        "mechanism": json.loads(stored.mechanism),
        "fingerprint": snapshot.mechanism.fingerprint.hex(),
        "counters": _counters(snapshot.counters),
    }


def _counters(counters: Counters) -> dict[str, int]:
    return {name: getattr(counters, name) for name in COUNTERS}
