"""`comine job plan`: what a job will cost and disclose."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli.options import HERE, AsJson, FederationFile
from link.files.printable import text_width
from link.files.quantities import size

if TYPE_CHECKING:
    from jobs.plan import Plan
    from jobs.plan.plan import Alternative


def plan(
    job_toml: Annotated[Path, typer.Argument(metavar="JOB", help="The job file.")],
    federation: FederationFile = HERE,
    detail: Annotated[bool, typer.Option("--detail", help="The whole statement, all figures, and other ways.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say what a job will cost each party and who will learn what; no data is moved and nobody is asked to agree."""
    from coordinator.cli.terminal.console import write_json
    from coordinator.interrupt import run_interruptibly
    from coordinator.jobs.planner import plan_job
    from coordinator.jobs.records.store import Store
    from coordinator.member import load_federation
    from jobs.loading import load_job

    spec = load_job(job_toml)
    known, identity = load_federation(federation)
    found = run_interruptibly(plan_job(spec, identity, known.select(spec.job.parties)))
    Store.of(known).save_plan(spec.digest, found.as_data())
    if as_json:
        write_json(found.as_data())
    else:
        show_plan(found, detail=detail)


def show_plan(plan: Plan, *, detail: bool) -> None:
    """Writes a plan for people: its summary, and where asked the figures per party, who learns what, and other ways."""
    from coordinator.cli.terminal.console import write, write_sentence, write_table
    from jobs.plan.cost import cost

    if plan.summary is not None:
        write("".join(f"{line}\n" for line in plan.summary.lines(plan.coordinator, cost(plan), text_width())))
    if plan.warning is not None:
        write("\n")
        write_sentence(plan.warning)
    if not detail:
        write("\nall else: --detail\n")
        return
    write("\n")
    write_table(*costs(plan), f"What '{plan.job}' is expected to cost")
    batches = [batch for batch in plan.batches if batch.candidates]
    took = plan.strategy if plan.n_rows is not None else f"{plan.strategy} (as the job has it)"
    course = "".join(
        f"; {batch.candidates:,} candidates at {batch.step}, {batch.opened:,} sums opened" for batch in batches
    )
    write("\n")
    write_sentence(f"{in_all(plan)}; strategy {took}{course}.")
    for title, sentences in sections(plan).items():
        write(f"\n{title}\n")
        for sentence in sentences:
            write_sentence(sentence, "  - ")
    show_engines(plan)
    show_alternatives(plan)


def costs(plan: Plan) -> tuple[list[str], list[list[str]]]:
    """What is expected of each party: the heads of the columns, and a row for each."""
    heads = ["party", "rows", "sends", "between", "receives", "seconds", "memory"]
    rows = []
    for name, party in plan.parties.items():
        n_rows = "hidden" if party.n_rows is None else f"≈ {party.n_rows:,}"
        least = size(party.bytes_sent if party.bytes_sent_at_least is None else party.bytes_sent_at_least)
        most = "any" if party.bytes_sent_at_most is None else size(party.bytes_sent_at_most)
        figures = [size(party.bytes_sent), f"{least} and {most}", size(party.bytes_received), f"{party.seconds:.2f}"]
        rows.append([name, n_rows, *figures, size(party.memory_bytes)])
    return heads, rows


def sections(plan: Plan) -> dict[str, list[str]]:
    """What a plan says in sentences, under their titles."""
    from jobs.statement import openings

    sentences = {
        "Who learns what": plan.prose,
        "What the nodes may open": openings(plan.disclosure),
        "What it costs each record": cost_of_records(plan),
        "To be thought of": plan.advice,
        "The figures rest on this": plan.assumptions,
    }
    return {title: lines for title, lines in sentences.items() if lines}


def in_all(plan: Plan) -> str:
    """Bytes, rounds and seconds of all parties: what is expected, or between what it is."""
    rounds, seconds, most = plan.rounds_at_most, plan.seconds_at_most, plan.bytes_sent_at_most
    if plan.is_least and rounds is not None and seconds is not None and most is not None:
        return (
            f"In all between {size(plan.bytes_sent)} and {size(most)} in {plan.rounds:,} to {rounds:,} rounds, and "
            f"{plan.seconds:.2f} to {seconds:,.2f} s"
        )
    if plan.is_least:
        return f"In all at least {size(plan.bytes_sent)}, {plan.rounds} rounds and {plan.seconds:.2f} s"
    found = f"In all likely {size(plan.bytes_sent)} in {plan.rounds} rounds and {plan.seconds:.2f} s"
    if most is None or rounds is None or seconds is None:
        return found
    return (
        f"{found}; between {size(plan.bytes_sent_at_least)} in {plan.rounds_at_least} rounds and "
        f"{plan.seconds_at_least:.2f} s and {size(most)} in {rounds:,} rounds and {seconds:,.2f} s"
    )


def cost_of_records(plan: Plan) -> list[str]:
    """What a job under a privacy model spends, is charged, and leaves at each party that publishes it."""
    if plan.privacy is None:
        return []
    lines = plan.privacy.prose()
    for name, party in plan.parties.items():
        if party.left is not None:
            left = [f"{key.replace('_', ' ')} {rest}" for key, rest in party.left.model_dump().items() if rest]
            lines.append(f"{name} has {', '.join(left)} left before the job.")
    return lines


def show_engines(plan: Plan) -> None:
    """Writes the engines of a vertical job beside one another, and why it takes the one that it takes."""
    from coordinator.cli.terminal.console import write, write_sentence, write_table

    if not plan.engines:
        return
    write("\n")
    heads = ["engine", "seconds", "bytes", "rounds", "memory", "whom to trust"]
    rows = []
    for each in plan.engines:
        name = f"{each.engine}{' (taken)' * each.chosen}{' (not allowed)' * (not each.allowed)}"
        figures = ["not estimated", "", "", ""]
        if each.seconds is not None and each.bytes_sent is not None and each.memory_bytes is not None:
            figures = [f"{each.seconds:.2f}", size(each.bytes_sent), str(each.rounds), size(each.memory_bytes)]
        rows.append([name, *figures, each.trust])
    write_table(heads, rows, "Engines compared")
    write("\n")
    write_sentence(plan.engine_reason or "")
    for each in plan.engines:
        if each.change:
            write(f"For {each.engine}: set {', '.join(each.change)}\n")


def show_alternatives(plan: Plan) -> None:
    """Writes the other ways to do the job: their costs, and what their statements say instead."""
    from coordinator.cli.terminal.console import write, write_sentence, write_table

    if not plan.alternatives:
        return
    write("\n")
    as_written = ["as written", plan.strategy, f"{plan.seconds:.2f}", size(plan.bytes_sent), str(plan.rounds)]
    rows = [[each.name, *_costs(each)] for each in plan.alternatives]
    write_table(["alternative", "strategy", "seconds", "bytes", "rounds"], [as_written, *rows], "Other ways to do it")
    for each in plan.alternatives:
        write("\n")
        write_sentence(f"{each.name}: set {', '.join(each.change)}")
        write_sentence(each.in_short, "  ")


def _costs(alternative: Alternative) -> list[str]:
    if alternative.seconds is None or alternative.bytes_sent is None:
        return ["not estimated", "", "", ""]
    figures = [f"{alternative.seconds:.2f}", size(alternative.bytes_sent), str(alternative.rounds)]
    return [alternative.strategy or "", *figures]
