"""What commands do with the accounts of a console, a node's or a coordinator's."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import typer

from console.accounts import Accounts, read_password
from console.roles import OPERATOR, ROLES
from link.errors import UsageError


def add_person(
    accounts: Accounts, name: str, role: str, password_file: Path | None, *, force: bool, by: str = OPERATOR
) -> None:
    """Makes an account, and says so.

    Args:
        accounts: Those of the console.
        name: Its owner's.
        role: As it was typed.
        password_file: Whose first line is the password; without one, a person types it twice.
        force: Whether it may take the place of one that is there.
        by: Who makes it.

    Raises:
        UsageError: There is no such role or no terminal; or as `Accounts.add` says.
        ComineError: A file cannot be read or written.
    """
    if role not in ROLES:
        raise UsageError(f"--role is one of {', '.join(ROLES)}")
    accounts.add(name, role, _password(password_file), replace=force, by=by)
    typer.echo(f"{name} can log in as {role}")


def list_people(accounts: Accounts, *, as_json: bool) -> None:
    """Prints the accounts and their roles."""
    people = accounts.people()
    if as_json:
        found = [{"name": name, "role": role} for name, role in people]
        typer.echo(json.dumps({"schema": "comine.accounts/1", "accounts": found}, indent=2, ensure_ascii=False))
        return
    for name, role in people:
        typer.echo(f"{name}\t{role}")


def remove_person(accounts: Accounts, name: str, *, by: str = OPERATOR) -> None:
    """Takes an account away, and says so."""
    accounts.remove(name, by=by)
    typer.echo(f"{name} can no longer log in")


def _password(file: Path | None) -> str:
    """The password from a file, or as a person types it twice."""
    if file is not None:
        return read_password(file)
    if not sys.stdin.isatty():
        raise UsageError("there is no terminal to ask for the password; give it with --password-file FILE")
    return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
