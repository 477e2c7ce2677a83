"""`party.toml`: who the node is, what data it serves, and what its policy allows."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from jobs.federation import Credentials, Federation, Name, check_address
from jobs.toml import read_toml, validate
from link.errors import ConfigurationError


def _dataset_name(name: object) -> object:
    if isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", name) is None:
        raise ValueError(
            f"'{name}' cannot be a name: use 1 to 63 letters, digits and the characters . - _, a letter or digit first"
        )
    return name


DatasetName = Annotated[str, BeforeValidator(_dataset_name)]

FILE_URLS: Final = ("sqlite:///", "duckdb:///")
SERVER_URLS: Final = ("postgresql://", "postgres://")


def _available_kind(kind: object) -> object:
    if kind == "table":
        raise ValueError('"table" is not available in this version, which mines kind = "transactions"')
    return kind


def _share(value: object) -> object:
    """A decimal in (0, 1]; `jobs.toml` reads numbers with a point as exact decimals."""
    if isinstance(value, Decimal) and value.is_finite() and 0 < value <= 1:
        return value
    raise ValueError(
        "must be a fraction above 0 and at most 1, such as 0.001; min_count sets a floor for counts of transactions"
    )


def _not_empty(names: object) -> object:
    if names == []:
        raise ValueError("names nothing, so no job could ever run; leave the key out to allow all")
    return names


def _any_task(tasks: object) -> object:
    if tasks == []:
        raise ValueError('names nothing, so no job could ever run; name "itemsets", "rules" or both')
    return tasks


Some = BeforeValidator(_not_empty)


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PartySection(_Section):
    """The `[party]` table.

    Attributes:
        name: The party, as in its certificate and in the federation file.
        listen: HOST:PORT on which the node answers coordinators and peers.
        state_dir: Folder for the results that this party receives.
        federation: The federation file, whose parties are the peers that the node may talk to.
        max_running: Jobs that may run at once.
    """

    name: Name
    listen: str
    state_dir: Path
    federation: Path
    max_running: int = Field(default=4, ge=1, le=64)
    _address = field_validator("listen")(check_address)


class DatasetSection(_Section):
    """A `[[dataset]]` table.

    Attributes:
        name: By which jobs ask for the data.
        kind: `transactions`.
        source: Path of a file, or the URL of a database.
        format: How transactions are written in the source.
        separator: Between the items of a `basket` line (blanks by default) or the columns of a `csv`.
        query: With `format = "sql"`: what is read.
        id: Column that numbers transactions, with one item a row.
        item: Column of the items, with one item a row.
    """

    name: DatasetName
    kind: Annotated[Literal["transactions"], BeforeValidator(_available_kind)]
    source: str = Field(min_length=1)
    format: Literal["basket", "long", "wide", "csv", "parquet", "sql"]
    separator: str | None = Field(default=None, min_length=1)
    query: str | None = Field(default=None, min_length=1)
    id: str = Field(default="id", min_length=1)
    item: str = Field(default="item", min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> DatasetSection:
        if self.format == "sql" and (self.query is None or not self.is_url):
            raise ValueError(
                'format = "sql" needs a query, and a source such as "sqlite:///baskets.db" or a postgres URL'
            )
        if self.format != "sql" and self.query is not None:
            raise ValueError('a query needs format = "sql"')
        if self.is_url and self.format != "sql":
            raise ValueError('the URL of a database needs format = "sql" and a query')
        if self.separator is not None and self.format in ("parquet", "sql"):
            raise ValueError(f'a separator means nothing with format = "{self.format}"')
        return self

    @property
    def is_url(self) -> bool:
        """Whether the source is a database at a URL and not a file."""
        return self.source.startswith((*FILE_URLS, *SERVER_URLS))

    def beside(self, folder: Path) -> DatasetSection:
        """The same with a relative source taken from `folder`."""
        scheme = next((scheme for scheme in FILE_URLS if self.source.startswith(scheme)), "")
        if self.is_url and not scheme:
            return self
        return self.model_copy(update={"source": f"{scheme}{folder / self.source.removeprefix(scheme)}"})


class PolicySection(_Section):
    """The `[policy]` table: every rule that is written is enforced; a rule that is left out forbids nothing.

    Attributes:
        approve: `auto` runs what the rules allow; `manual` would ask a person.
        tasks: Tasks that may run.
        datasets: Datasets that may be used; all, where absent.
        peers: Parties that may take part beside this one; all of the federation, where absent.
        min_parties: The fewest parties of a job, this one included.
        min_support: The lowest support that a job may ask for, as a fraction.
        min_count: The lowest count of all parties' transactions that a job may ask for or its fraction may come to.
        max_length: The most items of an itemset; the job must set a limit that is no higher.
    """

    approve: Literal["auto", "manual"]
    tasks: Annotated[tuple[Literal["itemsets", "rules"], ...], BeforeValidator(_any_task)]
    datasets: Annotated[tuple[DatasetName, ...] | None, Some] = None
    peers: Annotated[tuple[Name, ...] | None, Some] = None
    min_parties: int | None = Field(default=None, ge=2, le=64)
    min_support: Annotated[Decimal, BeforeValidator(_share)] | None = None
    min_count: int | None = Field(default=None, ge=1)
    max_length: int | None = Field(default=None, ge=1)


class PartyConfig(_Section):
    """The whole of `party.toml`."""

    party: PartySection
    tls: Credentials
    dataset: tuple[DatasetSection, ...]
    policy: PolicySection

    @model_validator(mode="after")
    def _known_datasets(self) -> PartyConfig:
        names = [dataset.name for dataset in self.dataset]
        if not names:
            raise ValueError("there is no [[dataset]] table, so no job could ever run")
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"the dataset '{name}' is listed twice")
        for name in self.policy.datasets or ():
            if name not in names:
                raise ValueError(f"[policy] datasets names '{name}', but no [[dataset]] has that name")
        return self

    @classmethod
    def load(cls, path: Path) -> PartyConfig:
        """Reads a node's file; relative paths in it are taken from its folder.

        Raises:
            ConfigurationError: The file is missing, or something in it is missing, unknown or wrong.
        """
        config, folder = validate(cls, read_toml(path), str(path)), path.absolute().parent
        places = {"state_dir": folder / config.party.state_dir, "federation": folder / config.party.federation}
        changes: dict[str, Any] = {
            "party": config.party.model_copy(update=places),
            "tls": config.tls.beside(path),
            "dataset": tuple(dataset.beside(folder) for dataset in config.dataset),
        }
        return config.model_copy(update=changes)

    @property
    def datasets(self) -> dict[str, DatasetSection]:
        """Datasets by name."""
        return {dataset.name: dataset for dataset in self.dataset}

    def check_federation(self, federation: Federation) -> None:
        """Checks that this party and the peers of its policy are in the federation.

        Raises:
            ConfigurationError: One is not; the sentence says where to add it.
        """
        for name in (self.party.name, *(self.policy.peers or ())):
            if name not in federation.addresses:
                raise ConfigurationError(
                    f"the party '{name}' is not in {self.party.federation}; add a [[party]] table for it there"
                )
