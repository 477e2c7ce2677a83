"""`comine frequency create|list|estimate|watch|export|close|delete`: collections at the nodes of a federation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli.options import HERE, AsJson, FederationFile
from coordinator.cli.terminal.completion import collection_names, post_processings

if TYPE_CHECKING:
    from coordinator.frequency.service import Found
    from coordinator.frequency.watch import Change
    from jobs.collections.reading import Reading
    from jobs.collections.spec import CollectionSpec
    from jobs.federation import Federation
    from link.pki.identity import Identity
    from protos.v1.frequency_pb2 import Collection

Name = Annotated[str, typer.Argument(metavar="NAME", help="The collection's name.", autocompletion=collection_names)]
Node = Annotated[
    str | None, typer.Option("--node", metavar="PARTY", help="Whose node; by default all are asked who has it.")
]
Confidence = Annotated[float, typer.Option("--confidence", help="Of the interval of each value.", show_default=True)]
Joint = Annotated[bool, typer.Option("--joint", help="Let all intervals hold together with that confidence.")]

_SHOWN = 20  # values, on a terminal
_LARGEST = (1 << 53) - 1  # of numbers that travel


def add_commands(app: typer.Typer) -> None:
    """Adds the commands to `comine frequency`."""
    for command in (create, list_, estimate, watch, export, close, delete):
        app.command(command.__name__.rstrip("_"))(command)


def create(
    collection_toml: Annotated[Path, typer.Argument(metavar="COLLECTION", help="The collection's file.")],
    federation: FederationFile = HERE,
    node: Annotated[
        str | None, typer.Option("--node", metavar="PARTY", help="At whose node, where the file does not say.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a collection at a node; from then on clients can report."""
    import asyncio

    from coordinator.cli.terminal.console import note, write, write_json
    from coordinator.frequency.service import node_of
    from jobs.collections.reading import collection_as_data
    from jobs.collections.spec import CollectionSpec

    spec, labels = CollectionSpec.load(collection_toml)
    known, identity = _member(federation)

    async def created() -> Collection:
        async with node_of(identity, known.addresses, node or spec.collection.node) as at:
            return await at.create(spec, labels)

    collection = asyncio.run(created())
    if as_json:
        write_json(collection_as_data(collection, spec))
    else:
        write(f"{collection.name}\n")
    note(f"created at the node of {collection.node}; see its estimates with: comine frequency estimate {spec.name}")


def list_(
    federation: FederationFile = HERE,
    node: Annotated[str | None, typer.Option("--node", metavar="PARTY", help="Only of this party's node.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the collections that this coordinator may read."""
    import asyncio

    from coordinator.cli.terminal.console import note, write_json, write_table
    from coordinator.frequency.listing import HEADS, as_data, listed
    from coordinator.frequency.service import address_of

    known, identity = _member(federation)
    addresses = known.addresses if node is None else {node: address_of(known.addresses, node)}
    found = asyncio.run(listed(identity, addresses))
    for problem in found.problems:
        note(problem)
    if as_json:
        write_json(as_data(found))
    else:
        write_table(HEADS, found.lines())


def estimate(
    name: Name,
    federation: FederationFile = HERE,
    node: Node = None,
    number: Annotated[
        int | None,
        typer.Option("--round", min=0, max=_LARGEST, metavar="N", help="By default the latest with reports."),
    ] = None,
    top: Annotated[
        int,
        typer.Option(
            "--top", min=0, max=_LARGEST, metavar="K", help="Only the K largest; 0 for all.", show_default=True
        ),
    ] = 0,
    post_processing: Annotated[
        str,
        typer.Option(
            "--post-processing",
            metavar="METHOD",
            help="Make estimates consistent too, such as by norm-sub.",
            autocompletion=post_processings,
        ),
    ] = "",
    candidates: Annotated[
        Path | None,
        typer.Option("--candidates", metavar="FILE", help="Texts to look for, one a line, where values are texts."),
    ] = None,
    confidence: Confidence = 0.95,
    joint: Joint = False,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Folder for tables and a report.")] = None,
    as_json: AsJson = False,
) -> None:
    """Estimate how many clients have each value, from the reports of one round."""
    import asyncio

    from coordinator.cli.terminal.console import note
    from coordinator.frequency.reading import read
    from coordinator.frequency.service import collection_of
    from coordinator.frequency.watch import title
    from jobs.collections.estimates import Asked
    from protos.v1.frequency_pb2 import FrequencyRequest

    asked = Asked(confidence, joint)
    request = FrequencyRequest(collection=name, round=number, most=0 if out else top, post_processing=post_processing)
    if candidates is not None:
        from coordinator.frequency.values import lines
        from jobs.collections.spec import labels_of

        request.candidates = labels_of(lines(candidates))
    if out is not None:
        from coordinator.frequency.files import holds_reading
        from jobs.results.destination import check_result_folder

        check_result_folder(out, holds_reading)
    known, identity = _member(federation)

    async def reading() -> Reading:
        async with collection_of(identity, known.addresses, name, node) as found:
            return await read(*found, request, asked, history=out is not None)

    result = asyncio.run(reading())
    if out is not None:
        from coordinator.frequency.files import write_reading

        write_reading(out, result, identity)
    _present(result, as_json=as_json, rows=out is None, top=top)
    note(title(result.estimates) + (f"; written to {out}" if out is not None else ""))


def _present(reading: Reading, *, as_json: bool, rows: bool, top: int) -> None:
    """A terminal gets a table with bars; a pipe gets all rows as CSV, unless they are in a folder."""
    import sys

    from coordinator.cli.terminal.console import write_json, write_table
    from coordinator.frequency.files import write_rows
    from coordinator.frequency.watch import table
    from jobs.collections.estimates import largest_first
    from jobs.collections.reading import as_data

    if as_json:
        write_json(as_data(reading))
    elif sys.stdout.isatty():
        shown = largest_first(reading.rows, top or _SHOWN)
        more = f" (the largest {len(shown)} of {len(reading.rows):,})" if len(shown) < len(reading.rows) else ""
        write_table(*table(shown, reading.estimates), f"{reading.collection.name}{more}")
    elif rows:
        write_rows(sys.stdout, reading)


def watch(
    name: Name,
    federation: FederationFile = HERE,
    node: Node = None,
    top: Annotated[
        int, typer.Option("--top", min=1, max=_LARGEST, metavar="K", help="The K largest.", show_default=True)
    ] = 10,
    every: Annotated[
        float, typer.Option("--every", min=0.1, metavar="SECONDS", help="Between estimates.", show_default=True)
    ] = 1.0,
    times: Annotated[
        int, typer.Option("--times", min=0, metavar="N", help="Stop after N estimates; 0 for never.", show_default=True)
    ] = 0,
    confidence: Confidence = 0.95,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one line each time.")] = False,
) -> None:
    """Watch estimates change until the collection is closed; Ctrl-C leaves it alone."""
    from contextlib import aclosing

    from coordinator.cli.terminal.console import note
    from coordinator.frequency.service import collection_of
    from coordinator.frequency.watch import changes
    from coordinator.interrupt import run_interruptibly
    from jobs.collections.estimates import Asked
    from link.errors import JobCancelled
    from protos.v1.frequency_pb2 import FrequencyRequest

    asked, request = Asked(confidence), FrequencyRequest(collection=name, most=top)
    known, identity = _member(federation)

    async def watching(show: Callable[[Change], None]) -> None:
        def away(lost: bool) -> None:
            note(f"the node of {found.node.party} is {'away; waiting until it is back' if lost else 'back'}")

        async with (
            collection_of(identity, known.addresses, name, node) as found,
            aclosing(changes(*found, request, asked, every, times, away)) as seen,
        ):
            async for change in seen:
                show(change)

    with _shown(as_json=as_json) as show:
        try:
            run_interruptibly(watching(show))
        except JobCancelled:
            note(f"the collection goes on; come back with: comine frequency watch {name}")
        except BrokenPipeError:
            return  # the reader has seen enough


@contextmanager
def _shown(*, as_json: bool) -> Iterator[Callable[[Change], None]]:
    """Shows changes: as a table that stays in its place on a terminal, as lines elsewhere."""
    import json
    import sys

    from coordinator.cli.terminal.console import write
    from coordinator.cli.terminal.outlet import check_reader
    from coordinator.frequency.watch import as_data, line, table, title

    def print_change(change: Change) -> None:
        write(f"{json.dumps(as_data(change), ensure_ascii=False) if as_json else line(change)}\n")
        check_reader()

    if as_json or not sys.stdout.isatty():
        yield print_change
        return
    from rich.live import Live

    from coordinator.cli.terminal.console import ruled

    with Live(auto_refresh=False) as live:
        yield lambda change: live.update(
            ruled(*table(change.rows, change.estimates), title(change.estimates)), refresh=True
        )


def export(
    name: Name,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the export.")],
    federation: FederationFile = HERE,
    node: Node = None,
    states: Annotated[
        bool, typer.Option("--states", help="The sums of reports too, which others can merge with theirs.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write all that a node keeps of a collection into a folder, with a report."""
    import asyncio

    from coordinator.cli.terminal.console import note, write_json
    from coordinator.frequency.export import export_into
    from coordinator.frequency.files import holds_export
    from coordinator.frequency.service import collection_of
    from jobs.results.destination import MANIFEST
    from jobs.results.folder import write_whole
    from jobs.results.manifest import seal

    known, identity = _member(federation)
    files: list[str] = []

    async def exported(draft: Path) -> None:
        async with collection_of(identity, known.addresses, name, node) as found:
            files.extend(await export_into(draft, *found, states=states))

    def fill(draft: Path) -> None:
        draft.mkdir(parents=True)
        asyncio.run(exported(draft))
        seal(draft, identity)
        files.append(MANIFEST)

    write_whole(out, fill, holds_export)
    if as_json:
        write_json({"schema": "comine.frequency-export/1", "folder": str(out), "files": sorted(files)})
    note(f"{len(files)} files written to {out}")


def close(
    name: Name,
    federation: FederationFile = HERE,
    node: Node = None,
    as_json: AsJson = False,
) -> None:
    """Close a collection: no more reports are taken, its estimates stay."""
    from coordinator.cli.terminal.console import note

    async def closed(found: Found) -> Collection:
        return await found.node.end(name)

    counted = _changed(name, federation, node, closed, as_json=as_json).counters.counted
    note(f"closed after {counted:,} reports; its estimates stay: comine frequency estimate {name}")


def delete(
    name: Name,
    federation: FederationFile = HERE,
    node: Node = None,
    as_json: AsJson = False,
) -> None:
    """Delete a closed collection: its node forgets all of it, and the name is free again."""
    from coordinator.cli.terminal.console import note

    async def deleted(found: Found) -> Collection:
        await found.node.delete(name)
        return found.collection

    party = _changed(name, federation, node, deleted, as_json=as_json).node
    note(f"the node of {party} has deleted '{name}'; what was exported is all that is left of it")


def _changed(
    name: str, federation: Path, node: str | None, change: Callable[[Found], Awaitable[Collection]], *, as_json: bool
) -> Collection:
    """Changes a collection; prints it where JSON is wanted."""
    import asyncio

    from coordinator.cli.terminal.console import write_json
    from coordinator.frequency.service import collection_of
    from jobs.collections.reading import collection_as_data

    known, identity = _member(federation)

    async def done() -> tuple[Collection, CollectionSpec]:
        async with collection_of(identity, known.addresses, name, node) as found:
            spec = found.node.spec(found.collection)
            return await change(found), spec

    collection, spec = asyncio.run(done())
    if as_json:
        write_json(collection_as_data(collection, spec))
    return collection


def _member(federation: Path) -> tuple[Federation, Identity]:
    from coordinator.member import load_federation

    return load_federation(federation)
