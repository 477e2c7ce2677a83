"""`comine init`: the first files of a party's node, with a look at its data."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from mining.data.source_options import SourceOptions
    from party.config import DatasetSection

Settings = dict[str, str | list[str]]

DEFAULT_LISTEN: Final = "127.0.0.1:7101"


def init(
    name: Annotated[str, typer.Argument(help="The party: small letters, digits and the characters . - _")],
    source: Annotated[
        str | None, typer.Option("--source", metavar="FILE|URL", help="Its data: a file, or the URL of a database.")
    ] = None,
    kind: Annotated[
        str, typer.Option("--kind", help="transactions, or table: rows with ids and columns.")
    ] = "transactions",
    data_format: Annotated[
        str | None,
        typer.Option("--format", help="basket, csv, long, wide, parquet or sql; by default what the data look like."),
    ] = None,
    separator: Annotated[str | None, typer.Option("--separator", help="Between items, or cells of CSV.")] = None,
    query: Annotated[str | None, typer.Option("--query", help="What is read from a database.")] = None,
    id_columns: Annotated[
        list[str] | None,
        typer.Option("--id", help="Column that numbers transactions; of a table, each column of the ids."),
    ] = None,
    item_column: Annotated[str | None, typer.Option("--item", help="Column of the items.")] = None,
    encoding: Annotated[str | None, typer.Option("--encoding", help="Of text that is not in UTF-8.")] = None,
    sheet: Annotated[str | None, typer.Option("--sheet", help="Of a workbook; the first by default.")] = None,
    password_env: Annotated[
        str | None, typer.Option("--password-env", metavar="NAME", help="Variable that holds the source's password.")
    ] = None,
    password_file: Annotated[
        Path | None, typer.Option("--password-file", metavar="FILE", help="File whose first line is that password.")
    ] = None,
    dataset: Annotated[str, typer.Option("--dataset", help="Name by which jobs ask for the data.")] = "baskets",
    collects: Annotated[
        bool, typer.Option("--collects", help="A node without data, which only collects reports of clients.")
    ] = False,
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen",
            metavar="HOST:PORT",
            help=f"Where the node listens; 0.0.0.0:PORT for all. Without --relay {DEFAULT_LISTEN} by default.",
        ),
    ] = None,
    relay: Annotated[
        str | None,
        typer.Option("--relay", metavar="HOST:PORT", help="A relay that connects the node, which then only dials out."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the files.")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing party.toml.")] = False,
) -> None:
    """Write a commented party.toml, and federation.toml where there is none, after a look at the data."""
    from functools import partial

    from link.errors import InputDataError, UsageError
    from mining.data.source_options import SourceOptions
    from party.check import dataset_lines
    from party.data.dataset_check import check_dataset
    from party.init_files import FEDERATION_FILE, PARTY_FILE, render_federation, render_party, write_files

    ids = id_columns[0] if id_columns and len(id_columns) == 1 else id_columns
    given: dict[str, str | list[str] | None] = {
        "separator": separator,
        "query": query,
        "id": ids,
        "item": item_column,
        "encoding": encoding,
        "sheet": sheet,
        "password_env": password_env,
        "password_file": None if password_file is None else _from(out, str(password_file)),
    }
    options = SourceOptions(encoding, sheet, password_env, password_file)
    if collects and (source is not None or data_format is not None or any(given.values())):
        raise UsageError("a node that only collects has no data; leave out --collects, or the options of the data")
    if source is None and not collects and sys.stdin.isatty():
        source = (
            typer.prompt("File or database URL with the data (empty: later)", default="", show_default=False, err=True)
            or None
        )
    settings = {"kind": kind} | {key: value for key, value in given.items() if value is not None}
    described: Settings | None
    if collects:
        described = None
    elif source is None:
        usual = ("csv", "csv") if kind == "table" else ("dat", "basket")
        described = {"source": f"{name}.{usual[0]}", "format": data_format or usual[1], **settings}
    else:
        described = _described(source, data_format, settings, out, options)
    own = listen if listen or relay else DEFAULT_LISTEN
    write = partial(render_party, name, listen=own, dataset=dataset, source=described)
    party = write()  # refuses what is wrong before the data are read
    if source is not None and described is not None:
        found = check_dataset(_section(dataset, described, source, password_file))
        if found.problem:
            raise InputDataError(f"{found.problem}; nothing was written")
        for line in dataset_lines(found, show_items=False):
            _note(line)
        party = write(publishable=found.publishable)
    files = {FEDERATION_FILE: render_federation(name, None if relay else own, relay), PARTY_FILE: party}
    for path in write_files(out, files, keep=frozenset((FEDERATION_FILE,)), force=force):
        _note(f"created {path}")
    _say_what_is_next(name, out / PARTY_FILE, out / FEDERATION_FILE, own, collects=collects)


def _described(source: str, data_format: str | None, settings: Settings, out: Path, options: SourceOptions) -> Settings:
    """The keys that say where the data are and how they are written, as `party.toml` has them."""
    from link.files.toml_text import quoted
    from mining.data.schemes.registry import scheme_of
    from mining.data.schemes.scheme import DatabaseScheme
    from mining.data.source_format import guess_format

    scheme = scheme_of(source)
    described: Settings = {"source": _from(out, source)}
    if data_format is None:
        guess = guess_format(source, "table" if settings["kind"] == "table" else "transactions", options)
        data_format = guess.format
        if sys.stdin.isatty() and not isinstance(scheme, DatabaseScheme):
            data_format = typer.prompt(f"Format, {data_format} since {guess.reason}", default=data_format, err=True)
        else:
            _note(f"format = {quoted(guess.format)}, since {guess.reason}")
        if data_format == guess.format:
            described |= guess.settings
    if data_format == "sql" and "query" not in settings:
        from link.errors import UsageError

        usual = (
            "id, age, region FROM people"
            if settings["kind"] == "table"
            else "receipt AS id, article AS item FROM sales"
        )
        raise UsageError(f"a database needs --query, such as: SELECT {usual}")
    return described | {"format": str(data_format)} | settings


def _from(folder: Path, source: str) -> str:
    """A source as it is written in a folder, whatever links lead to the two: files by their path from it."""
    from mining.data.schemes.registry import scheme_of
    from mining.data.schemes.scheme import DatabaseFile

    scheme = scheme_of(source)
    prefix = scheme.prefixes[0] if isinstance(scheme, DatabaseFile) else ""
    file = Path(source.removeprefix(prefix))
    if file.is_absolute() or (scheme is not None and not prefix):
        return source
    return prefix + os.path.relpath(file.absolute(), folder.resolve())


def _section(name: str, described: Settings, source: str, password_file: Path | None) -> DatasetSection:
    """The dataset that will be described, readable from here though its file may not be there yet."""
    from party.config import DatasetSection

    section = DatasetSection.model_validate({"name": name, **described})
    return section.model_copy(update={"source": source, "password_file": password_file})


def _say_what_is_next(name: str, party: Path, federation: Path, listen: str | None, *, collects: bool) -> None:
    pki = party.parent / "pki"
    host = "" if listen is None else listen.rpartition(":")[0]
    everywhere = host in ("", "0.0.0.0", "[::]")  # noqa: S104
    request = f"comine pki request {name}" if everywhere else f"comine pki request {name} --host {host}"
    if all((pki / file).exists() for file in ("ca.crt", f"{name}.crt", f"{name}.key")):
        _note(f"next: the certificates are in {pki};")
    else:
        _note("next: make the node's key, and a request that the federation's authority signs with comine pki sign:")
        _note(f"          {request} --out {pki}")
        _note(f"      put the {name}.crt and ca.crt that come back into {pki};")
    if collects:
        _note(f"      see in [frequency] of {party} what may be collected, and then")
    else:
        _note(f"      put the members' common federation.toml in the place of {federation}, or add the others there;")
        _note(f"      read the policy in {party}, and then")
    _note(f"          comine party check {party}")
    _note(f"          comine party serve {party}")
    if collects:
        _note("      a coordinator whose federation file has the node's name and address creates collections with")
        _note("          comine frequency create COLLECTION --federation federation.toml")
    else:
        _note("      the coordinator sees whether all are ready with")
        _note("          comine doctor --federation federation.toml")


def _note(line: str) -> None:
    typer.echo(line, err=True)
