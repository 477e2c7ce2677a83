"""Whatever is sent to a shuffler is answered, with a code and a sentence, and never as a fault of its own.

An answer that says again what somebody wrote must be one that gRPC can send: half of a character in a route's document
once left the caller without an answer, or with a status that has no code.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import grpc

from protos.v1 import shuffle_pb2 as pb
from tests.party.services.shuffler.nodes import World, route_for, running

ANSWER_S = 60.0  # on a busy machine
STRANGE: list[Any] = ["\ud800", "€" * 1000, "a\nb", "\0", "\U0001f600" * 400, 5, None]
FAULTS = (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN)


def documents() -> Iterator[bytes]:
    """The document of a route with something else in the place of each of its values, and of parts of these."""
    honest = json.loads(route_for(name="forged").document())
    for (key, value), strange in product(honest.items(), STRANGE):
        instead = [strange, [*value, strange], [[strange, 1]]] if isinstance(value, list) else [strange]
        for each in instead:
            yield json.dumps(honest | {key: each}, sort_keys=True, separators=(",", ":")).encode()
    yield b'{"version":' + b"[" * 100_000


def heads(digest: bytes) -> Iterator[pb.BatchPart]:
    """Batches of no shuffler, of every size and number, with statements that are none."""
    for reports in (0, 5, 2**63):
        for batch in (0, 1, 2**64 - 1):
            for statement in ([], [pb.SignedStatement(statement=b"\xff", signature=b"x", certificate=b"\xff")]):
                head = pb.BatchHead(route=digest, batch=batch, reports=reports, statements=statement)
                yield from (pb.BatchPart(head=head, reports=data, last=True) for data in (b"", bytes(5 * 176)))
    yield pb.BatchPart()
    yield pb.BatchPart(head=pb.BatchHead(route=b"\xff" * 9))


async def _ended(call: Any) -> grpc.aio.AioRpcError | None:
    """The refusal, where there is one."""
    try:
        if hasattr(call, "__aiter__"):
            async for _ in call:
                pass
        else:
            await call
    except grpc.aio.AioRpcError as error:
        return error
    return None


async def check(call: Any, what: object) -> None:
    """The call is answered, or refused with a code."""
    refusal = await asyncio.wait_for(_ended(call), ANSWER_S)
    if refusal is not None:
        told = (what, refusal.code(), refusal.details())
        assert "comine-code" in dict(refusal.trailing_metadata() or ()), told
        assert refusal.code() not in FAULTS, told


def ran(folder: Path, test: Any) -> None:
    async def run() -> None:
        async with running(folder) as world:
            await test(world)
            for log in world.logs.values():
                assert "call failed" not in log.getvalue()

    asyncio.run(run())


def test_documents_of_routes(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        analyst = world.analyst()
        for document in documents():
            await check(analyst.stub.Create(pb.CreateRouteRequest(document=document)), document[:300])

    ran(tmp_path, test)


def test_names_of_routes(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        analyst, fleet = world.analyst(), world.caller("fleet")
        for name in ("€" * 1000, "a\nb", "\0", "\U0001f600" * 400, "x" * 5000):
            await check(analyst.stub.Describe(pb.DescribeRouteRequest(route=name)), name)
            await check(analyst.stub.Flush(pb.FlushRequest(route=name)), name)
            await check(analyst.stub.Retire(pb.RetireRouteRequest(route=name)), name)
            await check(analyst.stub.Collect(pb.CollectRequest(route=name)), name)
            await check(fleet.stub.Submit(iter([pb.SealedReports(route=name, reports=[b"x"])])), name)

    ran(tmp_path, test)


def test_batches_of_no_shuffler(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        route = route_for()
        await world.create(route)
        north = world.caller("north", "party", "south")
        for part in heads(route.digest):
            await check(north.stub.Forward(iter([part])), part.head)
        await check(north.stub.Forward(iter([])), "nothing")
        for after in (2**63, 2**64 - 1):
            await check(world.analyst("south").stub.Collect(pb.CollectRequest(route="weekly", after=after)), after)

    ran(tmp_path, test)


def test_a_store_that_cannot_be_used_any_more(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        sealed = await world.sealed(route_for(), range(6))
        service = world.nodes["north"].shuffler
        assert service.running is not None
        service.running.store.connection.close()
        analyst, reports = world.analyst(), [bytes(sealed[0])]
        await check(world.caller("fleet").stub.Submit(iter([pb.SealedReports(route="weekly", reports=reports)])), "")
        await check(analyst.stub.Describe(pb.DescribeRouteRequest(route="weekly")), "")
        await check(analyst.stub.Flush(pb.FlushRequest(route="weekly")), "")
        await check(analyst.stub.Retire(pb.RetireRouteRequest(route="weekly")), "")

    ran(tmp_path, test)
