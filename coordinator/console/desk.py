"""A person's place at a coordinator: its jobs, its members, and by whose name something is done there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from console.roles import Person
from coordinator.console.calls import Calls
from coordinator.jobs.background import start_driver
from coordinator.jobs.records.acts import What
from coordinator.jobs.records.store import JobFolder, Store
from coordinator.member import read_federation
from link.logs.structured import Log


@dataclass(frozen=True, slots=True)
class Desk:
    """What the pages share; they read the files anew at every visit, as commands do.

    Attributes:
        federation: The federation file.
        calls: Where nodes are called.
        log: Where it is reported who does something.
    """

    federation: Path
    calls: Calls
    log: Log

    def store(self) -> Store:
        """The coordinator's jobs."""
        return Store.of(read_federation(self.federation))

    def note(self, folder: JobFolder, what: What, person: Person) -> None:
        """Writes down beside the job, and in the log, that somebody does something with it."""
        folder.note(what, person.name)
        self.log.info(f"job {what}", job=folder.id, person=person.name)

    def hand_over(self, folder: JobFolder, what: What, person: Person) -> None:
        """Leaves a job that is locked by this process to a driver in the background, and writes down who wants it."""
        try:
            self.note(folder, what, person)
        except BaseException:
            folder.unlock()
            raise
        self.drive(folder)

    def drive(self, folder: JobFolder) -> None:
        """Leaves a job that is locked by this process to a driver in the background."""
        start_driver(folder, self.federation)
