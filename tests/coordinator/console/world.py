"""Two real nodes and a coordinator, whose people use its console; at north people decide on jobs."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from comine.command import run
from console.roles import Role
from console.server import running as running_console
from console.settings import ConsoleSection
from console.site import Site
from coordinator.console.calls import Calls
from coordinator.console.log import open_log
from coordinator.console.settings import accounts_of
from coordinator.console.site import site_of
from coordinator.jobs.records.kept import kept
from coordinator.jobs.records.store import JobFolder, Store
from coordinator.jobs.runner import drive_job, submit_job
from coordinator.member import load_federation
from jobs.spec.job import JobSpec
from link.pki.authority import write_identity
from party.desk import at_desk
from party.policy.inbox import find
from tests.console.chromium import Loop
from tests.integration.consent.people import manual
from tests.party.files import COORDINATOR, free_ports
from tests.party.nodes import DATA, Nodes, brief, running

PASSWORD: Final = "correct horse battery"
PARTIES: Final = ("north", "south")
PEOPLE: Final[dict[str, Role]] = {"vera": "viewer", "anna": "approver"}


@dataclass
class World:
    """The nodes, and the coordinator's console.

    Attributes:
        loop: Where the nodes, drivers and the browser run.
        nodes: The nodes.
        url: Of the console.
        site: The console.
        log: What it has written.
        drivers: Those of jobs in the background.
    """

    loop: Loop
    nodes: Nodes
    url: str
    site: Site
    log: io.StringIO
    drivers: set[asyncio.Task[Any]] = field(default_factory=set)

    @property
    def federation(self) -> Path:
        """The federation file."""
        return self.nodes.folder / "federation.toml"

    def printed(self, *command: str) -> Any:
        """What a command of the coordinator prints with `--json`."""
        with redirect_stdout(out := io.StringIO()):
            assert run([*command, "--json", "--federation", str(self.federation)]) == 0
        return json.loads(out.getvalue())

    async def submit(self, spec: JobSpec | None = None, **changes: Any) -> str:
        """Submits a job of both parties, as `comine job submit` does; its id."""
        known, identity = load_federation(self.federation)
        spec = spec or brief(parties=list(PARTIES), deadline="100s", **changes)
        folder = await submit_job(spec, identity, known.addresses, Store.of(known))
        self.drive(folder, self.federation)
        return folder.id

    def drive(self, folder: JobFolder, federation: Path) -> None:
        """A driver in the background, without a process of its own."""

        async def driven() -> None:
            if (task := asyncio.current_task()) is not None:
                self.drivers.add(task)
            _, identity, addresses = kept(federation, folder.id)
            try:
                await drive_job(folder.record(), identity, addresses, folder)
            finally:
                folder.unlock()

        self.loop.begin(driven())

    async def stop(self) -> None:
        """Ends the drivers."""
        for task in self.drivers:
            task.cancel()
        await asyncio.gather(*self.drivers, return_exceptions=True)

    async def approve(self, job: str) -> None:
        """Somebody at north approves a job."""

        def decide() -> None:
            with at_desk(self.nodes.folder / "north.toml") as desk:
                desk.decide(find(desk.store, job), "nora")

        await asyncio.to_thread(decide)


@contextmanager
def world(loop: Loop, folder: Path) -> Iterator[World]:
    """Runs nodes and console."""

    def prepare(authority: Any) -> None:
        manual(folder, "north")(authority)
        write_identity(authority.issue("analyst", "coordinator"), folder / "pki")
        file = folder / "federation.toml"
        file.write_text(file.read_text() + COORDINATOR)

    data, log = {name: DATA[name] for name in PARTIES}, io.StringIO()
    entered = running(folder, policy="min_support = 0.1", data=data, prepare=prepare)
    nodes = loop.run(entered.__aenter__())
    settings = ConsoleSection(listen=f"127.0.0.1:{free_ports(1)[0]}")
    try:
        for name, role in PEOPLE.items():
            accounts_of(folder / "federation.toml").add(name, role, PASSWORD)
        with Calls() as calls, pytest.MonkeyPatch.context() as patch:
            site = site_of("analyst", folder / "federation.toml", settings, calls, open_log("analyst", log))
            with running_console(site) as url:
                found = World(loop, nodes, url, site, log)
                for module in ("coordinator.console.desk", "coordinator.jobs.background"):
                    patch.setattr(f"{module}.start_driver", found.drive)
                try:
                    yield found
                finally:
                    loop.run(found.stop())
    finally:
        loop.run(entered.__aexit__(None, None, None))
