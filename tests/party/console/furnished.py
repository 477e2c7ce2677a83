"""What a node comes to have: estimates of several rounds, anonymised releases, and a result that is held."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Final

import numpy as np

from coordinator.anonymisation.releases import ReleasingNode, request_of
from jobs.anonymization.spec import read_spec
from jobs.collections.spec import labels_of
from ldp.domain import Domain
from protos.v1.frequency_pb2 import Collection
from tests.integration.anonymization.patients import CONFIG, DATASET, PATIENTS
from tests.party.console.world import World
from tests.party.services.frequency.nodes import Caller, batch, set_clock
from tests.party.services.frequency.specs import spec_of

TABLES: Final = f'{DATASET}[dataset.policy]\nrelease = "auto"\n[frequency]\nmax_epsilon = 8\nmin_reports = 100\n'
LABELS: Final = ("apples", "bread", "cheese", "coffee", "jam", "milk", "rice", "tea")
_HOUR: Final = 3600


def write_patients(folder: Path) -> None:
    """The files of the dataset of `TABLES`."""
    (folder / "patients.csv").write_text(PATIENTS)
    (folder / "sex.csv").write_text("f,*\nm,*\n")
    (folder / "anonymize.toml").write_text(CONFIG)


async def collect(north: World, name: str, rounds: int = 6, clients: int = 2000) -> None:
    """A collection of which so many rounds have ended, each an hour; the last one goes on."""
    identity, address = north.nodes.clients["north"].identity, north.nodes.addresses["north"]
    clock = [1_800_000_000.0]
    set_clock(north.nodes.nodes["north"], lambda: clock[0])
    analyst, fleet = Caller(identity, address), Caller(north.nodes.authority.issue("fleet", "client"), address)
    spec = spec_of(
        name=name,
        size=len(LABELS),
        labelled=True,
        epsilon="2",
        window={"length": "1h"},
        access={"gateways": {"fleet": 1_000_000}},
    )
    created: Collection = await analyst.create(spec, labels_of(LABELS))
    for number in range(rounds):
        created = await analyst.describe(name)
        shares = [math.exp(-place / 2) * (1 + math.sin(number + place) / 4) for place in range(len(LABELS))]
        values = np.repeat(LABELS, [round(clients * share / sum(shares)) for share in shares]).tolist()
        await fleet.submit(batch(created, values, domain=Domain.of(LABELS), sequence=number, seed=number))
        clock[0] += _HOUR
    await analyst.describe(name)
    for caller in (analyst, fleet):
        await caller.channel.close()


async def release(north: World, k: int) -> None:
    """A release of the patients."""
    folder = north.nodes.folder
    (folder / "anonymize.toml").write_text(CONFIG.replace("k = 5", f"k = {k}"))
    hub = ReleasingNode(north.nodes.clients["north"].identity, "north", north.nodes.addresses["north"])
    await hub.fetch(request_of(read_spec(folder / "anonymize.toml"), folder), folder / f"k{k}")
    await hub.close()
