"""`comine frequency submit|loadtest`: reports of clients, real and simulated, to collections."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli.options import HERE, AsJson, FederationFile
from coordinator.cli.services.collections import Name, Node

if TYPE_CHECKING:
    from client.fleet import FleetDelivery

Certificate = Annotated[
    Path, typer.Option("--certificate", metavar="FILE", help="Of the client that sends: role client.")
]
Key = Annotated[Path | None, typer.Option("--key", metavar="FILE", help="Its key; by default beside the certificate.")]
Authority = Annotated[
    Path | None, typer.Option("--ca", metavar="FILE", help="The authority's; by default ca.crt beside the certificate.")
]
Values = Annotated[Path, typer.Option("--input", metavar="FILE", help="The values, one a line.")]
ClientFolder = Annotated[
    Path | None, typer.Option("--client-folder", metavar="DIR", help="Of the device whose one value it is.")
]
ForMany = Annotated[bool, typer.Option("--gateway", help="Send each line for a new client of a gateway.")]


def add_commands(app: typer.Typer) -> None:
    """Adds the commands to `comine frequency`."""
    for command in (submit, loadtest):
        app.command()(command)


def submit(
    name: Name,
    certificate: Certificate,
    values: Values,
    client_folder: ClientFolder = None,
    gateway: ForMany = False,
    ids: Annotated[
        bool, typer.Option("--ids", help="Lines are ID, tab, VALUE: a client sent again is counted once in a round.")
    ] = False,
    secret: Annotated[
        Path | None,
        typer.Option(
            "--secret",
            metavar="FILE",
            help="With --ids: the gateway's secret, made where it is missing; by default beside the certificate.",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget", metavar="EPSILON", help="With --ids: what a client may spend within 30 days, by default 8."
        ),
    ] = None,
    key: Key = None,
    ca: Authority = None,
    federation: FederationFile = HERE,
    node: Node = None,
    as_json: AsJson = False,
) -> None:
    """Perturb values and report them: one as a device, or many as a gateway."""
    from dataclasses import asdict

    from coordinator.cli.terminal.console import note, write_json
    from coordinator.frequency.submit import (
        check_taken,
        check_unchanged,
        connection_to,
        files_of,
        ledger_as_data,
        ledger_sentence,
        submit_as_device,
        submit_as_gateway,
    )
    from coordinator.member import read_federation
    from link.errors import UsageError

    check_sender(client_folder, gateway=gateway)
    if (ids and not gateway) or (not ids and (secret, budget) != (None, None)):
        raise UsageError("--ids goes with --gateway, and --secret and --budget with --ids")
    if ids and secret is None:
        secret = certificate.with_suffix(".secret")
    addresses = read_federation(federation).addresses
    given = values_given(values, gateway=gateway)
    with connection_to(files_of(certificate, key, ca), addresses, name, node) as connection:
        if client_folder is None:
            with _receipts(len(given)) as tell:
                sent = submit_as_gateway(connection, name, given, secret, budget, tell)
            contents, acknowledged = asdict(sent), sent.acknowledged
            note(f"{sent.acknowledged:,} of {len(given):,} reports were counted{_others(sent)}")
            refused, of, sentences, changed = sent.refused, len(given), sent.sentences, sent.changed
        else:
            outcome, delivery, ledger = submit_as_device(connection, name, client_folder, given[0])
            contents = {"report": outcome.status.value, "sentence": outcome.sentence, **asdict(delivery)}
            if ledger is not None:
                contents["ledger"] = ledger_as_data(ledger)
            acknowledged = delivery.counted + delivery.duplicate
            note(outcome.sentence)
            if ledger is not None:
                note(ledger_sentence(ledger))
            note(f"{acknowledged} of the reports in its outbox are counted, {delivery.waiting} wait")
            refused, sentences, changed = delivery.refused, delivery.sentences, 0
            of = refused + acknowledged + delivery.late + delivery.waiting
        party = connection.party
    if as_json:
        write_json({"schema": "comine.frequency-submission/1", "acknowledged": acknowledged, **contents})
    check_taken(party, refused, of, sentences)
    for sentence in sentences:
        note(sentence)
    check_unchanged(changed)


def check_sender(client_folder: Path | None, *, gateway: bool) -> None:
    """Refuses a command line that names no sender, or two."""
    from link.errors import UsageError

    if gateway == (client_folder is not None):
        raise UsageError("name the device's folder with --client-folder, or send for many with --gateway")


def values_given(values: Path, *, gateway: bool) -> list[str]:
    """The lines of a file to be reported: of a gateway's clients, or the one of a device.

    Raises:
        InputDataError: The file cannot be read, or a device is given several values.
    """
    from coordinator.frequency.values import lines
    from link.errors import InputDataError

    given = lines(values)
    if not gateway and len(given) != 1:
        raise InputDataError(
            f"{values} has {len(given):,} lines, and a device has one value; send for many with --gateway"
        )
    return given


def loadtest(
    collection: Annotated[
        str, typer.Argument(metavar="COLLECTION", help="Its file, from which it is created, or the name of one.")
    ],
    certificate: Certificate,
    reports: Annotated[int, typer.Option("--reports", help="By as many simulated clients.", show_default=True)] = 10**6,
    batch: Annotated[int, typer.Option("--batch", help="Reports of a message.", show_default=True)] = 8192,
    connections: Annotated[int, typer.Option("--connections", help="Each from a process.", show_default=True)] = 1,
    key: Key = None,
    ca: Authority = None,
    federation: FederationFile = HERE,
    node: Node = None,
    as_json: AsJson = False,
) -> None:
    """Send the reports of simulated clients as fast as they are taken, ask for estimates meanwhile, and measure."""
    import asyncio

    from client.connection import Connection
    from coordinator.cli.terminal.console import note, write_json, write_table
    from coordinator.frequency.load import Gateway, Load, Measured, as_data, figures, load_test
    from coordinator.frequency.service import collection_of, node_of
    from coordinator.frequency.submit import check_taken, files_of
    from coordinator.member import load_federation
    from jobs.collections.spec import CollectionSpec

    load = Load(reports, batch, connections)
    known, identity = load_federation(federation)
    files = files_of(certificate, key, ca)
    for party, address in known.addresses.items():
        Connection.open(party, address, **files._asdict()).close()  # refuses wrong files before anything is created
    path = Path(collection)

    async def created() -> str:
        spec, labels = CollectionSpec.load(path)
        async with node_of(identity, known.addresses, node or spec.collection.node) as at:
            await at.create(spec, labels)
        return spec.name

    async def measured() -> tuple[str, Measured]:
        name = await created() if path.suffix == ".toml" else collection
        async with collection_of(identity, known.addresses, name, node) as found:
            at = found.node.party
            note(f"sending {reports:,} reports to '{name}' at {at}")
            return name, await load_test(*found, Gateway(at, known.addresses[at], *files), load)

    name, result = asyncio.run(measured())
    if as_json:
        write_json(as_data(result, name, load))
    else:
        write_table(["figure", "value"], figures(result), f"{name}: {reports:,} reports")
    check_taken(result.node, result.refused, reports, result.sentences)


def _others(sent: FleetDelivery) -> str:
    """What became of those that were not counted, but for refused ones."""
    if sent.round is None:
        return "; the collection has no round now"
    others = {
        "came too late": sent.late,
        "came too early": sent.early,
        "were kept out by their own coins": sent.not_selected,
        "had no budget left": sent.over_budget,
    }
    return "".join(f"; {number:,} {what}" for what, number in others.items() if number)


@contextmanager
def _receipts(total: int) -> Iterator[Callable[[int], None]]:
    """Shows how many reports have a receipt, where standard error is a terminal."""
    import sys

    if not sys.stderr.isatty():
        yield lambda _done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reports", total=total)
        yield lambda done: progress.update(task, completed=done)
