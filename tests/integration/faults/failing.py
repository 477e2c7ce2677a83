"""Jobs that fail at nodes with real certificates and ports within the test's process, and what makes them fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.jobs.runner import run_job
from jobs.results.result import Result
from jobs.spec.job import JobSpec
from link.core import Receiver, Transport
from link.errors import ComineError
from mining.reference.pooled import brute_force
from party.server import Node
from protos.v1.link_pb2 import Frame
from tests.jobs.results.made import supports
from tests.party.nodes import DATA, Nodes, Rows, brief

STRATEGIES = ("level-wise", "one-shot")
MANY = "max_running = 64"


async def job(nodes: Nodes, spec: JobSpec) -> Result:
    """Runs a job as `comine job run` does."""
    return await run_job(spec, nodes.authority.issue("analyst", "coordinator"), nodes.addresses)


async def failed(nodes: Nodes, spec: JobSpec) -> ComineError:
    """Runs a job that must fail, with one sentence."""
    with pytest.raises(ComineError) as caught:
        await job(nodes, spec)
    assert caught.value.message
    assert "\n" not in caught.value.message
    return caught.value


def expected(data: dict[str, Rows], min_count: int) -> dict[frozenset[str], int]:
    return brute_force([row for rows in data.values() for row in rows], min_count)


async def all_is_well(nodes: Nodes) -> None:
    """The next job succeeds at every node."""
    assert supports(await job(nodes, brief())) == {
        items: count for items, count in expected(DATA, 36).items() if len(items) == 1
    }
    assert [node.host.running for node in nodes.nodes.values()] == [0] * len(nodes.nodes)


def wrap(node: Node, wrapper: Callable[[Transport], Transport]) -> None:
    """Puts something between the node's next jobs and the wire."""
    link_open = node.link.open

    def opened(*args: Any) -> Any:
        return wrapper(link_open(*args))

    node.link.open = opened  # type: ignore[assignment, method-assign]


def unwrap(node: Node) -> None:
    """Undoes `wrap`."""
    del node.link.open


class Passing:
    """A transport that shows each outbound frame to `look`, which may change it."""

    def __init__(self, inner: Transport, look: Callable[[Frame], None]) -> None:
        self._inner, self._look = inner, look

    def attach(self, receiver: Receiver) -> None:
        self._inner.attach(receiver)

    async def send(self, to: str, frame: Frame) -> None:
        self._look(frame)
        await self._inner.send(to, frame)

    async def close(self, *, hurried: bool = False) -> None:
        await self._inner.close(hurried=hurried)


def at(lane: str, change: Callable[[Frame], None]) -> Callable[[Transport], Transport]:
    """Changes a party's first frame on a lane whose path holds `lane`."""

    def wrapper(inner: Transport) -> Transport:
        done = list[Frame]()

        def look(frame: Frame) -> None:
            if not done and lane in frame.lane:
                done.append(frame)
                change(frame)

        return Passing(inner, look)

    return wrapper


def hello(**fields: Any) -> Callable[[Frame], None]:
    from protos.v1.link_pb2 import Hello

    def change(frame: Frame) -> None:
        greeting = Hello.FromString(frame.body)
        for name, value in fields.items():
            setattr(greeting, name, value)
        frame.body = greeting.SerializeToString()

    return change
