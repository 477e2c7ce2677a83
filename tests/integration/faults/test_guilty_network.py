"""Who is at fault on the wire: bytes that are spoilt between two members cost a connection, not the job, and nobody is
accused of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

import pytest

from coordinator.jobs.runner import run_job
from jobs.federation import Federation
from jobs.kinds.itemsets_finding import FoundItemsets
from jobs.results.result import Result
from link.errors import ComineError
from link.pki.authority import Authority
from tests.examples import ALL, TURN, in_turn
from tests.party.files import free_ports
from tests.party.nodes import Nodes, brief, hold, running

pytestmark = [pytest.mark.turn(2), pytest.mark.slow]

Way = Literal["up", "down"]
WAYS: Final[tuple[Way, ...]] = ("up", "down")
KINDS: Final[dict[str, Callable[[bytes, int], bytes | None]]] = {
    "a bit": lambda data, at: data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :],
    "twice": lambda data, at: data + data,
    "garbage": lambda data, at: bytes(byte * 77 + 13 & 255 for byte in data),
    "reset": lambda data, at: None,
}
FAULTS: Final = [  # every other has each kind
    (way, kind) for number, kind in enumerate(KINDS) for way in (WAYS[::-1] if number % 2 else WAYS)
]


class Wire:
    """A line to one address, which spoils what passes once, at a byte of its own choosing.

    Attributes:
        passed: Bytes so far, up from the one who dials and down to it.
        fault: The way, the byte and the kind of the fault to come.
        spoilt: Whether it has come.
        closed: Whether nobody gets through any more.
    """

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._host, self._port = host, int(port)
        self.passed: dict[Way, int] = {"up": 0, "down": 0}
        self.fault: tuple[Way, int, str] | None = None
        self.spoilt = self.closed = False
        self._lines: set[asyncio.Task[None]] = set()  # a half-closed line is held by nobody else: it would be collected

    async def open(self, port: int = 0) -> str:
        """Begins to listen, perhaps once more; where."""
        self.closed = False
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port)
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        """Ends all lines too."""
        self.closed = True
        self._server.close()
        for line in self._lines:
            line.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.closed:  # one that was taken in just before
            writer.transport.abort()
            return
        line = asyncio.create_task(self._carry(reader, writer))
        self._lines.add(line)
        line.add_done_callback(self._lines.discard)
        line.add_done_callback(lambda _: writer.transport.abort())  # also of a line that was ended before it began

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(self._host, self._port)
        except OSError:
            return
        try:
            async with asyncio.TaskGroup() as ways:
                ways.create_task(self._pump(reader, far_writer, "up"))
                ways.create_task(self._pump(far_reader, writer, "down"))
        except* OSError:
            pass
        finally:
            far_writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: Way) -> None:
        while data := await reader.read(1 << 16):
            before = self.passed[way]
            self.passed[way] += len(data)
            if self.fault is not None and self.fault[0] == way and self.fault[1] < self.passed[way]:
                spoilt = KINDS[self.fault[2]](data, max(0, self.fault[1] - before))
                self.fault, self.spoilt = None, True
                if spoilt is None:
                    raise ConnectionResetError
                data = spoilt
            writer.write(data)
            await writer.drain()
        writer.write_eof()


async def all_running(nodes: Nodes) -> None:
    while any(node.host.running == 0 for node in nodes.nodes.values()):  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.01)


def test_what_is_spoilt_on_the_way_to_the_coordinator_does_not_end_a_job(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    """Whenever it happens while the job runs."""

    async def test() -> None:
        async with running(tmp_path) as nodes:
            hub = nodes.authority.issue("analyst", "coordinator")
            for way, kind in in_turn(FAULTS, 3):
                with subtests.test(way=way, kind=kind):
                    wire = Wire(nodes.addresses["south"])
                    addresses = {**nodes.addresses, "south": await wire.open()}
                    release = [hold(node) for node in nodes.nodes.values()]
                    job = asyncio.create_task(run_job(brief(deadline="5m"), hub, addresses))
                    await all_running(nodes)
                    await asyncio.sleep(0.2)  # the coordinator watches by then; earlier faults are of the next test
                    wire.fault = (way, wire.passed[way], kind)
                    for each in release:
                        each.set()
                    assert isinstance(await job, Result)
                    assert wire.spoilt
                    await wire.close()

    asyncio.run(test())


PARTS = 8  # of a job, each of which is spoilt at its first byte


@pytest.mark.parametrize("way", WAYS)
def test_what_is_spoilt_at_any_byte_is_nobodys_inner_fault(tmp_path: Path, subtests: pytest.Subtests, way: Way) -> None:
    """From the first handshake to the result."""

    async def test() -> None:
        async with running(tmp_path) as nodes:
            hub = nodes.authority.issue("analyst", "coordinator")

            async def job(fault: tuple[Way, int, str] | None) -> tuple[Result | ComineError, Wire]:
                wire = Wire(nodes.addresses["south"])
                wire.fault = fault
                try:
                    addresses = {**nodes.addresses, "south": await wire.open()}
                    # Where the length of a record is spoilt, the other end waits for the rest; the call is made again
                    # after a minute, which a job must have left.
                    return await run_job(brief(deadline="5m"), hub, addresses), wire
                except ComineError as error:
                    return error, wire
                finally:
                    await wire.close()

            found, wire = await job(None)
            assert isinstance(found, Result)
            for part in in_turn(range(PARTS), 4):
                kind = "reset" if part // 2 % 2 else "a bit"
                with subtests.test(kind=kind, part=part):
                    before = [node.store.all() for node in nodes.nodes.values()]
                    found, spoilt = await job((way, wire.passed[way] * part // PARTS, kind))
                    assert spoilt.spoilt
                    if isinstance(found, ComineError):  # at the first contact only, before anybody was asked
                        assert (found.exit_code, found.party) == (20, "south"), found
                        assert [node.store.all() for node in nodes.nodes.values()] == before

    asyncio.run(test())


def by_wire(folder: Path, dialling: str, dialled: str, port: int) -> Callable[[Authority], None]:
    """Has one party dial another at a port where a wire may listen."""

    def prepare(_: Authority) -> None:
        address = Federation.load(folder / "federation.toml").addresses[dialled]
        text = (folder / "federation.toml").read_text()
        (folder / "by-wire.toml").write_text(text.replace(address, f"127.0.0.1:{port}"))
        file = folder / f"{dialling}.toml"
        file.write_text(file.read_text().replace('"federation.toml"', '"by-wire.toml"'))

    return prepare


# Who dials, and whom; and in which twelfth of a job: while it begins, in its midst, and as it ends. Each kind of fault
# comes each way at one of them.
PAIRS = (("east", "north", 0), ("east", "south", 7), ("north", "south", 10))


@pytest.mark.parametrize("place", in_turn(range(len(PAIRS)), len(PAIRS)))
def test_what_is_spoilt_between_two_parties_does_not_end_a_job(
    tmp_path: Path, subtests: pytest.Subtests, place: int
) -> None:
    dialling, dialled, part = PAIRS[place]
    (port,) = free_ports(1)

    async def test() -> None:
        dialled_by_wire = by_wire(tmp_path, dialling, dialled, port)
        async with running(tmp_path, prepare=dialled_by_wire) as nodes:
            hub = nodes.authority.issue("analyst", "coordinator")
            wire = Wire(nodes.addresses[dialled])
            await wire.open(port)
            for _ in range(2):  # the second is like all that follow: its parties have met
                before = dict(wire.passed)
                expected = await run_job(brief(deadline="5m"), hub, nodes.addresses)
            one_job = {way: wire.passed[way] - before[way] for way in wire.passed}
            for way, kind in FAULTS if ALL else FAULTS[(TURN + place) % len(PAIRS) :: len(PAIRS)]:
                with subtests.test(way=way, kind=kind):
                    wire.spoilt, wire.fault = False, (way, wire.passed[way] + one_job[way] * part // 12, kind)
                    found = await run_job(brief(deadline="5m"), hub, nodes.addresses)
                    assert wire.spoilt
                    assert _itemsets(found) == _itemsets(expected)
            await wire.close()

    asyncio.run(test())


def _itemsets(result: Result) -> list[object]:
    assert isinstance(result.finding, FoundItemsets)
    return sorted(result.finding.itemsets, key=str)
