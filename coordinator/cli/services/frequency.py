"""`comine frequency …`: frequencies of values under local differential privacy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli.options import AsJson
from coordinator.cli.services import collections, reports
from coordinator.cli.terminal.completion import frequency_oracles, post_processings

if TYPE_CHECKING:
    from coordinator.frequency.simulation import Simulation, Watcher

app = typer.Typer(help="Frequencies of values under local differential privacy.", no_args_is_help=True)


@app.callback()
def frequency() -> None:
    """Frequencies of values under local differential privacy."""


@app.command()
def simulate(
    mechanism: Annotated[
        list[str],
        typer.Option(
            "--mechanism",
            metavar="NAME",
            help="A frequency oracle, such as olh, or auto; several are put side by side.",
            autocompletion=frequency_oracles,
        ),
    ],
    epsilon: Annotated[float, typer.Option("--epsilon", metavar="E", help="The privacy budget of a report.")],
    values: Annotated[Path, typer.Option("--input", metavar="FILE", help="The users' values, one a line.")],
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Folder for the result.")] = None,
    domain: Annotated[
        Path | None,
        typer.Option("--domain", metavar="FILE", help="All possible values, one a line; by default those seen."),
    ] = None,
    parameters: Annotated[
        list[str] | None,
        typer.Option("--parameter", metavar="NAME=NUMBER", help="Of all mechanisms that have it; may be repeated."),
    ] = None,
    post_processing: Annotated[
        str | None,
        typer.Option(
            "--post-processing",
            metavar="METHOD",
            help="Make estimates consistent too, such as by norm-sub.",
            autocompletion=post_processings,
        ),
    ] = None,
    confidence: Annotated[
        float, typer.Option("--confidence", help="Of the interval of each value.", show_default=True)
    ] = 0.95,
    runs: Annotated[int, typer.Option("--runs", help="Repeat, for errors against theory.", show_default=True)] = 1,
    top: Annotated[int, typer.Option("--top", help="Look for the most frequent values.", show_default=True)] = 20,
    seed: Annotated[int | None, typer.Option("--seed", help="Repeat all random draws.")] = None,
    as_json: AsJson = False,
) -> None:
    """Perturb every value of a file as its user would, estimate how often each occurs, and compare with the truth."""
    from coordinator.cli.terminal.console import note, write_json
    from coordinator.frequency.folder import document, holds_earlier, write_folder
    from coordinator.frequency.simulation import Request, numbers
    from coordinator.frequency.simulation import simulate as run
    from coordinator.frequency.values import load_collection
    from jobs.results.destination import check_result_folder

    settings = numbers(parameters or [])
    request = Request(tuple(mechanism), epsilon, runs, seed, post_processing, confidence, top, settings)
    if out is not None:
        check_result_folder(out, holds_earlier)
    collection = load_collection(values, domain)
    if not collection.public:
        note("the domain is the set of the values seen; a real collection needs a public one: --domain FILE")
    with _progress() as watcher:
        simulation = run(request, collection, watcher)
    if out is not None:
        write_folder(out, simulation)
    for outcome in simulation.outcomes:
        if outcome.reason:
            note(f"auto takes {outcome.reason}")
    if as_json:
        write_json(document(simulation))
    else:
        _show(simulation)
    n, d = len(collection.codes), collection.domain.size
    note(f"{n:,} users, {d:,} values" + (f"; written to {out}" if out is not None else ""))


@contextmanager
def _progress() -> Iterator[Watcher]:
    """Shows the mechanism at work for as long as the context lasts, where standard error is a terminal."""
    import sys

    from coordinator.frequency.simulation import unwatched

    if not sys.stderr.isatty():
        yield unwatched
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda name, done, total: progress.update(task, description=name, completed=done, total=total)


def _show(simulation: Simulation) -> None:
    from coordinator.cli.terminal.console import write_table

    processing = simulation.request.post_processing
    heads = ["mechanism", "exact ε", "bytes/report", "RMSE", "theory RMSE", "ratio", "seconds"]
    rows = []
    for outcome in simulation.outcomes:
        errors, oracle = outcome.errors, outcome.oracle
        figures = [f"{errors.rmse:.4g}", f"{errors.theory_rmse:.4g}", f"{errors.ratio:.3f}"]
        if processing is not None:
            figures.insert(1, f"{errors.post_processed_rmse:.4g}")
        seconds = f"{outcome.client_s + outcome.server_s:.3g}"
        rows.append([oracle.name, f"{oracle.exact_epsilon:.9g}", f"{oracle.report_bytes:,}", *figures, seconds])
    if processing is not None:
        heads.insert(4, f"RMSE {processing}")
    write_table(heads, rows, f"Error of a count at epsilon {simulation.request.epsilon:g}")


collections.add_commands(app)
reports.add_commands(app)
