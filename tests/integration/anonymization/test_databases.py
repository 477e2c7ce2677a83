"""Releases of tables in a PostgreSQL and a MariaDB server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.anonymization.patients import PATIENTS, World, ended, running
from tests.mysql_server import PASSWORD as MYSQL_PASSWORD
from tests.mysql_server import mysql_server
from tests.party.nodes import refused
from tests.postgres_server import PASSWORD as POSTGRES_PASSWORD
from tests.postgres_server import postgres_server

pytestmark = pytest.mark.turn(2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("server", "word"),
    [
        pytest.param(postgres_server, POSTGRES_PASSWORD, id="postgres"),
        pytest.param(mysql_server, MYSQL_PASSWORD, id="mysql"),
    ],
)
@pytest.mark.usefixtures("here")
def test_releases_of_databases(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    server: Callable[[], AbstractContextManager[Any]],
    word: str,
) -> None:
    """They are those of the same rows in a file; who may not read them learns nothing of where they lie."""
    names, *lines = PATIENTS.splitlines()
    types = "id varchar(9), name varchar(20), age int, sex varchar(1), disease varchar(20)"
    rows = ", ".join("('{}', '{}', {}, '{}', '{}')".format(*line.split(",")) for line in lines)
    source, node, kept = 'source = "patients.csv"\nformat = "csv"\n', tmp_path / "north.toml", tmp_path / "word"
    kept.write_text(word)
    kept.chmod(0o600)
    monkeypatch.setenv("WORD", word)

    async def released(world: World, name: str) -> bytes:
        await world.hub.fetch(world.request(), tmp_path / name)
        return (tmp_path / name / "release.csv").read_bytes()

    async def test() -> None:
        with server() as found:
            found.run(f"CREATE TABLE patients ({types})", f"INSERT INTO patients VALUES {rows}")
            query = f"SELECT {names} FROM patients ORDER BY id"
            database = f'source = "{found.url}"\nformat = "sql"\nquery = "{query}"\n'
            async with running(tmp_path) as world:
                usual = node.read_text()
                expected = await released(world, "expected")
                for how in ('password_env = "WORD"\n', 'password_file = "word"\nengine = "processes"\n'):
                    node.write_text(usual.replace(source, database + how))
                    assert await world.node.reload(node) == ("dataset patients changed",)
                    assert await released(world, how[:12]) == expected
                kept.write_text("another")
                refusal = await refused(ended(world.stub("hub").Anonymize(world.request(model={"k": 9}))))
                reason = (tmp_path / "state/north/anonymization/patients.reason").read_text()
                assert not [each for each in ("another", str(found.folder)) if each in refusal.sentence]
                assert "another" not in reason
                assert "password" in reason

    asyncio.run(test())
