"""Runs the demo and shows it: prepare, start, mine, compare with the pooled rows, stop."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from coordinator.demo.loopback import LoopbackFederation
from coordinator.demo.story import BASKETS, INSURERS, JOB, Basket, alone, as_file, found_in, households, pooled
from coordinator.interrupt import run_interruptibly, signals_interrupt
from coordinator.jobs.runner import run_job
from jobs.loading import load_job
from jobs.report.tables import most_useful
from jobs.results.result import Result
from jobs.spec.job import JobSpec
from jobs.summary import summary
from link.errors import ConfigurationError, InternalError, ResourceError
from link.files.printable import text_width
from mining.data.transactions import Transactions
from mining.public_sizes import measured

DATASET: Final = "policies"
_SHOWN: Final = 12
_NOTE: Final = "note.txt"
_NOTE_BEGINS: Final = "A comine demo."
_NOTE_TEXT: Final = f"""\
{_NOTE_BEGINS} Each folder is one organisation's machine; `comine demo` replaces all of this.

  authority/             issues certificates; on no node
  city/ family/ rural/   a party's data, key, certificate, configuration and log
  coordinator/           the job, the federation file and the coordinator's key
  result/                what the job gave: tables, result.json and report.html

To run the same by hand, in this folder: start `comine party serve city/party.toml` and the other two in terminals of
their own, then

  comine doctor --federation coordinator/federation.toml
  comine job run coordinator/job.toml --federation coordinator/federation.toml --out result
"""


def run_demo(out: Path) -> None:
    """The whole demo; prints to standard output, leaves its files in `out` and no process behind.

    Args:
        out: A folder that is absent, empty, or holds an earlier demo.

    Raises:
        ComineError: Something failed; the nodes have been stopped.
    """
    console = Console(highlight=False)
    began = time.monotonic()
    baskets = households()
    rows = [basket for own in baskets.values() for basket in own]
    _make_room(out)
    federation = _prepare(out.resolve(), baskets)
    _show_parties(console, baskets, len(rows))

    spec = load_job(federation.folder / "coordinator" / "job.toml")
    with signals_interrupt():
        result, seconds = run_interruptibly(_mine(federation, spec, console))
    result.save(federation.folder / "result")
    console.print(f"… ran the job among them over gRPC with mutual TLS in {seconds:.2f} s, and stopped them.\n")

    _show_itemsets(console, result)
    _show_rules(console, result)
    _compare(console, result, baskets, rows)
    _show_disclosure(console, result)
    _show_costs(console, result)
    console.print(f"\nReport: {out / 'result' / 'report.html'}, tables and receipts beside it", soft_wrap=True)
    console.print(f"To repeat it by hand: {out / _NOTE}", soft_wrap=True)
    console.print(f"Done in {time.monotonic() - began:.1f} s.")


async def _mine(federation: LoopbackFederation, spec: JobSpec, console: Console) -> tuple[Result, float]:
    with federation.running():
        console.print("\nStarted three nodes, each with its own data, key and port …")
        await federation.ready()
        began = time.monotonic()
        result = await run_job(spec, federation.identity(), federation.addresses)
        return result, time.monotonic() - began


def _make_room(out: Path) -> None:
    note = out / _NOTE
    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            if not (note.is_file() and note.read_text(encoding="utf-8").startswith(_NOTE_BEGINS)):
                raise ConfigurationError(f"{out} holds something other than an earlier demo; name another --out folder")
            shutil.rmtree(out)
        out.mkdir(parents=True, exist_ok=True)
        note.write_text(_NOTE_TEXT, encoding="utf-8")
    except OSError as error:
        raise ResourceError(f"{out} cannot be written ({error.strerror}); name another --out folder") from None


def _prepare(folder: Path, baskets: Mapping[str, Sequence[Basket]]) -> LoopbackFederation:
    sources = {}
    for name, own in baskets.items():
        (folder / name).mkdir()
        (folder / name / "policies.txt").write_text(as_file(own), encoding="utf-8")
        sources[name] = Path("policies.txt")
    public = {name: measured(Transactions.from_rows(own)) for name, own in baskets.items()}
    federation = LoopbackFederation.prepare(
        folder, DATASET, sources, written=dict.fromkeys(sources, BASKETS), public=public
    )
    (folder / "coordinator" / "job.toml").write_text(JOB, encoding="utf-8")
    return federation


def _show_parties(console: Console, baskets: Mapping[str, Sequence[Basket]], total: int) -> None:
    console.print("[bold]Which insurance policies go together?[/bold]")
    console.print(
        f"{total:,} households of a Dutch insurer (Caravan), dealt to three insurers by type of customer. "
        "None may hand over its customers' rows.\n"
    )
    table = Table("insurer", "customers")
    table.add_column("households", justify="right")
    for insurer in INSURERS:
        table.add_row(insurer.name, insurer.customers, f"{len(baskets[insurer.name]):,}")
    console.print(table)


def _show_itemsets(console: Console, result: Result) -> None:
    found = most_useful(result.tables["itemsets"]).to_pylist()
    several = [row for row in found if row["length"] > 1]
    table = _table(f"{len(found)} frequent itemsets; those of several items:", "itemset")
    table.add_column("households", justify="right")
    table.add_column("support", justify="right")
    for row in several[:_SHOWN]:
        table.add_row(_set(row["itemset"]), f"{row['count']:,}", f"{row['support']:.3f}")
    console.print(table)
    console.print()


def _show_rules(console: Console, result: Result) -> None:
    found = most_useful(result.tables["rules"]).to_pylist()
    table = _table(f"{len(found)} rules; those of highest lift:", "who has", "also has")
    table.add_column("confidence", justify="right")
    table.add_column("lift", justify="right")
    for row in found[:_SHOWN]:
        table.add_row(
            _set(row["antecedent"]), _set(row["consequent"]), f"{row['confidence']:.3f}", f"{row['lift']:.1f}"
        )
    console.print(table)


def _compare(console: Console, result: Result, baskets: Mapping[str, Sequence[Basket]], rows: Sequence[Basket]) -> None:
    joint = found_in(result)
    if joint != pooled(rows) or result.n_rows != len(rows):
        raise InternalError("the joint result differs from mining the pooled rows; please report this")
    console.print(
        "\n[green]✓[/green] Equal to mining the pooled rows, by a plain count that shares no code with the miners: "
        f"{len(joint.itemsets)} itemsets and {len(joint.rules)} rules with all their counts."
    )
    gaps = alone(baskets, joint.itemsets)
    sentences = [
        f"{name} misses {missed} of them and finds {added} that do not hold overall"
        for name, (missed, added) in gaps.items()
    ]
    console.print(f"Alone, {'; '.join(sentences)}.\n")


def _show_disclosure(console: Console, result: Result) -> None:
    console.print("[bold]Who learnt what[/bold] (enforced while the job ran; the whole statement is in result.json)")
    for line in summary(result.spec).lines(width=text_width()):
        console.print(line, markup=False, soft_wrap=True)
    console.print()


def _show_costs(console: Console, result: Result) -> None:
    table = _table("Costs", "party")
    for head in ("sent", "received", "rounds", "seconds", "transcript equals that of"):
        table.add_column(head, justify="right")
    for name, costs in result.parties.items():
        table.add_row(
            name,
            f"{costs.bytes_sent / 1000:,.1f} kB",
            f"{costs.bytes_received / 1000:,.1f} kB",
            str(costs.rounds),
            f"{costs.seconds:.2f}",
            ", ".join(result.receipts[name].agrees_with),
        )
    console.print(table)


def _table(title: str, *heads: str) -> Table:
    return Table(*heads, title=title, title_justify="left", title_style="bold")


def _set(items: Iterable[str]) -> str:
    return ", ".join(items)
