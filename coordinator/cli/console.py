"""`comine console`: a coordinator's web console, and the accounts of the people who use it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from coordinator.cli.options import HERE, AsJson, FederationFile

if TYPE_CHECKING:
    from console.accounts import Accounts


class _Serving(typer.core.TyperGroup):
    """Serves the console where no other command is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["serve", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_Serving, help="A web console for the people at a coordinator.")
user = typer.Typer(help="Who may log in at a coordinator's console by a password.", no_args_is_help=True)
app.add_typer(user, name="user")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The person's name, as it stands beside jobs.")]


@app.callback()
def console() -> None:
    """A web console for the people at a coordinator."""


@user.callback()
def users() -> None:
    """Who may log in at a coordinator's console by a password."""


@app.command()
def serve(
    federation: FederationFile = HERE,
    settings: Annotated[
        Path | None,
        typer.Option("--settings", metavar="FILE", help="Its [console] says where; http://127.0.0.1:8470 by default."),
    ] = None,
) -> None:
    """Serve the coordinator's console until SIGTERM or Ctrl-C."""
    from console.extra import check_installed

    check_installed()
    from console.serving import serve_site
    from console.settings import ConsoleSection
    from coordinator.console.calls import Calls
    from coordinator.console.log import open_log
    from coordinator.console.settings import ConsoleFile, coordinator_of
    from coordinator.console.site import site_of

    table = ConsoleSection() if settings is None else ConsoleFile.load(settings)
    name = coordinator_of(federation)
    with Calls() as calls:
        site = site_of(name, federation, table, calls, open_log(name))
        serve_site(site, f"comine console user add NAME --role administrator --federation {federation}")


@user.command()
def add(
    name: Name,
    federation: FederationFile = HERE,
    role: Annotated[str, typer.Option("--role", help="viewer, approver or administrator.")] = "viewer",
    password_file: Annotated[
        Path | None, typer.Option("--password-file", metavar="FILE", help="The password is its first line.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the password and role of an account.")] = False,
) -> None:
    """Make an account; the password is asked for, and kept as a hash that only the coordinator's user may read."""
    accounts = _accounts(federation)
    from console.people import add_person

    add_person(accounts, name, role, password_file, force=force)


@user.command("list")
def list_users(federation: FederationFile = HERE, as_json: AsJson = False) -> None:
    """List the accounts and their roles."""
    accounts = _accounts(federation)
    from console.people import list_people

    list_people(accounts, as_json=as_json)


@user.command()
def remove(name: Name, federation: FederationFile = HERE) -> None:
    """Take an account away; its sessions end at once."""
    accounts = _accounts(federation)
    from console.people import remove_person

    remove_person(accounts, name)


def _accounts(federation: Path) -> Accounts:
    from console.extra import check_installed

    check_installed()
    from coordinator.console.settings import accounts_of

    return accounts_of(federation)
