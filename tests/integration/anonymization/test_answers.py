"""A node that sends something else than was asked for is named."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from link.errors import MalformedMessage, PeerError
from party.services.anonymization.service import ReleaseService
from protos.v1 import anonymization_pb2 as pb
from tests.errors import fails
from tests.integration.anonymization.patients import running, until, written


def _cut(parts: list[pb.ReleasePart]) -> list[pb.ReleasePart]:
    parts[0].data = parts[0].data[: len(parts[0].data) // 2]
    return parts


def _other_rows(parts: list[pb.ReleasePart]) -> list[pb.ReleasePart]:
    import pyarrow as pa

    with pa.ipc.open_stream(parts[0].data) as stream:
        rows = stream.read_all()
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows.slice(1))
    parts[0].data = sink.getvalue()
    return parts


def _other_types(parts: list[pb.ReleasePart]) -> list[pb.ReleasePart]:
    import pyarrow as pa

    rows = pa.table({"age": [[1, 2]], "sex": [{"of": "whom"}]})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    parts[0].data = sink.getvalue()
    return parts


def _contents(at: int, data: bytes) -> Callable[[list[pb.ReleasePart]], list[pb.ReleasePart]]:
    def changed(parts: list[pb.ReleasePart]) -> list[pb.ReleasePart]:
        parts[at].data = data
        return parts

    return changed


def _claims(old: bytes, new: bytes) -> Callable[[list[pb.ReleasePart]], list[pb.ReleasePart]]:
    def changed(parts: list[pb.ReleasePart]) -> list[pb.ReleasePart]:
        assert old in parts[2].data
        parts[2].data = parts[2].data.replace(old, new)
        return parts

    return changed


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_cut, "rows that are no Arrow stream"),
        (_other_rows, "does not hold what its certificate claims: SHA-256 of release.csv"),
        (_claims(b'"k": 5', b'"k": 50'), "does not hold what its certificate claims: digest"),
        (lambda parts: [parts[1], parts[0], parts[2]], "files in an order of its own"),
        (lambda parts: parts[:2], "a release that lacks a file"),
        (_other_types, "rows that are no table of single cells"),
        (_contents(1, b"PAR1"), "does not hold what its certificate claims: SHA-256 of release.parquet"),
        (_contents(2, b'{"schema": "\xff"}'), "does not hold what its certificate claims: certificate"),
        (lambda parts: [*parts, pb.ReleasePart(file=9, data=b"x")], "files in an order of its own"),  # type: ignore[arg-type]
    ],
)
@pytest.mark.usefixtures("here")
def test_a_node_that_sends_something_else_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[..., list[pb.ReleasePart]], words: str
) -> None:
    honest = ReleaseService.anonymize

    async def other(self: ReleaseService, request: pb.AnonymizeRequest, coordinator: str) -> AsyncIterator[Any]:
        for part in change([part async for part in honest(self, request, coordinator)]):
            yield part

    async def test() -> None:
        monkeypatch.setattr(ReleaseService, "anonymize", other)
        async with running(tmp_path) as world:
            with pytest.raises(MalformedMessage) as found:
                await world.hub.fetch(world.request(), tmp_path / "out")
            assert (found.value.party, words in found.value.message) == ("north", True), found.value.message

    asyncio.run(test())
    assert written(tmp_path) == set()


def test_rules_that_cannot_be_read_name_the_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            for rules in (pb.AnonymizationRules(require="{"), pb.AnonymizationRules(require="{}", levels="[" * 10**5)):
                monkeypatch.setattr(ReleaseService, "rules", lambda _, __, told=rules: {"patients": told})
                with fails("E402") as found:
                    await world.hub.datasets()
                assert found.value.party == "north"

    asyncio.run(test())


@pytest.mark.usefixtures("here")
def test_a_weaker_release_than_asked_for_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = ReleaseService.anonymize

    async def weaker(self: ReleaseService, request: pb.AnonymizeRequest, coordinator: str) -> AsyncIterator[Any]:
        told = json.loads(request.configuration)
        request.configuration = json.dumps(told | {"model": {"k": 5}})
        async for part in honest(self, request, coordinator):
            yield part

    async def test() -> None:
        monkeypatch.setattr(ReleaseService, "anonymize", weaker)
        async with running(tmp_path) as world:
            with fails("E402"):
                await world.hub.fetch(world.request(model={"k": 6}), tmp_path / "out")

    asyncio.run(test())


@pytest.mark.usefixtures("here")
def test_a_connection_that_breaks_midway_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = ReleaseService.anonymize

    async def stalling(self: ReleaseService, request: pb.AnonymizeRequest, coordinator: str) -> AsyncIterator[Any]:
        async for part in honest(self, request, coordinator):
            yield part
            await asyncio.Event().wait()

    async def test() -> None:
        monkeypatch.setattr(ReleaseService, "anonymize", stalling)
        async with running(tmp_path) as world:
            fetching = asyncio.ensure_future(world.hub.fetch(world.request(), tmp_path / "out"))
            await until(lambda: list(tmp_path.glob(".out.*/rows.arrow")))
            await world.node.stop()
            monkeypatch.setattr(world.node, "stop", lambda: asyncio.sleep(0))
            with pytest.raises(PeerError) as found:
                await fetching
            assert found.value.party == "north"

    asyncio.run(test())
    assert written(tmp_path) == set()
