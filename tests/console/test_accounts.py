"""Accounts of a console: their file, names and passwords."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.accounts import Accounts
from console.roles import Person
from tests.console.sites import PASSWORD
from tests.errors import fails


@pytest.fixture
def accounts(tmp_path: Path) -> Accounts:
    found = Accounts(tmp_path / "console.json")
    found.add("anna", "approver", PASSWORD)
    return found


def test_an_account_is_found_by_its_password_alone(accounts: Accounts) -> None:
    assert accounts.check("anna", PASSWORD) == Person("anna", "approver")
    for name, password in (("anna", PASSWORD[:-1]), ("anna", ""), ("Anna", PASSWORD), ("nobody", PASSWORD), ("", "")):
        assert accounts.check(name, password) is None


def test_the_file_is_its_owners_alone_and_holds_no_password(accounts: Accounts, tmp_path: Path) -> None:
    file = tmp_path / "console.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert PASSWORD not in file.read_text()
    assert "$argon2id$" in file.read_text()


@pytest.mark.parametrize("name", ["", "policy", "Operator", "a,b", "anna ", "x" * 65, "anna\u202e", "-x", "an\nna"])
def test_a_name_is_nobody_elses_in_the_audit_log(accounts: Accounts, name: str) -> None:
    with fails("E001"):
        accounts.add(name, "viewer", PASSWORD)


@pytest.mark.parametrize("password", ["", "x" * 11, "x" * 1001])
def test_passwords_are_long_and_not_too_long(accounts: Accounts, password: str) -> None:
    with fails("E001"):
        accounts.add("bert", "viewer", password)


def test_an_account_is_replaced_and_removed_only_on_purpose(accounts: Accounts) -> None:
    for name in ("anna", "Anna"):
        with fails("E001"):
            accounts.add(name, "viewer", "another password")
    accounts.add("anna", "viewer", "another password", replace=True)
    assert accounts.check("anna", PASSWORD) is None
    assert accounts.people() == [Person("anna", "viewer")]
    accounts.remove("anna")
    assert accounts.people() == []
    with fails("E001"):
        accounts.remove("anna")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"anna": {"role": "root", "password": ""}}', '{"anna": 1}'])
def test_a_file_that_holds_no_accounts_lets_nobody_in(accounts: Accounts, tmp_path: Path, text: str) -> None:
    (tmp_path / "console.json").write_text(text)
    with fails("E100"):
        accounts.check("anna", PASSWORD)


def test_a_damaged_hash_lets_nobody_in(accounts: Accounts, tmp_path: Path) -> None:
    (tmp_path / "console.json").write_text('{"anna": {"role": "viewer", "password": ""}}')
    assert accounts.check("anna", PASSWORD) is None
