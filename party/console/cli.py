"""`comine party console`: a node's web console, and the accounts of the people who use it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

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


@app.callback()
def console() -> None:
    """A web console for the people at one node: comine party console PARTY_TOML."""


@user.callback()
def users() -> None:
    """Who may log in at a node's console by a password."""


@app.command()
def serve(party_toml: File) -> None:
    """Serve the console beside the node, whether or not that runs, until SIGTERM or Ctrl-C."""
    import signal
    import threading

    from console.extra import check_installed
    from party.config import PartyConfig

    check_installed()
    from console.server import running
    from party.console.site import site_of
    from party.node.logs import open_log

    config = PartyConfig.load(party_toml)
    site = site_of(config, party_toml.absolute(), open_log(config.party.name))
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with running(site) as address:
        typer.echo(f"the console of {config.party.name} is at {address}", err=True)
        if not site.lets_anybody_in():
            typer.echo(
                "nobody can log in yet; make an account with: comine party console user add "
                f"{party_toml} NAME --role administrator",
                err=True,
            )
        stop.wait()


@user.command()
def add(
    party_toml: File,
    name: Name,
    role: Annotated[str, typer.Option("--role", help="viewer, approver or administrator.")] = "viewer",
    password_file: Annotated[
        Path | None, typer.Option("--password-file", metavar="FILE", help="The password is its first line.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the password and role of an account.")] = False,
) -> None:
    """Make an account; the password is asked for, and kept as a hash that only the node's user may read."""
    from console.roles import ROLES
    from link.errors import UsageError

    if role not in ROLES:
        raise UsageError(f"--role is one of {', '.join(ROLES)}")
    accounts = _accounts(party_toml)
    accounts.add(name, role, _password(password_file), replace=force)
    typer.echo(f"{name} can log in as {role}")


@user.command("list")
def list_users(party_toml: File, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the accounts and their roles."""
    import json

    people = _accounts(party_toml).people()
    if as_json:
        accounts = [{"name": name, "role": role} for name, role in people]
        typer.echo(json.dumps({"schema": "comine.accounts/1", "accounts": accounts}, indent=2, ensure_ascii=False))
        return
    for name, role in people:
        typer.echo(f"{name}\t{role}")


@user.command()
def remove(party_toml: File, name: Name) -> None:
    """Take an account away; its sessions end at once."""
    _accounts(party_toml).remove(name)
    typer.echo(f"{name} can no longer log in")


def _accounts(party_toml: Path) -> Accounts:
    from console.extra import check_installed
    from party.config import PartyConfig

    check_installed()
    from party.console.site import accounts_of

    return accounts_of(PartyConfig.load(party_toml))


def _password(file: Path | None) -> str:
    """The password from a file, or as a person types it twice."""
    import sys

    from console.accounts import read_password
    from link.errors import UsageError

    if file is not None:
        return read_password(file)
    if not sys.stdin.isatty():
        raise UsageError("there is no terminal to ask for the password; give it with --password-file FILE")
    return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
