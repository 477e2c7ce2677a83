"""`comine compare`: one job under several privacy models, in this process or against the nodes of a federation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli.options import AsJson
from coordinator.cli.terminal.completion import parties_of_job, privacy_models, words

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

    from coordinator.comparison.compare import Comparison, Measured, Run
    from jobs.kinds.packages import PrivacyModel
    from jobs.spec.job import JobSpec


def compare(
    context: typer.Context,
    job_toml: Annotated[Path, typer.Argument(metavar="JOB", help="The job file.")],
    party: Annotated[
        list[str] | None,
        typer.Option(
            "--party",
            metavar="NAME=FILE",
            help="The data of a party, to run in this process; once for each.",
            autocompletion=parties_of_job,
        ),
    ] = None,
    federation: Annotated[
        Path | None,
        typer.Option("--federation", envvar="COMINE_FEDERATION", help="The federation file, to run at its nodes."),
    ] = None,
    models: Annotated[
        str,
        typer.Option(
            "--models",
            metavar="MODEL,…",
            help="Of exact, local, shuffle, distributed and blended.",
            show_default=True,
            autocompletion=privacy_models,
        ),
    ] = "exact,local,shuffle,distributed",
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", metavar="E,…", help="In place of the job's epsilon, such as 0.5,1,2,4.")
    ] = None,
    seeds: Annotated[
        int,
        typer.Option("--seeds", metavar="N", min=1, help="Run each model with the seeds 1 to N."),
    ] = 1,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the result.")] = None,
    data_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="basket (default), csv, long, wide or parquet.",
            autocompletion=words("basket", "csv", "long", "wide", "parquet"),
        ),
    ] = None,
    separator: Annotated[
        str | None, typer.Option("--separator", help="What separates items; blanks in basket files by default.")
    ] = None,
    ids: Annotated[
        list[str] | None, typer.Option("--id", metavar="COLUMN", help="Column of ids, id by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a job under several privacy models on the same data: accuracy, privacy and costs side by side."""
    from coordinator.cli.terminal.console import note, write_json
    from coordinator.comparison.compare import check_comparable
    from coordinator.comparison.compare import compare as run_all
    from coordinator.comparison.folder import document, holds_earlier, write_folder
    from coordinator.interrupt import run_interruptibly
    from jobs.loading import load_envelope
    from jobs.results.destination import check_result_folder
    from link.errors import UsageError

    source = context.get_parameter_source("federation")
    if party and source is not None and source.name == "ENVIRONMENT":
        federation = None  # which it names for commands that do not say where the data are
    if bool(party) == (federation is not None):
        raise UsageError("name the data of each party with --party, or the nodes with --federation")
    wanted, epsilons = _models(models), _epsilons(epsilon)
    spec = load_envelope(job_toml)
    check_comparable(spec)
    if out is not None:
        check_result_folder(out, holds_earlier)
    numbers: Sequence[int | None] = range(1, seeds + 1)
    if federation is None:
        run = _in_process(spec, party or [], data_format, separator, ids)
    elif seeds > 1 or data_format or separator or ids:
        raise UsageError(
            "nodes have their own data and draw their own randomness; --seeds and --format go with --party"
        )
    else:
        run, numbers = _at_nodes(spec, federation), (None,)
    comparison = run_interruptibly(run_all(spec, wanted, epsilons, run, numbers))
    if out is not None:
        write_folder(out, comparison)
    if as_json:
        write_json(document(comparison))
    else:
        _show(comparison)
    for refused in comparison.not_run:
        at = "" if refused.epsilon is None else f", ε = {refused.epsilon:g}"
        note(f"{refused.model}{at}: not run: {refused.error.message}")
    written = f"; written to {out}" if out is not None else ""
    truth = comparison.truth
    found = len(truth.tables["itemsets"])
    note(f"{found:,} frequent itemsets in {truth.n_rows:,} transactions of {len(spec.job.parties)} parties{written}")


def _models(given: str) -> list[PrivacyModel]:
    from jobs.kinds.packages import MODELS
    from link.errors import UsageError

    known: dict[str, PrivacyModel] = {name: name for name in MODELS}
    for name in given.split(","):
        if name not in known:
            raise UsageError(f"--models: there is no model '{name}'; there are {', '.join(MODELS)}")
    return [known[name] for name in given.split(",")]


def _epsilons(given: str | None) -> list[Decimal]:
    from decimal import Decimal, InvalidOperation

    from link.errors import UsageError

    try:
        found = [] if given is None else [Decimal(text) for text in given.split(",")]
    except InvalidOperation:
        raise UsageError(f"--epsilon {given}: the form is one number, or several with commas between") from None
    if not all(each.is_finite() and 0 < each <= 100 for each in found):
        raise UsageError("--epsilon: each must be above 0 and at most 100")
    return list(dict.fromkeys(found))


def _in_process(
    spec: JobSpec, party: list[str], data_format: str | None, separator: str | None, ids: list[str] | None
) -> Run:
    """Runs jobs on the data of these files."""
    from coordinator.cli.jobs.simulate import sources_of
    from coordinator.cli.terminal.live import live_progress
    from coordinator.jobs.simulation.party_files import load_files
    from coordinator.jobs.simulation.simulate import check_parties, simulate_job
    from jobs.kinds.registry import kind_of
    from jobs.results.result import Result

    sources = sources_of(party)
    check_parties(spec, sources)
    kind = kind_of(spec).data
    data_format = data_format or ("csv" if kind == "table" else "basket")
    data = load_files(spec, sources, data_format, separator, ids or kind_of(spec).default_ids(spec))

    async def run(changed: JobSpec, seed: int | None) -> Result:
        with live_progress(changed.job.parties) as watcher:
            return await simulate_job(changed, data, seed=seed, watcher=watcher)

    return run


def _at_nodes(spec: JobSpec, federation: Path) -> Run:
    """Runs jobs at the nodes, each of which decides on every one."""
    from coordinator.cli.terminal.live import live_progress, notes
    from coordinator.jobs.records.store import Store
    from coordinator.jobs.runner import run_job
    from coordinator.member import load_federation
    from jobs.results.result import Result

    known, identity = load_federation(federation)
    addresses, store = known.select(spec.job.parties), Store.of(known)

    async def run(changed: JobSpec, seed: int | None) -> Result:
        assert seed is None  # nodes draw at random
        with live_progress(changed.job.parties) as watcher:
            return await run_job(changed, identity, addresses, watcher, store=store, on_move=notes())

    return run


_HEADS = ("model", "epsilon", "F1", "precision", "recall", "NCR", "mean error", "RMS error")
_COSTS = ("report epsilon", "result epsilon", "delta", "bytes", "seconds")


def _show(comparison: Comparison) -> None:
    from coordinator.cli.terminal.console import write_table

    rows = [_row(measured) for measured in comparison.measured]
    title = f"{comparison.spec.job.name}: privacy models side by side"
    write_table([*_HEADS, *_COSTS], rows, title)


def _row(measured: Measured) -> list[str]:
    spent = measured.spent
    shares = [_known(measured.mean(name), ".4f") for name in ("f1", "precision", "recall", "ncr")]
    errors = [_known(measured.mean(name), ".6f") for name in ("mean_absolute", "root_mean_square")]
    privacy = ["", "", ""]
    if spent is not None:
        privacy = [_known(spent.local_epsilon, ".4g"), f"{spent.epsilon:.4g}", f"{spent.delta:g}"]
    costs = [f"{measured.bytes_sent:.0f}", f"{measured.seconds:.3f}"]
    return [measured.model, _known(measured.epsilon, "g"), *shares, *errors, *privacy, *costs]


def _known(value: float | Decimal | None, form: str) -> str:
    return "" if value is None else format(value, form)
