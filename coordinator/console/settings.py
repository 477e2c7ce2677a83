"""Whose console it is, where it answers, and who may enter: what its commands read before they load its pages."""

from __future__ import annotations

from pathlib import Path

from pydantic import field_validator

from console.accounts import FILE, Accounts
from console.settings import ConsoleSection
from coordinator.jobs.records.store import Store
from coordinator.member import load_federation, read_federation
from jobs.spec.toml import TomlTable, read_toml, validate
from link.errors import ResourceError


class ConsoleFile(TomlTable):
    """The file of a coordinator's console.

    Attributes:
        console: Where it answers, and who logs in by another provider.
    """

    console: ConsoleSection = ConsoleSection()

    @field_validator("console")
    @classmethod
    def _tells_nobody(cls, console: ConsoleSection) -> ConsoleSection:
        if console.push:
            raise ValueError("push is for nodes: nothing awaits people at a coordinator's console; leave it out")
        return console

    @classmethod
    def load(cls, path: Path) -> ConsoleSection:
        """Reads it; paths in it become relative to its folder.

        Raises:
            ConfigurationError: The file is missing or wrong.
        """
        return validate(cls, read_toml(path), str(path)).console.beside(path.absolute().parent)


def accounts_of(federation: Path) -> Accounts:
    """The accounts of a coordinator's console, in the folder of its jobs.

    Raises:
        ConfigurationError: The federation file is wrong, or has no `[coordinator]`.
        ResourceError: The folder cannot be made.
    """
    folder = Store.of(read_federation(federation)).folder
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ResourceError(f"{folder} cannot be made ({error.strerror}); set state_dir under [coordinator]") from None
    return Accounts(folder / FILE, "comine console user")


def coordinator_of(federation: Path) -> str:
    """The coordinator's name.

    Raises:
        ComineError: Its certificate does not hold, or the federation file is wrong.
    """
    return load_federation(federation)[1].name
