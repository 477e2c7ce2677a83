"""`comine anonymize …`: tables that may be handed on, and what is left of the risk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli.hide_rules import hide_rules
from coordinator.cli.options import HERE, AsJson, FederationFile

if TYPE_CHECKING:
    from decimal import Decimal

    from anonymize.certificate import Certificate
    from jobs.anonymization.risk_document import RiskDocument

app = typer.Typer(help="Tables and transactions that may be handed on.", no_args_is_help=True)

Config = Annotated[Path, typer.Argument(metavar="CONFIG", help="What to anonymise and how, such as anonymize.toml.")]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the result.")]
Node = Annotated[
    str | None, typer.Option("--node", metavar="PARTY", help="Have it made at this party's node, of its dataset.")
]


@app.callback()
def anonymize() -> None:
    """Tables and transactions that may be handed on."""


@app.command()
def run(
    config: Config,
    out: Out,
    node: Node = None,
    dataset: Annotated[
        str | None,
        typer.Option("--dataset", metavar="NAME", help="With --node: its dataset; by default what source names."),
    ] = None,
    federation: FederationFile = HERE,
    as_json: AsJson = False,
) -> None:
    """Anonymise a table, here or at a node: the rows, a certificate that others can check, and a report."""
    from jobs.anonymization.folder import holds_earlier
    from jobs.results.destination import check_result_folder
    from link.errors import UsageError

    if node is None and dataset is not None:
        raise UsageError("--dataset names a dataset of a node; name the node with --node")
    check_result_folder(out, holds_earlier)
    if node is None:
        _run_here(config, out, as_json=as_json)
    else:
        _run_at(node, config, out, dataset, federation, as_json=as_json)


def _run_here(config: Path, out: Path, *, as_json: bool) -> None:
    from anonymize.verifier import LABELS, MOMENTS
    from coordinator.cli.terminal.console import note
    from jobs.anonymization.folder import REPORT, write_folder
    from jobs.anonymization.in_blocks import anonymize_in_blocks, lies_in_blocks
    from jobs.anonymization.inputs import load
    from jobs.anonymization.running import run as run_algorithm
    from jobs.anonymization.spec import RANDOM, read_spec

    if lies_in_blocks(read_spec(config), config.resolve().parent):
        found, certificate = anonymize_in_blocks(config, out)
        inputs, warnings = found.inputs, found.warnings
    else:
        inputs = load(config)
        certificate, warnings = write_folder(out, inputs, run_algorithm(inputs)), inputs.warnings
    _show(certificate, as_json=as_json)
    for warning in warnings:
        note(warning)
    if inputs.table.dropped:
        note(f"{inputs.table.dropped:,} rows that lack values were left out")
    if inputs.spec.seed is not None and inputs.spec.algorithm in RANDOM:
        note(
            "the random draws come from a seed: anyone who knows or guesses it can repeat them; leave it out to publish"
        )
    report = "report.html shows figures of the original and is not for publication"
    note(f"written to {out}; {report if (out / REPORT).exists() else 'rows in blocks have no report.html'}")
    if (out / MOMENTS).exists():
        note(f"{MOMENTS} is not for publication either: records can be worked out from the sums of few")
    if (out / LABELS).exists():
        note(f"{LABELS} is not for publication either: it shows which values occur; verify --original reads it")


def _run_at(node: str, config: Path, out: Path, dataset: str | None, federation: Path, *, as_json: bool) -> None:
    from coordinator.anonymisation.releases import ReleasingNode, request_of
    from coordinator.cli.terminal.console import note
    from coordinator.frequency.service import address_of
    from coordinator.interrupt import run_interruptibly
    from coordinator.member import load_federation
    from jobs.anonymization.folder import REPORT
    from jobs.anonymization.spec import read_spec

    request = request_of(read_spec(config), config.resolve().parent, dataset)
    known, identity = load_federation(federation)

    async def fetched() -> Certificate:
        async with ReleasingNode(identity, node, address_of(known.addresses, node)) as at:
            return await at.fetch(request, out)

    _show(run_interruptibly(fetched()), as_json=as_json)
    note(f"written to {out}: a release of '{request.dataset}' by {node}, which holds what its certificate claims")
    if (out / REPORT).exists():
        note("report.html shows figures of the original and is not for publication")


def _show(certificate: Certificate, *, as_json: bool) -> None:
    from coordinator.cli.terminal.console import write_json, write_table

    if as_json:
        write_json(certificate.model_dump(mode="json", by_alias=True))
        return
    figures: dict[str, object] = {"algorithm": certificate.algorithm, "rows": certificate.rows}
    figures |= {"published": certificate.published, "suppressed": certificate.suppressed}
    if certificate.classes is not None:
        figures["classes"] = certificate.classes
    if certificate.node is not None:
        figures["node"] = ", ".join(f"{name} {level}" for name, level in certificate.node.items())
    figures |= {
        name: value if isinstance(value, int) else f"{value:.6g}" for name, value in certificate.metrics.items()
    }
    write_table(("figure", "value"), [(name, str(value)) for name, value in figures.items()])


@app.command()
def datasets(
    node: Annotated[str, typer.Option("--node", metavar="PARTY", help="Whose node.")],
    federation: FederationFile = HERE,
    as_json: AsJson = False,
) -> None:
    """List the datasets of a node of which releases may be asked for: columns and rules, and nothing of the rows."""
    import asyncio

    from coordinator.anonymisation.releases import HEADS, ReleasingNode, listing, listing_as_data, rules_of
    from coordinator.cli.terminal.console import note, write_json, write_table
    from coordinator.frequency.service import address_of
    from coordinator.member import load_federation
    from protos.v1.anonymization_pb2 import OpenDataset

    known, identity = load_federation(federation)

    async def listed() -> list[OpenDataset]:
        async with ReleasingNode(identity, node, address_of(known.addresses, node)) as at:
            return await at.datasets()

    found = asyncio.run(listed())
    if as_json:
        write_json(listing_as_data(node, found))
        return
    write_table(HEADS, listing(found))
    for each in found:
        note(rules_of(each))
    if not found:
        note(f"{node} lets no release leave for this coordinator")


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder with certificate.json and the release.")],
    original: Annotated[
        Path | None, typer.Option("--original", metavar="FILE", help="The file that was anonymised.")
    ] = None,
    separator: Annotated[
        str, typer.Option("--separator", help="Of the original's cells, if it is CSV.", show_default=True)
    ] = ",",
    as_json: AsJson = False,
) -> None:
    """Check a release against its certificate, with code that shares nothing with what made it."""
    from anonymize.verification.identifying import INSENSITIVE
    from coordinator.cli.terminal.console import note, write_json, write_table
    from jobs.anonymization.verifying import verify as check
    from link.errors import InputDataError, UsageError
    from link.files.printable import one_line

    if len(separator) != 1:
        raise UsageError("--separator must be one character")
    if not folder.is_dir():
        raise InputDataError(f"there is no folder {folder}")
    found = check(folder, original, separator)
    if as_json:
        write_json(found.document())
    else:
        words = {True: "yes", False: "NO", None: "not checked"}
        cells = [(each.check, words[each.ok], each.expected, each.found) for each in found.findings]
        rows = [tuple(map(one_line, row)) for row in cells]  # published cells may hold tabs and ends of lines
        write_table(("check", "holds", "claimed", "found"), rows)
    if not found.ok:
        first = found.failures[0]
        raise InputDataError(
            f"{folder} does not hold what its certificate claims: {len(found.failures)} of {len(found.findings)} "
            f"checks fail, the first is {first.check} (claimed: {first.expected}; found: {first.found})"
        )
    for each in found.findings:
        if each.check.startswith(INSENSITIVE):
            note(one_line(f"{each.check}: {each.found}; anyone who knows it of a person finds the row, whatever k is"))
    note(f"all {len(found.findings) - len(found.unchecked)} checks hold, {len(found.unchecked)} could not be made")


@app.command()
def risk(
    release: Annotated[Path, typer.Argument(metavar="DIR|FILE", help="A folder of run, or a published table.")],
    config: Annotated[
        Path, typer.Option("--config", metavar="CONFIG", help="The configuration: original, roles, hierarchies.")
    ],
    attacker: Annotated[
        Path | None,
        typer.Option(
            "--attacker", metavar="FILE", help="People in the clear whom an attacker knows; else the original."
        ),
    ] = None,
    population: Annotated[
        Path | None, typer.Option("--population", metavar="FILE", help="Everybody whose row may be in the table.")
    ] = None,
    threshold: Annotated[
        float, typer.Option("--threshold", help="Risk above which rows count as exposed.", show_default=True)
    ] = 0.2,
    separator: Annotated[
        str, typer.Option("--separator", help="Of a published table that is a CSV file.", show_default=True)
    ] = ",",
    as_json: AsJson = False,
) -> None:
    """Attack a release: prosecutor, journalist and marketer risk, linkage with an attacker's table and by distance."""
    from coordinator.cli.terminal.console import note, write_json, write_table
    from jobs.anonymization.assessment import assess, read_release
    from jobs.anonymization.inputs import load
    from link.errors import UsageError

    if len(separator) != 1:
        raise UsageError("--separator must be one character")
    if not 0 < threshold <= 1:
        raise UsageError("--threshold must be above 0 and at most 1")
    inputs = load(config)
    published, certificate = read_release(release, separator)
    found = assess(published, certificate, inputs, attacker=attacker, population=population, threshold=threshold)
    if as_json:
        write_json(found.model_dump(mode="json", by_alias=True))
    else:
        write_table(("measure", "value"), list(_measures(found)))
    for reason in found.notes:
        note(reason)


def _measures(found: RiskDocument) -> Iterator[tuple[str, str]]:
    """The figures of a risk document, each with its place in it."""

    def below(name: str, value: object) -> Iterator[tuple[str, str]]:
        if isinstance(value, dict):
            for key, each in value.items():
                yield from below(f"{name} {key}".strip(), each)
        elif isinstance(value, float):
            yield name, f"{value:.6g}"
        elif isinstance(value, list):
            yield name, ", ".join(map(str, value))
        elif value is not None:
            yield name, str(value)

    yield from below("", found.model_dump(exclude={"schema_", "software", "notes"}))


@app.command()
def explore(
    config: Config,
    out: Out,
    k: Annotated[str | None, typer.Option("--k", metavar="K,…", help="Values of k, such as 2,5,10.")] = None,
    diversity: Annotated[
        str | None, typer.Option("--l", metavar="L,…", help="Values of l, of all columns that have it.")
    ] = None,
    closeness: Annotated[
        str | None, typer.Option("--t", metavar="T,…", help="Values of t, of all columns that have it.")
    ] = None,
    max_suppression: Annotated[
        str | None, typer.Option("--max-suppression", metavar="S,…", help="Shares of rows, such as 0,0.02.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a configuration with other parameters: privacy against utility, and which runs no other one beats."""
    from coordinator.cli.terminal.console import note, write_json, write_table
    from jobs.anonymization.exploring import document, holds_earlier, write_folder
    from jobs.anonymization.exploring import explore as run_all
    from jobs.anonymization.inputs import load
    from jobs.results.destination import check_result_folder
    from link.errors import UsageError

    given = (("k", k), ("l", diversity), ("t", closeness), ("max_suppression", max_suppression))
    values = {name: _numbers(name, text) for name, text in given if text is not None}
    if not values:
        raise UsageError("name what to vary: --k, --l, --t or --max-suppression")
    check_result_folder(out, holds_earlier)
    inputs = load(config)
    explored = document(inputs, run_all(inputs, values))
    write_folder(out, explored)
    if as_json:
        write_json(explored.model_dump(mode="json", by_alias=True))
    else:
        heads = (*values, "risk", "loss", "classes", "suppressed", "frontier")
        rows = [
            (
                *(f"{value:g}" for value in each.parameters.values()),
                *(f"{each.risk:.6g}", f"{each.loss:.6g}", str(each.classes), str(each.suppressed)),
                "yes" if each.pareto else "",
            )
            for each in explored.points
        ]
        write_table(heads, rows)
    for refusal in explored.refused:
        named = ", ".join(f"{name} = {value:g}" for name, value in refusal.parameters.items())
        note(f"refused: {named}: {refusal.reason}")
    note(f"written to {out}")


def _numbers(name: str, text: str) -> list[int | Decimal]:
    """The values of an option, in the order given and each once.

    Raises:
        UsageError: One is no number, or out of range.
    """
    from decimal import Decimal, InvalidOperation

    from link.errors import UsageError

    found: dict[int | Decimal, None] = {}
    for part in text.split(","):
        try:
            number = Decimal(part.strip())
            whole = name == "k"
            value: int | Decimal = int(number) if whole else number
            if not number.is_finite() or value != number:
                raise ValueError
        except (InvalidOperation, ValueError, OverflowError):
            raise UsageError(
                f"--{name.replace('_', '-')} is a list of {'whole ' if name == 'k' else ''}numbers with commas between "
                f"them; '{part}' is none"
            ) from None
        least, most = {"k": (1, None), "l": (1, None), "t": (0, None), "max_suppression": (0, 1)}[name]
        if value < least or (most is not None and value > most):
            limit = f"at least {least}" if most is None else f"between {least} and {most}"
            raise UsageError(f"--{name.replace('_', '-')} must be {limit}; '{part}' is not")
        found[value] = None
    return list(found)


app.command("hide-rules")(hide_rules)
