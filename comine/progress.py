"""Progress of a job as a program shows it: bars in a terminal, lines that are replaced in a notebook."""

from __future__ import annotations

import html
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from coordinator.cli.terminal.console import note
from coordinator.cli.terminal.live import live_progress
from coordinator.cli.terminal.steps import Steps, in_words
from coordinator.jobs.progress import Watcher, unwatched


@contextmanager
def shown_progress(parties: Sequence[str], wanted: bool | None) -> Iterator[Watcher]:
    """Shows how far the parties are, for as long as the context lasts.

    Args:
        parties: Of the job.
        wanted: Whether to show it; None: in terminals and notebooks. Elsewhere a line on standard error begins each
            step.
    """
    if wanted is False:
        yield unwatched
    elif (show := _display()) is not None:
        yield _replaced(parties, show)
    elif wanted and not sys.stderr.isatty():
        yield _spoken()
    else:
        with live_progress(parties) as watcher:
            yield watcher


def _display() -> Callable[[str], object] | None:
    """Shows HTML in a notebook's cell, each time in the place of the last; None where there is no notebook."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if not hasattr(shell, "kernel"):
        return None
    handle = ipython.display.display(ipython.display.HTML(""), display_id=True)
    return lambda text: handle.update(ipython.display.HTML(text))


def _replaced(parties: Sequence[str], show: Callable[[str], object]) -> Watcher:
    steps, lines = Steps(), dict.fromkeys(parties, in_words(""))

    def watcher(party: str, step: str, done: int, total: int, bytes_sent: int, bytes_received: int) -> None:  # noqa: ARG001
        line = steps.line(party, step, done, total)
        if line != lines[party]:
            lines[party] = line
            rows = (
                f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>" for name, text in lines.items()
            )
            show(f"<table>{''.join(rows)}</table>")

    return watcher


def _spoken() -> Watcher:
    begun = dict[str, str]()

    def watcher(party: str, step: str, done: int, total: int, bytes_sent: int, bytes_received: int) -> None:  # noqa: ARG001
        if begun.get(party) != step:
            begun[party] = step
            note(f"{party}: {in_words(step)}")

    return watcher
