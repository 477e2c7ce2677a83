"""Live progress on standard error: party, step and bytes; and a line whenever a job begins to wait for people."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

from coordinator.cli.terminal.console import note
from coordinator.cli.terminal.steps import Steps, about
from coordinator.jobs.lifecycle import Job, State
from coordinator.jobs.progress import Watcher, unwatched
from link.files.printable import enumeration
from link.files.quantities import size


@contextmanager
def live_progress(parties: Sequence[str], planned_s: float | None = None) -> Iterator[Watcher]:
    """Shows a line per party for as long as the context lasts, where standard error is a terminal.

    Args:
        parties: Of the job.
        planned_s: How long the whole job is expected to take, by its plan; what is left of that is shown, too.
    """
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
            name: progress.add_task("waiting", total=None, party=name, sent=size(0), received=size(0))
            for name in parties
        }
        steps, ends = Steps(), None if planned_s is None else time.monotonic() + planned_s

        def watcher(party: str, step: str, done: int, total: int, bytes_sent: int, bytes_received: int) -> None:
            progress.update(
                tasks[party],
                description=steps.line(party, step, done, total) + _left(ends),
                completed=done,
                total=total or None,
                sent=size(bytes_sent),
                received=size(bytes_received),
            )

        yield watcher


def _left(ends: float | None) -> str:
    """What is left of the time that the plan gives the job."""
    left = 0.0 if ends is None else ends - time.monotonic()
    return f"; the plan leaves the job {about(left)}" if left > 0 else ""


def notes() -> Callable[[Job], None]:
    """Shows, once each time, for whom a job waits, who is back, and when it goes on by itself after a loss."""
    shown = ""
    retried: int | None = None
    resumed = 0
    since: dict[str, datetime] = {}

    def show(job: Job) -> None:
        nonlocal shown, retried, resumed
        if retried is None or job.retried < retried:  # who begins to watch has not seen what was before
            retried = resumed = job.retried
        if job.retried > retried:
            retried = job.retried
            what = job.lost.rpartition("; ")[0] or job.lost  # what to do about it is done
            note(f"lost at {datetime.now():%H:%M:%S}: {what}; the job goes on by itself, in attempt {job.attempt}")
        if retried > resumed and job.state is State.RUNNING:
            resumed = retried
            note(f"resumed at {datetime.now():%H:%M:%S} from the last step that all parties have kept")
        for party in job.away:
            since.setdefault(party, datetime.now().astimezone())
        if back := tuple(sorted(since.keys() - job.away)):
            note(f"{enumeration(back)} can be reached again")
            for party in back:
                del since[party]
        sentence = waiting_for(job) or _missing(job, since)
        if sentence and sentence != shown:
            note(sentence)
        shown = sentence

    return show


def _missing(job: Job, since: Mapping[str, datetime]) -> str:
    """Who cannot be reached and does its part all the same; empty where nobody is."""
    if not since or job.over:
        return ""
    names, first, until = enumeration(tuple(sorted(since))), min(since.values()), datetime.fromtimestamp(job.until)
    what = {
        State.RUNNING: "; the job goes on there if its node runs",
        State.RELEASING: "; the result is kept there",
    }.get(job.state, "")
    last = f"{until:%H:%M:%S}" if until.date() == datetime.now().date() else f"{until:%Y-%m-%d %H:%M}"
    return f"{names} cannot be reached since {first:%H:%M:%S}{what}; trying again until {last}{_impostors(job)}"


def _impostors(job: Job) -> str:
    """Why nodes are not talked to that answer, as the end of a sentence."""
    shown = "; ".join(job.impostors[party] for party in sorted(job.impostors.keys() & job.away))
    return f" ({shown})" if shown else ""


def waiting_for(job: Job) -> str:
    """For whose decision or return a job waits; empty where it goes its way."""
    if job.state is State.AWAITING:
        until = f"{datetime.fromtimestamp(job.expires).astimezone():%Y-%m-%d %H:%M %Z}"
        names = enumeration(job.waits_for)
        return f"waiting until {until} for the approval of {names} (there: comine party inbox)"
    if job.state is State.APPROVED and job.away:
        return f"approved by all; waiting for {enumeration(job.waits_for)}, which cannot be reached{_impostors(job)}"
    return ""
