"""Live progress on standard error: party, step and bytes; silent where nobody watches."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from coordinator.progress import Watcher, unwatched


@contextmanager
def live_progress(parties: Sequence[str]) -> Iterator[Watcher]:
    """Shows a line per party for as long as the context lasts, where standard error is a terminal."""
    if not sys.stderr.isatty():
        yield unwatched
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.fields[party]}"),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[sent]} sent, {task.fields[received]} received"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tasks = {
            name: progress.add_task("waiting", total=None, party=name, sent=_size(0), received=_size(0))
            for name in parties
        }

        def watcher(party: str, step: str, done: int, total: int, bytes_sent: int, bytes_received: int) -> None:
            progress.update(
                tasks[party],
                description=step or "waiting",
                completed=done,
                total=total or None,
                sent=_size(bytes_sent),
                received=_size(bytes_received),
            )

        yield watcher


def _size(number: float) -> str:
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"
