"""Two real nodes, of which the people of one decide by its console."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from console.roles import Role
from console.server import running as running_console
from console.site import Site
from link.version import software_version
from party.config import PartyConfig
from party.console.site import accounts_of, site_of
from party.desk import at_desk
from party.node.logs import open_log
from party.policy.inbox import find
from protos.v1 import control_pb2 as control
from tests.console.chromium import Loop, texts
from tests.integration.consent.people import manual
from tests.party.files import free_ports
from tests.party.nodes import DATA, Nodes, running, weekly

__all__ = ["PASSWORD", "World", "texts", "world"]

PASSWORD: Final = "correct horse battery"
PARTIES: Final = ("north", "south")
PEOPLE: Final[dict[str, Role]] = {"vera": "viewer", "anna": "approver", "adam": "administrator"}


@dataclass
class World:
    """The nodes, and the console of north.

    Attributes:
        loop: Where the nodes and the browser run.
        nodes: The nodes.
        url: Of the console.
        site: The console.
    """

    loop: Loop
    nodes: Nodes
    url: str
    site: Site

    @property
    def file(self) -> Path:
        """The node's file."""
        return self.nodes.folder / "north.toml"

    @property
    def software(self) -> str:
        """The version that runs."""
        return software_version()

    def shown(self, job: str) -> dict[str, Any]:
        """What `comine party show --json` prints."""
        with at_desk(self.file) as desk:
            return desk.shown(find(desk.store, job))

    async def propose(self, **changes: Any) -> str:
        """Proposes a job to north; its id."""
        spec = weekly(parties=list(PARTIES), **changes)
        nonce, expiry = os.urandom(16), int(time.time()) + 600
        return (await self.nodes.clients["north"].propose(spec, nonce, expiry)).hex()

    async def comes(self, job: str, state: int) -> control.JobEvent:
        """The event by which north says that a job has come to a state."""
        watched = self.nodes.clients["north"].stub.Watch(control.WatchRequest(job_id=bytes.fromhex(job)))
        async for event in watched:
            if event.state == state:
                return event
        raise AssertionError(f"the job never came to {control.JobState.Name(state)}")


@contextmanager
def world(loop: Loop, folder: Path, console: str = "", policy: str = "") -> Iterator[World]:
    """Runs the nodes and the console.

    Args:
        loop: Where the nodes run.
        folder: Of their files.
        console: More of the table `[console]`.
        policy: More of north's `[policy]`.
    """

    def prepare(_: Any) -> None:
        manual(folder, "north")(_)
        with (folder / "north.toml").open("a") as file:
            file.write(f'{policy}[console]\nlisten = "127.0.0.1:{free_ports(1)[0]}"\n{console}')

    data = {name: DATA[name] for name in PARTIES}
    entered = running(folder, policy="min_support = 0.1", data=data, prepare=prepare)
    nodes = loop.run(entered.__aenter__())
    try:
        config = PartyConfig.load(folder / "north.toml")
        for name, role in PEOPLE.items():
            accounts_of(config).add(name, role, PASSWORD)
        site = site_of(config, folder / "north.toml", open_log("north", io.StringIO()))
        with running_console(site) as url:
            yield World(loop, nodes, url, site)
    finally:
        loop.run(entered.__aexit__(None, None, None))
