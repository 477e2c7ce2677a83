"""Exports a collection: the node's files, and a report of them."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path

from coordinator.frequency.files import save_export
from coordinator.frequency.reading import read
from coordinator.frequency.service import FrequencyNode
from jobs.collections.estimates import Asked
from jobs.collections.page import report
from link.errors import ConfigurationError
from protos.v1.frequency_pb2 import Collection, FrequencyRequest

REPORT = "report.html"


async def export_into(draft: Path, node: FrequencyNode, collection: Collection, *, states: bool) -> list[str]:
    """Writes an export into a new folder.

    Args:
        draft: The folder.
        node: Who has the collection.
        collection: Its description.
        states: Whether the sums of reports come too.

    Returns:
        The names of the files; no report is among them where no round has reports yet.

    Raises:
        MalformedMessage: The node sends a file whose name is not plain.
        LimitExceeded: It sends more files than an export can have.
    """
    async with aclosing(node.export(collection.name, states=states)) as pieces:
        files = await save_export(draft, pieces)
    try:
        reading = await read(node, collection, FrequencyRequest(collection=collection.name), Asked(), history=True)
    except ConfigurationError:  # nothing to report of
        return files
    (draft / REPORT).write_text(report(reading), encoding="utf-8")
    return [*files, REPORT]
