"""Nodes whose rows lie elsewhere: a site over TLS, a PostgreSQL and a MariaDB server, in joint jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from jobs.kinds.packed_itemsets import unpack
from link.pki.authority import Authority
from mining.reference.pooled import brute_force
from protos.v1 import control_pb2 as control
from tests.mysql_server import PASSWORD as MYSQL_PASSWORD
from tests.mysql_server import mysql_server
from tests.party.nodes import DATA, Nodes, running, weekly
from tests.postgres_server import PASSWORD as POSTGRES_PASSWORD
from tests.postgres_server import postgres_server
from tests.site import TOKEN, trusted_site

POOLED = [row for rows in DATA.values() for row in rows]
LEAST = 36  # a fifth of them
QUERY = "SELECT receipt AS id, article AS item FROM sales ORDER BY receipt, article"


def reading(folder: Path, sources: dict[str, dict[str, str]]) -> Callable[[Authority], None]:
    """Lets parties read other sources."""

    def prepare(_authority: Authority) -> None:
        for party, keys in sources.items():
            path = folder / f"{party}.toml"
            lines = "".join(f'{key} = "{value}"\n' for key, value in keys.items())
            usual = f'source = "{party}.dat"\nformat = "basket"\n'
            text = path.read_text()
            assert usual in text
            path.write_text(text.replace(usual, lines))

    return prepare


def text_of(party: str) -> str:
    return "".join(" ".join(row) + "\n" for row in DATA[party])


async def ends(nodes: Nodes) -> set[tuple[int, str]]:
    _, events = await nodes.run(weekly())
    return {(event.state, event.error_code) for event in events.values()}


GOOD, BAD = {(control.SUCCEEDED, "")}, {(control.FAILED, "E101")}


def test_a_site_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows are read for a job, compared with those of the last one, and read by nobody who does not trust it."""
    monkeypatch.setenv("WORD", TOKEN)

    async def test() -> None:
        with trusted_site(tmp_path / "site", monkeypatch) as found:
            found.files["/north.dat"] = text_of("north").encode()
            source = {"source": found.url("/north.dat"), "format": "basket", "password_env": "WORD"}
            prepare = reading(tmp_path, {"north": source})
            async with running(tmp_path, policy="min_new_rows = 5", prepare=prepare) as nodes:
                job_id, events = await nodes.run(weekly())
                assert {event.state for event in events.values()} == {control.SUCCEEDED}
                _, packed = await nodes.clients["north"].result(job_id)
                mined = unpack(packed).itemsets
                assert {frozenset(items): count for items, count in mined.rows()} == brute_force(POOLED, LEAST)
                assert await ends(nodes) == GOOD  # the very same rows
                found.files["/north.dat"] = text_of("north").encode() + b"item0 item1\n"
                assert await ends(nodes) == BAD
                assert "rule min_new_rows" in nodes.logs["north"].getvalue()
                found.files["/north.dat"] = text_of("north").encode() + b"item0 item1\n" * 5
                assert await ends(nodes) == GOOD
                monkeypatch.delenv("SSL_CERT_FILE")
                found.files["/north.dat"] = text_of("north").encode() + b"item0 item1\n" * 20
                job_id, events = await nodes.run(weekly())
                assert {event.error_party for event in events.values()} == {"north"}
                for event in events.values():
                    assert "127.0.0.1" not in event.error_message
                    assert "certificate" not in event.error_message
                assert "certificate is not trusted" in nodes.logs["north"].getvalue()
                assert TOKEN not in nodes.logs["north"].getvalue()

    asyncio.run(test())


@pytest.mark.slow
def test_databases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NORTH_WORD", POSTGRES_PASSWORD)
    monkeypatch.setenv("SOUTH_WORD", MYSQL_PASSWORD)

    async def test() -> None:
        with ExitStack() as servers:
            sources = {}
            for party, server in (
                ("north", servers.enter_context(postgres_server())),
                ("south", servers.enter_context(mysql_server())),
            ):
                rows = [f"({place}, '{item}')" for place, row in enumerate(DATA[party]) for item in row]
                server.run(
                    "CREATE TABLE sales (receipt int, article varchar(20))",
                    f"INSERT INTO sales VALUES {', '.join(rows)}",
                )
                word = f"{party.upper()}_WORD"
                sources[party] = {"source": server.url, "format": "sql", "query": QUERY, "password_env": word}
                last = server
            prepare = reading(tmp_path, sources)
            async with running(tmp_path, policy="min_new_rows = 5", prepare=prepare) as nodes:
                job_id, events = await nodes.run(weekly())
                assert {event.state for event in events.values()} == {control.SUCCEEDED}
                _, packed = await nodes.clients["north"].result(job_id)
                mined = unpack(packed).itemsets
                assert {frozenset(items): count for items, count in mined.rows()} == brute_force(POOLED, LEAST)
                last.run("INSERT INTO sales VALUES (1000, 'item0')")
                assert await ends(nodes) == BAD
                assert "rule min_new_rows" in nodes.logs["south"].getvalue()

    asyncio.run(test())
