"""`comine job new`: a commented job file, checked against what the parties say of themselves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli.options import HERE, FederationFile
from coordinator.cli.terminal.completion import privacy_models, words

if TYPE_CHECKING:
    from coordinator.jobs.descriptions import Asked

_EXAMPLES = ("north", "south", "east")


def new(
    task: Annotated[
        str,
        typer.Option(
            "--task",
            help="itemsets, rules, align, naive-bayes, decision-tree, k-means, anonymize, or an added one.",
            autocompletion=words("itemsets", "rules", "align", "naive-bayes", "decision-tree", "k-means", "anonymize"),
        ),
    ],
    partition: Annotated[
        str | None,
        typer.Option(
            "--partition",
            help="horizontal, vertical or hybrid; by default the first that the task has.",
            autocompletion=words("horizontal", "vertical", "hybrid"),
        ),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            help="Privacy model: exact, distributed, local, shuffle or blended.",
            autocompletion=privacy_models,
        ),
    ] = "exact",
    party: Annotated[
        list[str] | None, typer.Option("--party", help="A party; once for each. By default all of the federation.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="Name of the data; by default one that all parties have.")
    ] = None,
    federation: FederationFile = HERE,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The job file to write.")] = Path("job.toml"),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a commented job file for a task, and check it against what the parties that can be reached say."""
    from coordinator.cli.new_files import write_new
    from coordinator.cli.terminal.console import note
    from coordinator.jobs.descriptions import common_dataset, misfits
    from jobs.federation import Federation
    from jobs.kinds.registry import kind_at
    from jobs.loading import load_job
    from jobs.new_job import key_of, render
    from link.errors import ConfigurationError, IdentityError

    key = key_of(task, partition, model)
    known = Federation.load(federation) if federation.exists() or federation != HERE else None
    parties = tuple(party or (_EXAMPLES if known is None else known.addresses))
    asked, why = None, "that takes --federation FILE"
    if known is not None:
        try:
            asked = _asked(federation, parties)
        except (ConfigurationError, IdentityError) as error:
            why = error.message
    kind = kind_at(key).data
    usual = "baskets" if kind == "transactions" else "people"
    name = dataset or (common_dataset(asked.descriptions, kind) if asked else None) or usual
    text, _ = render(key, parties, name)
    write_new(out, text, force=force)
    note(f"created {out}")
    try:
        load_job(out)
    except ConfigurationError as error:
        note(f"to complete: {error.message}")
    if asked is None:
        note(f"no party was asked whether the job fits: {why}")
    else:
        for who, reason in asked.silent.items():
            note(f"not checked: {who}: {reason.removeprefix(who).lstrip()}")
        for who, said in asked.descriptions.items():
            found = misfits(who, said, task=key.task, parties=parties, dataset=name, kind=kind)
            for sentence in found or [f"fits {who}, by what it says of itself; its policy decides on the whole job"]:
                note(sentence)
    note(f"next: read it, put in what you want to know, and then: comine job plan {out}")


def _asked(federation: Path, parties: tuple[str, ...]) -> Asked:
    import asyncio

    from coordinator.jobs.descriptions import ask
    from coordinator.member import load_federation

    known, identity = load_federation(federation)
    return asyncio.run(ask(identity, known.select(parties)))
