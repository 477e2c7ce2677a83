"""`comine query`: an aggregate of a node's table, if with all earlier answers it reveals nobody's value."""

from __future__ import annotations

from typing import Annotated

import typer

from coordinator.cli.options import HERE, AsJson, FederationFile


def query(
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="QUERY",
            help="Such as: avg(salary) where age >= 30 and city in ('Bern', 'Basel'). Without it: what may be asked.",
            show_default=False,
        ),
    ] = None,
    node: Annotated[
        str | None,
        typer.Option("--node", metavar="PARTY", help="Whose data; the federation's only party, if it is one."),
    ] = None,
    dataset: Annotated[str | None, typer.Option("--dataset", metavar="NAME", help="Of which dataset.")] = None,
    federation: FederationFile = HERE,
    as_json: AsJson = False,
) -> None:
    """Ask for a sum, average, maximum, minimum or count; denied if answers together would reveal somebody's value."""
    import asyncio

    from coordinator.anonymisation.queries import HEADS, Answer, QueryNode, listing, listing_as_data
    from coordinator.cli.terminal.console import note, write, write_json, write_table
    from coordinator.frequency.service import party_named
    from coordinator.member import load_federation
    from link.errors import UsageError
    from protos.v1.anonymization_pb2 import OpenDataset

    known, identity = load_federation(federation)
    party = party_named(known.addresses, node)

    async def asked() -> Answer | list[OpenDataset]:
        async with QueryNode(identity, party, known.addresses[party]) as at:
            if text is None:
                return await at.datasets()
            found = await at.datasets() if dataset is None else []
            if dataset is None and len(found) != 1:
                names = ", ".join(each.name for each in found) or "none"
                raise UsageError(f"name the dataset with --dataset; {party} lets this coordinator ask of: {names}")
            return await at.ask(found[0].name if dataset is None else dataset, text)

    answer = asyncio.run(asked())
    if isinstance(answer, list):
        if as_json:
            write_json(listing_as_data(party, answer))
        else:
            write_table(HEADS, listing(answer))
        if not answer:
            note(f"{party} lets this coordinator ask nothing")
        return
    if as_json:
        write_json(answer.as_data())
    elif answer.value is not None:
        write(f"{answer.text}\n")
    answer.check()
