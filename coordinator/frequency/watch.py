"""Follows a collection as its estimates change: what each change says, as rows, a line or JSON."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from coordinator.frequency.service import FrequencyNode
from jobs.collections.estimates import MEAN, Asked, Estimates, Row, largest_first, rows
from jobs.collections.reading import refused, round_as_data
from jobs.report.text import visible
from ldp.domain import Domain
from link.transports.grpc_errors import ConnectionBroken
from protos.v1.frequency_pb2 import Collection, FrequencyRequest

PATIENCE_S: Final = 60.0  # for which a node may be away
RETRY_S: Final = 0.5
_CELLS: Final = 24  # of a bar
_IN_LINE: Final = 5  # values that a line has room for


class Change(NamedTuple):
    """Estimates as they stood at a moment, largest first."""

    estimates: Estimates
    rows: list[Row]


async def changes(
    node: FrequencyNode,
    collection: Collection,
    request: FrequencyRequest,
    asked: Asked,
    every: float,
    times: int = 0,
    away: Callable[[bool], None] = lambda _: None,
) -> AsyncGenerator[Change]:
    """The estimates whenever they have changed, until the collection is closed.

    Args:
        node: Who has the collection.
        collection: Its description.
        request: Which round, and how many values.
        asked: How estimates are shown.
        every: Seconds between two of them at least.
        times: After how many to stop; 0 for never.
        away: Called when the node is lost, and when it is back.

    Raises:
        ConnectionBroken: The node was away for longer than `PATIENCE_S`.
    """
    domain: Domain | None = await node.domain(collection)
    seen = 0
    async with aclosing(news_of(node, request, every, away)) as found:
        async for estimates in found:
            yield Change(estimates, largest_first(rows(estimates, domain, asked), request.most or None))
            seen += 1
            if seen == times:
                return


async def news_of(
    node: FrequencyNode, request: FrequencyRequest, every: float, away: Callable[[bool], None]
) -> AsyncGenerator[Estimates]:
    """The estimates over as many connections as it takes; none that ended meanwhile is missed."""
    lost_at: float | None = None
    seen: tuple[int, int, bool] | None = None
    while True:
        try:
            first = None if seen is None else seen[0] + seen[2]
            async with aclosing(node.watch(request, every, first)) as found:
                async for estimates in found:
                    if lost_at is not None:
                        lost_at = None
                        away(False)
                    head = estimates.head
                    before, seen = seen, (head.round.number, head.reports, head.final)
                    if before != seen:
                        yield estimates
            return
        except ConnectionBroken:
            if lost_at is None:
                lost_at = time.monotonic()
                away(True)
            elif time.monotonic() - lost_at > PATIENCE_S:
                raise
        await asyncio.sleep(RETRY_S)


def title(estimates: Estimates) -> str:
    """The round, its reports and what was refused, in some words."""
    head = estimates.head
    moment = "final" if head.final else f"at {datetime.fromtimestamp(head.at, UTC):%H:%M:%S} UTC"
    return (
        f"{head.collection}, round {head.round.number}, {moment}: {head.reports:,} reports, "
        f"{refused(head.counters):,} refused"
    )


def line(change: Change) -> str:
    """A change in one line, for files and pipes."""
    shown = [f"{visible(row.value)} {figure(row.estimate, change.estimates)}" for row in change.rows[:_IN_LINE]]
    return f"{title(change.estimates)}; {', '.join(shown)}" if shown else title(change.estimates)


def as_data(change: Change) -> dict[str, Any]:
    """A change as JSON, `comine.frequency-change/1`."""
    return {
        "schema": "comine.frequency-change/1",
        "collection": change.estimates.head.collection,
        "node": change.estimates.node,
        **round_as_data(change.estimates),
        "estimates": [row._asdict() for row in change.rows],
    }


def figure(value: float, estimates: Estimates) -> str:
    """An estimate as tables show it."""
    return f"{value:.5g}" if estimates.kind == MEAN else f"{value:,.0f}"


def table(found: Sequence[Row], estimates: Estimates) -> tuple[list[str], list[list[str]]]:
    """Heads and cells: value, estimate, half of its interval, and both as a bar."""
    most = max((row.high for row in found), default=0.0)
    cells = [
        [
            row.value,
            figure(row.estimate, estimates),
            f"{figure(row.low, estimates)} to {figure(row.high, estimates)}",
            bar(row, most),
        ]
        for row in found
    ]
    return ["value", "estimate", "interval", ""], cells


def bar(row: Row, most: float) -> str:
    """An estimate as a bar of `most` at the full width; thin where the interval still goes.

    Args:
        row: The estimate.
        most: What takes the full width.
    """
    if most <= 0:
        return ""
    low, middle, high = (
        round(_CELLS * min(max(value, 0.0), most) / most) for value in (row.low, row.estimate, row.high)
    )
    return "█" * low + "▓" * (middle - low) + "░" * (high - middle)
