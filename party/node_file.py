"""Who a node is and where it answers: what commands beside a running node need of its file.

Whatever else stands in a `party.toml` is `party.config`'s, which loads for longer than such a command runs.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, field_validator

from jobs.federation import Credentials, Name, check_address
from jobs.spec.toml import TomlTable, read_toml, validate


class NodeSection(TomlTable):
    """What the `[party]` table says of the node itself.

    Attributes:
        name: The party, as in its certificate and in the federation file.
        listen: HOST:PORT on which the node answers coordinators and peers; without it the node only dials out, to the
            relay of the federation file.
        state_dir: Folder for the jobs, the audit log and the results of this party.
        federation: The federation file, whose parties are the peers that the node may call.
    """

    name: Name
    listen: str | None = None
    state_dir: Path
    federation: Path

    @field_validator("listen")
    @classmethod
    def _is_address(cls, listen: str | None) -> str | None:
        return None if listen is None else check_address(listen)


class _Section(NodeSection, extra="ignore"):
    """The same beside keys that are not looked at."""


class NodeFile(BaseModel, frozen=True):
    """A `party.toml` of which the rest is not looked at.

    Attributes:
        party: The node.
        tls: Its credentials.
    """

    party: _Section
    tls: Credentials

    @classmethod
    def load(cls, path: Path) -> NodeFile:
        """Reads a node's file; relative paths in it are taken from its folder.

        Raises:
            ConfigurationError: The file is missing, or what is looked at is missing or wrong.
        """
        found, file = validate(cls, read_toml(path), str(path)), path.absolute()
        folder, party = file.parent, found.party
        places = {"state_dir": folder / party.state_dir, "federation": folder / party.federation}
        return found.model_copy(update={"party": party.model_copy(update=places), "tls": found.tls.beside(file)})
