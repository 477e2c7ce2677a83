"""`comine shuffle …`: reports to the frequency service through shufflers."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli.options import HERE, AsJson, FederationFile
from coordinator.cli.services.collections import Node
from coordinator.cli.services.reports import (
    Authority,
    Certificate,
    ClientFolder,
    ForMany,
    Key,
    Values,
    check_sender,
    values_given,
)

if TYPE_CHECKING:
    from coordinator.shuffle.collect import Counted
    from coordinator.shuffle.routes import RouteStatus
    from jobs.collections.route import RouteSection
    from jobs.collections.spec import CollectionSpec
    from link.pki.identity import Identity

app = typer.Typer(help="Reports through shufflers, so that nobody knows whose they are.", no_args_is_help=True)

RouteName = Annotated[str, typer.Argument(metavar="ROUTE", help="The route's name.")]
Folder = Annotated[
    Path | None,
    typer.Option("--folder", metavar="DIR", help="With the collector's key; by default the route's name and .route."),
]


@app.callback()
def shuffle() -> None:
    """Reports through shufflers, so that nobody knows whose they are."""


@app.command()
def create(
    route_toml: Annotated[Path, typer.Argument(metavar="ROUTE.toml", help="The route's file.")],
    folder: Folder = None,
    federation: FederationFile = HERE,
    as_json: AsJson = False,
) -> None:
    """Create a route at all its shufflers, and the key by which this coordinator alone opens reports."""
    from coordinator.cli.terminal.console import note
    from coordinator.member import load_federation
    from coordinator.shuffle.routes import CollectorFolder, create_route
    from jobs.collections.route import RouteSpec

    spec = RouteSpec.load(route_toml)
    known, identity = load_federation(federation)
    size = _size(identity, known.addresses, spec.route)
    place = CollectorFolder(_folder(spec.route.name, folder))
    route = place.prepare(spec, size, f"coordinator/{identity.name}")
    _show(create_route(identity, known.addresses, route), as_json)
    note(f"keep {place.path}: without its key nobody opens the reports; they are sent with: comine shuffle submit")


@app.command()
def submit(
    route: RouteName,
    collection: Annotated[str, typer.Option("--collection", metavar="NAME", help="For which the reports are.")],
    certificate: Certificate,
    values: Values,
    client_folder: ClientFolder = None,
    gateway: ForMany = False,
    key: Key = None,
    ca: Authority = None,
    federation: FederationFile = HERE,
    node: Node = None,
    as_json: AsJson = False,
) -> None:
    """Perturb values, seal them in layers, and hand them to the first shuffler."""
    from dataclasses import asdict

    from coordinator.cli.terminal.console import note, write_json
    from coordinator.frequency.submit import (
        check_taken,
        connection_to,
        files_of,
        submit_as_device,
        submit_as_gateway,
    )
    from coordinator.member import read_federation
    from coordinator.shuffle.routes import nodes_of, route_status
    from coordinator.shuffle.submit import ShuffledConnection
    from link.pki.identity import Identity

    check_sender(client_folder, gateway=gateway)
    addresses = read_federation(federation).addresses
    given = values_given(values, gateway=gateway)
    files = files_of(certificate, key, ca)
    with ExitStack() as stack:
        found = stack.enter_context(connection_to(files, addresses, collection, node))
        identity = Identity.load(*files)
        status_now = route_status(identity, addresses, route)
        (first,) = stack.enter_context(nodes_of(identity, addresses, status_now.route.shufflers[:1]))
        # A folder of its own: what waits in it must never go to the node in the open.
        own = None if client_folder is None else client_folder / "shuffled" / route
        through = stack.enter_context(
            ShuffledConnection(identity, found.party, found.address, collection, status_now, first, own)
        )
        if own is None:
            sent = submit_as_gateway(through, collection, given, None, None, lambda _done: None)
            taken, refused, of, sentences, waiting = sent.acknowledged, sent.refused, len(given), sent.sentences, 0
            contents = asdict(sent)
        else:
            outcome, delivery, _ = submit_as_device(through, collection, own, given[0])
            note(outcome.sentence)
            taken, refused = delivery.counted + delivery.duplicate, delivery.refused
            sentences, waiting = delivery.sentences, delivery.waiting
            of = taken + refused + waiting
            contents = {"report": outcome.status.value, "sentence": outcome.sentence, **asdict(delivery)}
    note(f"{first.party} has taken {taken:,} of {of:,} reports for the route '{route}' to {status_now.route.collector}")
    if waiting:
        note(
            f"{waiting:,} wait until the batch has left, in which this certificate has its report; run this again then"
        )
    if as_json:
        write_json({"schema": "comine.shuffle-submission/1", "route": route, "taken": taken, **contents})
    check_taken(first.party, refused, of, sentences)


@app.command()
def status(route: RouteName, federation: FederationFile = HERE, as_json: AsJson = False) -> None:
    """Show how a route stands at each of its shufflers."""
    from coordinator.member import load_federation
    from coordinator.shuffle.routes import route_status

    known, identity = load_federation(federation)
    _show(route_status(identity, known.addresses, route), as_json)


@app.command()
def flush(route: RouteName, federation: FederationFile = HERE, as_json: AsJson = False) -> None:
    """Let the batch of the first shuffler leave now, if it has enough reports."""
    from coordinator.member import load_federation
    from coordinator.shuffle.routes import flush_route

    known, identity = load_federation(federation)
    _show(flush_route(identity, known.addresses, route), as_json)


@app.command()
def collect(
    route: RouteName,
    into: Annotated[str, typer.Option("--into", metavar="NAME", help="The collection that counts the reports.")],
    certificate: Annotated[
        Path, typer.Option("--certificate", metavar="FILE", help="Of a gateway of the collection: role client.")
    ],
    delta: Annotated[
        float, typer.Option("--delta", metavar="D", help="Of the guarantee of a batch.", show_default=True)
    ] = 1e-6,
    colluding: Annotated[
        float,
        typer.Option(
            "--colluding", metavar="SHARE", help="Of reports that may be made up and hide nobody.", show_default=True
        ),
    ] = 0.0,
    folder: Folder = None,
    key: Key = None,
    ca: Authority = None,
    federation: FederationFile = HERE,
    node: Node = None,
    as_json: AsJson = False,
) -> None:
    """Fetch batches from the last shuffler, check and open them, and have a collection count their reports."""
    from coordinator.cli.terminal.console import note, write_json, write_table
    from coordinator.frequency.submit import check_taken, connection_to, files_of
    from coordinator.member import load_federation
    from coordinator.shuffle.collect import Privacy, check_gateway
    from coordinator.shuffle.collect import collect as collected
    from coordinator.shuffle.routes import CollectorFolder, nodes_of
    from link.errors import ConfigurationError, UsageError
    from link.pki.identity import Identity

    if not (0 < delta < 1 and 0 <= colluding < 1):
        raise UsageError("--delta lies above 0 and below 1, and --colluding from 0 to below 1")
    known, identity = load_federation(federation)
    place = CollectorFolder(_folder(route, folder))
    known_route = place.route()
    if known_route is None:
        raise ConfigurationError(f"{place.path} holds no route; name the folder that create made with --folder")
    files = files_of(certificate, key, ca)
    done: list[Counted] = []
    with ExitStack() as stack:
        connection = stack.enter_context(connection_to(files, known.addresses, into, node))
        gateway = Identity.load(*files).name
        spec = _readable(identity, known.addresses[connection.party], connection.party, into)
        if spec is not None:
            check_gateway(spec, gateway, known_route.minimum)
        (last,) = stack.enter_context(nodes_of(identity, known.addresses, known_route.shufflers[-1:]))
        for batch in collected(last, connection, gateway, into, place, identity.trust, Privacy(delta, colluding)):
            note(f"batch {batch.batch}: {batch.counted:,} reports are counted in round {batch.round} of '{into}'")
            done.append(batch)
        party = connection.party
    if as_json:
        batches = [batch.as_data() for batch in done]
        write_json({"schema": "comine.shuffle-collection/1", "route": route, "delta": delta, "batches": batches})
    else:
        heads = [
            "batch",
            "received",
            "dropped",
            "counted",
            "late",
            "refused",
            "n",
            "ε of a report",
            f"ε at δ = {delta:g}",
        ]
        write_table(heads, [_row(batch) for batch in done])
    if not done:
        note(f"no batch waits at {last.party}")
    refused, of = sum(each.refused for each in done), sum(each.counted + each.late + each.refused for each in done)
    check_taken(party, refused, of, list(dict.fromkeys(why for each in done for why in each.sentences)))


@app.command()
def retire(route: RouteName, federation: FederationFile = HERE, as_json: AsJson = False) -> None:
    """Take no more reports at any shuffler, and have them forget their keys."""
    from coordinator.member import load_federation
    from coordinator.shuffle.routes import retire_route

    known, identity = load_federation(federation)
    _show(retire_route(identity, known.addresses, route), as_json)


def _folder(name: str, given: Path | None) -> Path:
    return Path(f"{name}.route") if given is None else given


def _size(identity: Identity, addresses: dict[str, str], section: RouteSection) -> int:
    """Bytes of a report: as the file says, or as the collection's mechanism needs."""
    import asyncio

    from coordinator.frequency.service import collection_of
    from coordinator.shuffle.submit import check_spec
    from jobs.collections.mechanism import mechanism_of_round

    if section.size is not None:
        return section.size
    name = section.collection or ""

    async def asked() -> int:
        async with collection_of(identity, addresses, name, section.node) as (node, collection):
            spec = node.spec(collection)
            check_spec(spec)
            return mechanism_of_round(spec, await node.domain(collection)).report_bytes

    return asyncio.run(asked())


def _readable(identity: Identity, address: str, party: str, name: str) -> CollectionSpec | None:
    """A collection's specification; None where this coordinator may not read it."""
    import asyncio

    from coordinator.frequency.service import node_of
    from link.errors import PolicyDenied

    async def asked() -> CollectionSpec | None:
        async with node_of(identity, {party: address}, party) as node:
            try:
                return node.spec(await node.describe(name))
            except PolicyDenied:
                return None

    return asyncio.run(asked())


def _show(found: RouteStatus, as_json: bool) -> None:
    from coordinator.cli.terminal.console import write_json, write_table

    contents = found.as_data()
    if as_json:
        write_json(contents)
        return
    rows = [
        [
            each["party"],
            f"{each['batches']:,}",
            f"{each['waiting']:,}",
            f"{each['unsent']:,}",
            "retired" if each["retired"] else "open",
        ]
        for each in contents["shufflers"]
    ]
    write_table(
        ["shuffler", "batches", "reports waiting, at least", "batches unsent", "state"], rows, contents["route"]
    )


def _row(batch: Counted) -> list[str]:
    dropped = ", ".join(f"{number:,} {why}" for why, number in batch.dropped.items()) or "0"
    central = "-" if batch.epsilon is None else f"{batch.epsilon:.4g}"
    figures = [f"{number:,}" for number in (batch.counted, batch.late, batch.refused, batch.n)]
    return [str(batch.batch), f"{batch.received:,}", dropped, *figures, f"{batch.local_epsilon:g}", central]
