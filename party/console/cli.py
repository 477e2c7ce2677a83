"""`comine party console`: a node's web console, and the accounts of the people who use it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from party.inbox_cli import OPERATOR

if TYPE_CHECKING:
    from console.accounts import Accounts


class _Serving(typer.core.TyperGroup):
    """Serves the console of a file where no other command is named."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        return super().resolve_command(ctx, args if args[0] in self.commands else ["serve", *args])


app = typer.Typer(
    cls=_Serving, help="A web console for the people at one node: comine party console PARTY_TOML", no_args_is_help=True
)
user = typer.Typer(help="Who may log in at a node's console by a password.", no_args_is_help=True)
app.add_typer(user, name="user")

File = Annotated[Path, typer.Argument(metavar="PARTY_TOML", help="The node's file, e.g. north.toml.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The person's name, as the audit log shows it.")]
By = Annotated[str, typer.Option("--by", help="Who does it; for the audit log.", show_default=True)]


@app.callback()
def console() -> None:
    """A web console for the people at one node: comine party console PARTY_TOML."""


@user.callback()
def users() -> None:
    """Who may log in at a node's console by a password."""


@app.command()
def serve(party_toml: File) -> None:
    """Serve the console beside the node, whether or not that runs, until SIGTERM or Ctrl-C."""
    from console.extra import check_installed
    from party.config import PartyConfig

    check_installed()
    from console.serving import serve_site
    from party.console.site import site_of
    from party.node.logs import open_log

    config = PartyConfig.load(party_toml)
    site = site_of(config, party_toml.absolute(), open_log(config.party.name))
    serve_site(site, f"comine party console user add {party_toml} NAME --role administrator")


@user.command()
def add(
    party_toml: File,
    name: Name,
    role: Annotated[str, typer.Option("--role", help="viewer, approver or administrator.")] = "viewer",
    password_file: Annotated[
        Path | None, typer.Option("--password-file", metavar="FILE", help="The password is its first line.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the password and role of an account.")] = False,
    by: By = OPERATOR,
) -> None:
    """Make an account; the password is asked for, and kept as a hash that only the node's user may read."""
    accounts = _accounts(party_toml)
    from console.people import add_person
    from party.desk import person

    add_person(accounts, name, role, password_file, force=force, by=person(by))


@user.command("list")
def list_users(party_toml: File, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the accounts and their roles."""
    accounts = _accounts(party_toml)
    from console.people import list_people

    list_people(accounts, as_json=as_json)


@user.command()
def remove(party_toml: File, name: Name, by: By = OPERATOR) -> None:
    """Take an account away; its sessions end at once."""
    accounts = _accounts(party_toml)
    from console.people import remove_person
    from party.desk import person

    remove_person(accounts, name, by=person(by))


def _accounts(party_toml: Path) -> Accounts:
    from console.extra import check_installed
    from party.config import PartyConfig

    check_installed()
    from party.console.site import accounts_of

    return accounts_of(PartyConfig.load(party_toml))
