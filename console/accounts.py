"""The accounts of a console, in a file that only its owner may read: names, roles and hashes of passwords."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from console.roles import OPERATOR, Person, Role, is_name
from console.turns import taking_turns
from jobs.audit.console_events import AccountAdded, AccountChanged, AccountRemoved
from jobs.audit.events import Event
from link.errors import ConfigurationError, UsageError
from link.files.private_file import replace_private

FILE: Final = "console.json"
LEAST_PASSWORD: Final = 12
MOST_PASSWORD: Final = 1000  # bytes; what is longer would cost time at every attempt
_MARK: Final = 32  # digits
HASHER: Final = PasswordHasher()  # argon2id, with the parameters of RFC 9106 for little memory


@dataclass(frozen=True)
class Account:
    """One account.

    Attributes:
        role: What its owner may do.
        password: The hash, with its parameters and salt.
    """

    role: Role
    password: str


_Accounts = TypeAdapter(dict[str, Account])


class Accounts:
    """The file. It is read at every request, so that what a command changes counts at once.

    Args:
        path: The file; where there is none, there is no account.
        command: The command by which people keep it, for sentences.
        record: Writes a change into an audit log before it is made, where there is one.
    """

    def __init__(
        self,
        path: Path,
        command: str = "comine party console user",
        record: Callable[[Event], None] = lambda event: None,
    ) -> None:
        self._path, self._command, self._record = path, command, record

    def people(self) -> list[Person]:
        """All who have an account, by name.

        Raises:
            ConfigurationError: The file cannot be read.
        """
        return [Person(name, account.role) for name, account in sorted(self._read().items())]

    def find(self, name: str) -> Person | None:
        """Who has an account of that name; None where nobody has."""
        account = self._read().get(name)
        return None if account is None else Person(name, account.role)

    def is_taken(self, name: str) -> bool:
        """Whether somebody has an account of that name, however it is written: the audit log shows no other by it."""
        return name.casefold() in {each.casefold() for each in self._read()}

    def marks(self) -> dict[str, str]:
        """What tells by name whether an account is still as it was: another one after any change of it."""
        return {
            name: hashlib.sha256(account.password.encode()).hexdigest()[:_MARK]
            for name, account in self._read().items()
        }

    def check(self, name: str, password: str) -> Person | None:
        """Who has this account and password; None where nobody has, after as much work as if somebody had.

        Raises:
            ConfigurationError: The file cannot be read.
        """
        account = self._read().get(name)
        try:
            HASHER.verify(nobodys_hash() if account is None else account.password, password[:MOST_PASSWORD])
        except (VerificationError, InvalidHashError):
            return None
        return None if account is None else Person(name, account.role)

    def add(self, name: str, role: Role, password: str, *, replace: bool = False, by: str = OPERATOR) -> None:
        """Makes an account.

        Args:
            name: Its owner's, as the audit log shows it.
            role: What they may do.
            password: Of 12 characters at least.
            replace: Whether it may take the place of one that is there.
            by: Who makes it.

        Raises:
            UsageError: The name or the password will not do, or there is such an account.
            ComineError: The file cannot be read or written.
        """
        if not is_name(name):
            raise UsageError(
                "an account's name has up to 64 letters, digits and . _ @ + - or spaces between them, begins with a "
                "letter or digit, and is neither 'policy' nor 'operator', by which others sign"
            )
        if len(password) < LEAST_PASSWORD or len(password.encode()) > MOST_PASSWORD:
            raise UsageError(
                f"choose a password of {LEAST_PASSWORD} characters or more, and of {MOST_PASSWORD:,} bytes at most"
            )
        with self._changing() as accounts:
            alike = next((each for each in accounts if each.casefold() == name.casefold()), None)
            if alike is not None and not (replace and alike == name):
                raise UsageError(f"there is an account {alike} already; give it another password or role with --force")
            account = Account(role, HASHER.hash(password))
            if alike is None:
                self._record(AccountAdded(by=by, account=name, role=role))
            else:
                self._record(AccountChanged(by=by, account=name, role=role, before=accounts[name].role))
            accounts[name] = account

    def remove(self, name: str, *, by: str = OPERATOR) -> None:
        """Takes an account away; its sessions end at once.

        Args:
            name: Whose it is.
            by: Who takes it away.

        Raises:
            UsageError: There is none of that name.
            ComineError: The file cannot be read or written.
        """
        with self._changing() as accounts:
            if accounts.pop(name, None) is None:
                raise UsageError(f"there is no account {name}; {self._command} list shows which there are")
            self._record(AccountRemoved(by=by, account=name))

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Account]]:
        """The accounts, to be written again; two commands do it one after the other."""
        with taking_turns(self._path):
            accounts = self._read()
            yield accounts
            replace_private(self._path, _Accounts.dump_json(accounts, indent=2))

    def _read(self) -> dict[str, Account]:
        try:
            return _Accounts.validate_python(json.loads(self._path.read_bytes()))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConfigurationError(f"{self._path} cannot be read ({error.strerror}); see to its owner") from None
        except (ValueError, ValidationError):
            raise ConfigurationError(
                f"{self._path} does not hold accounts; put a copy of it back, or remove it and make them anew with "
                f"{self._command} add"
            ) from None


def read_password(file: Path) -> str:
    """The first line of a file.

    Raises:
        ConfigurationError: It cannot be read.
    """
    try:
        return file.read_text(encoding="utf-8").partition("\n")[0].removesuffix("\r")
    except (OSError, UnicodeDecodeError):
        raise ConfigurationError(f"{file} cannot be read; its first line is to be the password") from None


@cache
def nobodys_hash() -> str:
    """A hash of the same cost as any other, for names that nobody has."""
    return HASHER.hash("the password of nobody")
