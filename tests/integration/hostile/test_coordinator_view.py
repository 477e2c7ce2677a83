"""What a coordinator sees of a job: every message that comes to it, over two worlds that differ in hidden counts alone.

The worlds have the same declared output. Then, without what differs from run to run by nature (ids, nonces, signatures,
certificates, clocks and the job's costs, which the statement declares), the messages must be the same, field by field.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from google.protobuf.message import Message

from coordinator.jobs.runner import run_job
from jobs.kinds.packed_itemsets import unpack
from jobs.loading import job_of
from jobs.spec.job import JobSpec
from link.pki.authority import Authority
from link.transports.grpc_channel import dial
from protos.v1 import control_pb2 as control
from tests.examples import crossed
from tests.party.nodes import Rows, running

pytestmark = pytest.mark.turn(2)

Partition = Literal["horizontal", "vertical"]
Disclose = Literal["supports", "frequent"]
World = dict[str, tuple[int, int]]

HOLDERS = {"north": ("all", "c", "r"), "south": ("d",), "east": ("e",)}  # of columns, in vertical jobs
N_UNITS, LEAST = 60, 0.3
# From where to where, in sixtieths of all rows, an item is. {c, e} is frequent; r, and d beside c or e, are not.
FIRST: World = {"all": (0, 60), "c": (0, 20), "e": (0, 25), "d": (15, 34), "r": (57, 60)}
OTHER_HIDDEN: World = {"all": (0, 60), "c": (0, 20), "e": (0, 25), "d": (8, 27), "r": (44, 60)}
OTHER_SUPPORTS: World = {"all": (0, 60), "c": (0, 22), "e": (0, 27), "d": (11, 31), "r": (46, 60)}
UNIT: dict[Partition, int] = {"horizontal": 301, "vertical": 7}  # rows


def people(world: World, unit: int) -> list[list[str]]:
    """The items of every row, in an order of their own."""
    rows = [[name for name, (low, high) in world.items() if low * unit <= i < high * unit] for i in range(60 * unit)]
    return [rows[i] for i in np.random.default_rng(1).permutation(len(rows))]


def hidden_counts(world: World, unit: int) -> set[int]:
    """The supports of infrequent itemsets, of one item and of two."""
    rows = list(map(set, people(world, unit)))
    counts = {sum(set(items) <= row for row in rows) for n in (1, 2) for items in combinations(sorted(world), n)}
    return {count for count in counts if 0 < count < LEAST * len(rows)}


def job(partition: Partition, disclose: Disclose) -> JobSpec:
    contents: dict[str, dict[str, Any]] = {
        "job": {
            "name": "weekly",
            "task": "rules",
            "parties": list(HOLDERS),
            "dataset": "baskets" if partition == "horizontal" else "people",
            "partition": partition,
        },
        "itemsets": {"min_support": str(LEAST), "disclose": disclose},
        "rules": {"min_confidence": "0.6"},
    }
    return job_of(contents, "the test", Path())


class Tap:
    """A channel to a party that notes each message as it comes off the wire, and every call.

    Args:
        channel: The coordinator's.
        party: At its other end.
        seen: Party, method and bytes of each message.
        calls: For their metadata.
    """

    def __init__(self, channel: Any, party: str, seen: list[tuple[str, str, bytes]], calls: list[Any]) -> None:
        self._channel, self._party, self._seen, self._calls = channel, party, seen, calls

    def __getattr__(self, name: str) -> Any:
        if name not in ("unary_unary", "unary_stream"):
            return getattr(self._channel, name)  # no other kind of call is in the control service

        def method(path: str, *, response_deserializer: Callable[[bytes], Message], **more: Any) -> Any:
            def read(data: bytes) -> Message:
                self._seen.append((self._party, path.rpartition("/")[2], data))
                return response_deserializer(data)

            call = getattr(self._channel, name)(path, response_deserializer=read, **more)

            def begin(*arguments: Any, **options: Any) -> Any:
                self._calls.append(call(*arguments, **options))
                return self._calls[-1]

            return begin

        return method


ANSWERS: dict[str, type[Message]] = {
    "Describe": control.SignedDescription,
    "Propose": control.Decision,
    "Queue": control.Place,
    "Start": control.Started,
    "Watch": control.JobEvent,
    "Result": control.ResultPart,
    "Cancel": control.Cancelled,
}
SIGNED: dict[str, type[Message]] = {
    "SignedDescription.description": control.Description,
    "SignedApproval.approval": control.Approval,
    "ResultHeader.release": control.Release,
}
DECLARED = {  # what every run has of its own, and what the statement tells of the course of a job
    *("job_id", "session", "signature", "certificate", "now", "decided"),
    *("bytes_sent", "bytes_received", "rounds", "seconds"),
}


def fields(message: Message, at: str = "") -> Iterator[tuple[str, Any]]:
    """Every field that is set, by its path; what was signed is read, and nothing unknown hides anywhere."""
    known = type(message)()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    assert known.ByteSize() == message.ByteSize()
    for descriptor, value in message.ListFields():
        place = f"{at}.{descriptor.name}"
        inner = SIGNED.get(f"{message.DESCRIPTOR.name}.{descriptor.name}")
        for each in [value] if isinstance(value, (str, bytes, int, float, Message)) else value:
            if descriptor.name in DECLARED:
                continue
            if inner is not None:
                assert isinstance(each, bytes)
                yield from fields(inner.FromString(each), place)
            elif isinstance(each, Message):
                yield from fields(each, place)
            else:
                yield place, each


def view(seen: list[tuple[str, str, bytes]]) -> dict[str, list[tuple[str, Any]]]:
    """What came from each party, normalised."""
    found: dict[str, list[tuple[str, Any]]] = {party: [] for party in HOLDERS}
    for party, method, data in seen:
        told = list(fields(ANSWERS[method].FromString(data), method))
        if method == "Watch":  # how often a watcher is told of one step is a matter of time
            told = [(place, value) for place, value in told if place != "Watch.done"]
            if ("Watch.state", control.APPROVED) in told or [told] == [found[party][-len(told) :]]:
                continue
        found[party] += told
    return found


def run(
    folder: Path, world: World, partition: Partition, disclose: Disclose, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[tuple[str, str, bytes]], list[Any]]:
    """Runs a job among three nodes: all messages that came to the coordinator, and the metadata that came with them."""
    seen: list[tuple[str, str, bytes]] = []
    calls: list[Any] = []
    rows = people(world, UNIT[partition])
    baskets: dict[str, Rows] = {name: rows[i :: len(HOLDERS)] for i, name in enumerate(HOLDERS)}

    def tables(authority: Authority) -> None:
        for name, columns in HOLDERS.items():
            lines = [",".join(("id", *columns))]
            lines += [",".join((f"p{i}", *("y" if c in row else "" for c in columns))) for i, row in enumerate(rows)]
            (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
            dataset = f'name = "people"\nkind = "table"\nsource = "{name}.csv"\nformat = "csv"\nid = "id"\n'
            with (folder / f"{name}.toml").open("a") as config:
                config.write(f"[[dataset]]\n{dataset}")

    async def test() -> None:
        async with running(folder, data=baskets, prepare=tables) as made:
            identity = made.clients["north"].identity
            await run_job(job(partition, disclose), identity, made.addresses)
            for call in calls:
                metadata.extend(await call.initial_metadata() or ())
                metadata.extend(await call.trailing_metadata() or ())

    metadata: list[Any] = []
    monkeypatch.setattr("party.jobs.job.PROGRESS_S", 0.0)  # every step is told, however short
    monkeypatch.setattr("coordinator.node_client.dial", lambda *given: Tap(dial(*given), given[1], seen, calls))
    folder.mkdir()
    asyncio.run(test())
    return seen, metadata


@pytest.mark.slow
@pytest.mark.parametrize(
    ("disclose", "other", "partition"),
    crossed([("supports", OTHER_HIDDEN), ("frequent", OTHER_SUPPORTS)], ["horizontal", "vertical"]),
)
def test_counts_that_are_not_declared_change_nothing_that_the_coordinator_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partition: Partition, disclose: Disclose, other: World
) -> None:
    unit = UNIT[partition]
    hidden = hidden_counts(FIRST, unit) | hidden_counts(other, unit)
    assert hidden_counts(FIRST, unit) != hidden_counts(other, unit)
    assert min(hidden) > 20  # no state, number of parties or the like is as large
    views = []
    for number, world in enumerate((FIRST, other)):
        seen, metadata = run(tmp_path / str(number), world, partition, disclose, monkeypatch)
        assert {method for _, method, _ in seen} >= {"Describe", "Propose", "Start", "Watch", "Result"}
        assert metadata == []
        views.append(view(seen))
        for _, value in (each for told in views[-1].values() for each in told):
            if isinstance(value, int):
                assert value not in hidden
            elif isinstance(value, str):
                assert not {str(count) for count in hidden} & {word.strip(",.") for word in value.split()}
    assert views[0] == views[1]

    (table,) = {value for told in views[0].values() for place, value in told if place == "Result.table"}
    itemsets, rules = unpack(table)
    counts = {count for _, level in itemsets.levels for count in level.tolist()}
    if disclose == "supports":
        assert (counts, rules) == ({60 * unit, 20 * unit, 25 * unit, 19 * unit}, None)  # rules follow from counts
    else:
        assert (counts, itemsets.counted, rules is None) == ({0}, False, False)


@pytest.mark.slow
def test_a_support_that_is_declared_makes_a_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worlds = enumerate((FIRST, OTHER_SUPPORTS))
    first, other = (run(tmp_path / str(i), world, "vertical", "supports", monkeypatch)[0] for i, world in worlds)
    assert view(first) != view(other)
