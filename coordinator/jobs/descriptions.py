"""What parties say of themselves, and whether a job that is being written fits it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

from coordinator.jobs.client import PartyClient, check_versions
from jobs.data import DataKind
from link.errors import ComineError
from link.files.printable import enumeration, one_line
from link.pki.identity import Identity
from protos.v1.control_pb2 import Description

_MOST_NAMES: Final = 20


@dataclass(frozen=True, slots=True)
class Asked:
    """The answers of the parties that were asked.

    Attributes:
        descriptions: By party that answered.
        silent: By party that did not, why.
    """

    descriptions: Mapping[str, Description]
    silent: Mapping[str, str]


async def ask(identity: Identity, addresses: Mapping[str, str]) -> Asked:
    """Asks all parties at once for what they say of themselves, which moves no data."""

    async def one(party: str, client: PartyClient) -> Description | str:
        try:
            found = (await client.describe()).description
            check_versions(party, found)
        except ComineError as error:
            return error.message
        return found

    async with AsyncExitStack() as stack:
        clients = {party: PartyClient(identity, party, address) for party, address in addresses.items()}
        for client in clients.values():
            stack.push_async_callback(client.close)
        answers = dict(zip(clients, await asyncio.gather(*map(one, clients, clients.values())), strict=True))
    return Asked(
        {party: answer for party, answer in answers.items() if isinstance(answer, Description)},
        {party: answer for party, answer in answers.items() if isinstance(answer, str)},
    )


def common_dataset(descriptions: Mapping[str, Description], kind: DataKind) -> str | None:
    """The first dataset of a kind of data that all these parties have; None where there is none."""
    names = [[data.name for data in each.datasets if data.kind == kind] for each in descriptions.values()]
    return next((name for name in names[0] if all(name in others for others in names)), None) if names else None


def misfits(
    party: str, said: Description, *, task: str, parties: Sequence[str], dataset: str, kind: DataKind
) -> list[str]:
    """What of a job a party would not take, a sentence for each.

    Args:
        party: The party.
        said: What it says of itself.
        task: The job's task.
        parties: All parties of the job.
        dataset: The dataset of the job.
        kind: The kind of data that the job needs.
    """
    found = []
    datasets = {data.name: data.kind for data in said.datasets}
    fitting = [name for name, its in datasets.items() if its == kind]
    have = f"it has {_listed(fitting)} of that kind" if fitting else "it has none of that kind"
    what = "transactions" if kind == "transactions" else "a table"
    if dataset not in datasets:
        found.append(f"{party} has no dataset '{dataset}' with {what}; {have}")
    elif datasets[dataset] != kind:
        found.append(f"the dataset '{dataset}' of {party} is no dataset with {what}, as the job needs; {have}")
    if task not in said.tasks:
        allowed = f"it allows {_listed(said.tasks)}" if said.tasks else "it allows no task"
        found.append(f"the policy of {party} does not allow the task '{task}'; {allowed}")
    strangers = [name for name in parties if name != party and name not in said.peers]
    if strangers:
        found.append(f"{party} does not know {_listed(strangers)}; add them to the federation file of {party}")
    return found


def _listed(names: Sequence[str]) -> str:
    """Some of the names that a party gives, which may be as many and as long as it likes."""
    more = [f"{len(names) - _MOST_NAMES:,} more"] if len(names) > _MOST_NAMES else []
    return enumeration([*(one_line(name[:64]) for name in names[:_MOST_NAMES]), *more])
