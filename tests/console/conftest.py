"""Passwords are hashed with little work, for tests of all else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from argon2 import PasswordHasher

import console.accounts


@pytest.fixture(autouse=True, scope="session")
def cheap_hashes() -> Iterator[None]:
    """Of other parameters and the same form."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(console.accounts, "HASHER", PasswordHasher(time_cost=1, memory_cost=64, parallelism=1))
        console.accounts.nobodys_hash.cache_clear()
        yield
        console.accounts.nobodys_hash.cache_clear()
