"""What goes wrong at a party, in its data, its certificates or on the wire: one sentence, the right exit code, and
nodes that run the next job. The nodes have real certificates and ports, and live in the test's process."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import party.jobs.session_host
from coordinator.jobs import lifecycle
from coordinator.jobs.runner import run_job
from jobs.description import sign
from jobs.results.result import Result
from jobs.spec.job import JobSpec
from link.core import Receiver, Transport
from link.errors import ComineError, DeadlineExceeded, IdentityError, PeerError, PolicyDenied
from link.pki.authority import Authority, write_identity
from link.pki.trust import Trust
from link.transports import grpc_stream
from link.transports.faulty import FaultyTransport, Schedule
from link.transports.grpc_stream import enclose
from link.transports.grpc_transport import GrpcTransport
from mining.reference.pooled import brute_force
from party.config import PartyConfig
from party.jobs.context import JobContext
from party.node.logs import open_log
from party.server import Node
from protos.v1 import control_pb2 as control
from protos.v1.link_pb2 import Abort, Frame
from tests.errors import fails
from tests.jobs.results.made import supports
from tests.party.nodes import DATA, Nodes, Rows, hold, random_rows, running, weekly

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("few_fakes")]

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
    assert supports(await job(nodes, weekly())) == expected(DATA, 36)
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

    async def close(self) -> None:
        await self._inner.close()


# -- a party that dies ------------------------------------------------------------------------------------------------
async def lanes(nodes: Nodes, sender: Node, spec: JobSpec) -> set[str]:
    """The lanes on which a party sends in a job that fares well."""
    sent = set[str]()
    wrap(sender, lambda inner: Passing(inner, lambda frame: sent.add(frame.lane)))
    await job(nodes, spec)
    unwrap(sender)
    return sent


class Dying(FaultyTransport):
    """A party's transport that dies by a schedule, and which the others then lose soon."""

    def __init__(self, inner: Transport, schedule: Schedule, nodes: Nodes, name: str) -> None:
        super().__init__(inner, schedule)
        assert isinstance(inner, GrpcTransport)
        self._nodes, self._name, self._job_id = nodes, name, inner._job_id

    async def crash(self) -> None:
        await super().crash()
        while not self._nodes.bereave(self._name, self._job_id):  # noqa: ASYNC110 - not all have begun
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_party_that_dies_in_any_phase_is_named_and_the_next_job_succeeds(tmp_path: Path, strategy: str) -> None:
    spec = weekly(itemsets={"strategy": strategy}, deadline="120s")

    async def test() -> None:
        async with running(tmp_path, party=MANY) as nodes:
            south = nodes.nodes["south"]
            phases = await lanes(nodes, south, spec)
            assert {"hello", "/receipts"} <= phases
            assert len(phases) >= 15
            deaths = [Schedule(crash_lane=lane, crash_at=0) for lane in sorted(phases)]
            deaths.append(Schedule(crash_lane="/receipts", crash_at=1))
            schedules = iter(deaths)
            wrap(south, lambda inner: Dying(inner, next(schedules), nodes, "south"))
            for error in await asyncio.gather(*(failed(nodes, spec) for _ in deaths)):
                assert isinstance(error, PeerError)
                assert (error.exit_code, error.party) == (20, "south"), error
                assert "south was" in error.message
            unwrap(south)
            await all_is_well(nodes)

    asyncio.run(test())


def test_a_party_that_dies_before_its_start_is_named(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            hold(nodes.nodes["south"])
            started = asyncio.Event()

            def opened(inner: Transport) -> Transport:
                started.set()
                return inner

            wrap(nodes.nodes["south"], opened)
            task = asyncio.create_task(failed(nodes, weekly()))
            await started.wait()
            await nodes.crash("south")
            error = await task
            assert (error.exit_code, error.party) == (20, "south")
            assert "south" in error.message

    asyncio.run(test())


def test_a_party_whose_node_was_started_again_has_lost_the_job(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            hold(nodes.nodes["south"])
            hold(nodes.nodes["north"])  # so that no party notices before the coordinator does
            hold(nodes.nodes["east"])
            watched = asyncio.Event()

            def watcher(party: str, *_: object, **__: object) -> None:
                if party == "south":
                    watched.set()

            hub = nodes.authority.issue("analyst", "coordinator")
            task = asyncio.create_task(run_job(weekly(), hub, nodes.addresses, watcher))
            await watched.wait()
            await nodes.crash("south")
            again = Node(PartyConfig.load(tmp_path / "south.toml"), open_log("south", nodes.logs["south"]))
            try:
                await again.start()
                with fails("E200", party="south"):
                    await task
            finally:
                await again.stop()

    asyncio.run(test())


def test_a_party_that_dies_before_it_releases_is_named_at_the_deadline_and_gives_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its peers have done their parts and lose nobody; the coordinator waits in case that the node comes back."""
    monkeypatch.setattr(lifecycle, "MARGIN_S", 0.0)
    released = party.jobs.session_host.release

    async def test() -> None:
        async with running(tmp_path) as nodes:

            async def release(context: JobContext, *args: Any) -> Any:
                if context.identity.name == "south":
                    await nodes.crash("south")
                    await asyncio.Event().wait()
                return await released(context, *args)

            monkeypatch.setattr(party.jobs.session_host, "release", release)
            error = await failed(nodes, weekly(deadline="6s"))
            assert isinstance(error, DeadlineExceeded)
            assert error.exit_code == 60
            assert error.message.endswith("within its deadline of 6 s; it waited for south; south could not be reached")

    asyncio.run(test())


def test_a_party_that_died_before_it_released_is_named_as_soon_as_its_node_is_there_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = party.jobs.session_host.release

    async def test() -> None:
        async with running(tmp_path) as nodes:
            dead = asyncio.Event()

            async def release(context: JobContext, *args: Any) -> Any:
                if context.identity.name == "south":
                    await nodes.crash("south")
                    dead.set()
                    await asyncio.Event().wait()
                return await released(context, *args)

            monkeypatch.setattr(party.jobs.session_host, "release", release)
            ends = asyncio.ensure_future(failed(nodes, weekly()))
            await dead.wait()
            await nodes.restart("south")
            error = await ends
            assert (error.exit_code, error.party) == (20, "south")
            assert "was restarted while the job ran" in error.message

    asyncio.run(test())


def test_a_party_that_hangs_is_named_at_the_deadline(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            release = hold(nodes.nodes["south"])
            error = await failed(nodes, weekly(deadline="2s"))
            assert isinstance(error, DeadlineExceeded)
            assert error.exit_code == 60
            assert "south" in error.message
            release.set()
            await all_is_well(nodes)

    asyncio.run(test())


# -- a party that misbehaves ------------------------------------------------------------------------------------------
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


def put(**fields: Any) -> Callable[[Frame], None]:
    def change(frame: Frame) -> None:
        for name, value in fields.items():
            setattr(frame, name, value)

    return change


def hello(**fields: Any) -> Callable[[Frame], None]:
    from protos.v1.link_pb2 import Hello

    def change(frame: Frame) -> None:
        greeting = Hello.FromString(frame.body)
        for name, value in fields.items():
            setattr(greeting, name, value)
        frame.body = greeting.SerializeToString()

    return change


BROKEN: tuple[tuple[str, Callable[[Frame], None], int, str], ...] = (
    ("/task", put(body=b"\xff" * 20), 40, "cannot be read"),
    ("/task", put(body=bytes((3 << 20) + 1)), 40, "more than"),
    ("/task", put(body=bytes(5 << 20)), 40, "more than"),
    ("/task", put(body=bytes(9 << 20)), 40, "more than"),
    ("/task", put(type="comine.v1.Unheard"), 40, "that is not as it was made"),
    ("/task", put(lane="/task/elsewhere"), 40, "that is not as it was made"),
    ("hello", put(lane="/task"), 40, "that is not as it was made"),
    ("/task", put(last=False), 40, "that is not as it was made"),
    ("/task", put(session=bytes(32)), 40, "another session"),
    ("/task", put(seq=1 << 40), 40, "skipped"),
    ("/task", put(round=1 << 31), 40, "round"),
    ("/task", put(receiver="nobody"), 40, "not for this party"),
    ("/task", put(sender="east"), 20, "in another party's name"),
    ("/task", put(type=Abort.DESCRIPTOR.full_name, body=b"\xff" * 9), 40, "ended the job without a reason"),
    ("/receipts", put(body=b""), 20, "the certificate that south signed with"),
    ("hello", put(body=b"\xff" * 20), 40, "cannot be read"),
    ("hello", hello(version="0"), 10, "another version of the wire protocol"),
    ("hello", hello(suite="rot13"), 10, "another cryptographic suite"),
    ("hello", hello(nonce=b""), 40, "without a nonce"),
    ("hello", hello(nonce=bytes(16)), 20, "the signature of south is wrong"),
)


def test_a_party_that_breaks_the_rules_is_named(tmp_path: Path, subtests: pytest.Subtests) -> None:
    """At nodes that, each time, run the next job."""

    async def test() -> None:
        async with running(tmp_path, policy=f"max_unions = {4 * len(BROKEN)}\n") as nodes:
            for lane, change, exit_code, words in BROKEN:
                with subtests.test(lane=lane, words=words):
                    wrap(nodes.nodes["south"], at(lane, change))
                    try:
                        error = await failed(nodes, weekly(deadline="60s"))
                    finally:
                        unwrap(nodes.nodes["south"])
                    assert (error.exit_code, words in error.message) == (exit_code, True), error
                    assert "south" in error.message
                    await all_is_well(nodes)

    asyncio.run(test())


@pytest.mark.parametrize("sender", ["east", "north", "south"])
def test_a_party_that_sends_too_much_at_once_is_named_by_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sender: str
) -> None:
    """East dials both others, north dials south, and south is dialled by both."""

    def swollen(frame: Frame) -> bytes:
        return bytes(100_000_000) if frame.sender == sender and "/task" in frame.lane else enclose(frame)

    async def test() -> None:
        async with running(tmp_path) as nodes:
            with monkeypatch.context() as patch:
                patch.setattr(grpc_stream, "enclose", swollen)
                _, ends = await nodes.run(weekly(deadline="60s"))
            assert {(end.error_code, end.error_party) for end in ends.values()} == {("E403", sender)}, ends
            assert {end.error_message for end in ends.values()} == {f"{sender} sent more than 4194304 bytes at once"}
            await all_is_well(nodes)

    asyncio.run(test())


@pytest.mark.parametrize(
    ("field", "what"), [("wire", "wire protocol"), ("suite", "cryptographic suite"), ("name", "calls itself")]
)
def test_a_node_of_another_version_or_name_is_refused_before_the_job(tmp_path: Path, field: str, what: str) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            service, described = nodes.nodes["south"].control, nodes.nodes["south"].control.Describe

            async def describe(request: control.DescribeRequest, context: Any) -> control.SignedDescription:
                description = control.Description.FromString((await described(request, context)).description)
                setattr(description, field, "other")
                return sign(description, request.challenge, nodes.authority.issue("south"))

            await nodes.nodes["south"].server.stop(None)  # type: ignore[union-attr]
            service.Describe = describe  # type: ignore[assignment, method-assign]
            await nodes.nodes["south"].start()
            error = await failed(nodes, weekly())
            assert error.exit_code == (40 if field == "name" else 10)
            assert what in error.message
            assert error.party == "south"

    asyncio.run(test())


# -- certificates -----------------------------------------------------------------------------------------------------
def test_a_node_of_another_federation_is_refused_by_all(tmp_path: Path) -> None:
    """South trusts, and is of, another authority; its node itself starts without complaint."""

    def prepare(authority: Authority) -> None:
        foreign = Authority.create()
        foreign.write(tmp_path / "foreign")
        write_identity(foreign.issue("south"), tmp_path / "foreign")
        file = tmp_path / "south.toml"
        file.write_text(file.read_text().replace("pki/", "foreign/"))

    async def test() -> None:
        async with running(tmp_path, prepare=prepare) as nodes:
            error = await failed(nodes, weekly())
            assert isinstance(error, IdentityError)
            assert (error.exit_code, error.party) == (20, "south")

    asyncio.run(test())


def test_a_party_that_answers_at_anothers_address_is_not_taken_for_it(tmp_path: Path) -> None:
    """North's federation file leads to east where south should be."""

    def prepare(authority: Authority) -> None:
        contents = (tmp_path / "federation.toml").read_text()
        members = contents.split("[[party]]")
        south, east = (next(m for m in members if f'"{name}"' in m) for name in ("south", "east"))
        (tmp_path / "north-federation.toml").write_text(contents.replace(south, east.replace('"east"', '"south"')))
        file = tmp_path / "north.toml"
        file.write_text(file.read_text().replace('"federation.toml"', '"north-federation.toml"'))

    async def test() -> None:
        async with running(tmp_path, prepare=prepare) as nodes:
            error = await failed(nodes, weekly())
            assert isinstance(error, IdentityError)
            assert (error.exit_code, error.party) == (20, "south")
            assert "cannot prove to be south" in error.message

    asyncio.run(test())


def test_a_coordinator_of_another_federation_or_a_party_as_coordinator_is_refused(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            foreign = Authority.create().issue("analyst", "coordinator")
            for identity in (
                nodes.authority.issue("north"),
                type(foreign)(
                    "analyst",
                    "coordinator",
                    foreign.certificate_pem,
                    foreign.key_pem,
                    Trust(nodes.authority.certificate_pem),
                ),
                nodes.authority.issue("analyst", "coordinator", valid_days=-1),
            ):
                with pytest.raises(PeerError) as caught:
                    await run_job(weekly(), identity, nodes.addresses)
                assert caught.value.exit_code == 20
            await all_is_well(nodes)

    asyncio.run(test())


# -- policy -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('tasks = ["itemsets", "rules"]', 'tasks = ["rules"]', "not the task 'itemsets'"),
        (
            "[policy]",
            '[[dataset]]\nname="b"\nkind="transactions"\nsource="x"\nformat="basket"\n[policy]\ndatasets=["b"]',
            "dataset 'baskets'",
        ),
        ("[policy]", '[policy]\npeers = ["north"]', "together with 'east'"),
        ("[policy]", "[policy]\nmin_parties = 4", "at least 4 parties"),
        ("[policy]", "[policy]\nmin_support = 0.5", "min_support of at least 0.5"),
        ("[policy]", "[policy]\nmax_length = 2", "max_length of at most 2"),
        (
            'tasks = ["itemsets", "rules"]',
            'tasks = ["itemsets", "rules"]\n[[policy.approval]]\ncoordinators = ["analyst"]\ndecide = "refuse"',
            "rule approval",
        ),
    ],
)
def test_a_refusal_names_the_party_and_the_rule(tmp_path: Path, old: str, new: str, words: str) -> None:
    def prepare(authority: Authority) -> None:
        file = tmp_path / "south.toml"
        file.write_text(file.read_text().replace("max_unions = 1000\n", "").replace(old, new))

    async def test() -> None:
        async with running(tmp_path, prepare=prepare) as nodes:
            error = await failed(nodes, weekly())
            assert isinstance(error, PolicyDenied)
            assert (error.exit_code, error.party) == (30, "south")
            assert "south" in error.message
            assert words in error.message
            assert not any(node.host.running for node in nodes.nodes.values())

    asyncio.run(test())


# -- unusual but right ------------------------------------------------------------------------------------------------
def skewed() -> dict[str, Rows]:
    return {"north": random_rows(1, 200), "south": random_rows(2, 5), "east": [["item0", "item7"]]}


WORLDS: dict[str, tuple[dict[str, Rows], int]] = {
    "two": ({"north": random_rows(1), "south": random_rows(2)}, 12),
    "seven": ({f"p{i}": random_rows(i, 15) for i in range(7)}, 40),
    "empty": ({"north": random_rows(1), "south": [], "east": random_rows(3)}, 20),
    "unique": ({**DATA, "south": [["only-south", "item0"]] * 40 + [["alone"]] * 60}, 30),
    "skewed": (skewed(), 20),
}


@pytest.mark.parametrize(("world", "strategy"), list(zip(WORLDS, itertools.cycle(STRATEGIES), strict=False)))
def test_over_nodes_as_pooled(tmp_path: Path, world: str, strategy: str) -> None:
    data, count = WORLDS[world]

    async def test() -> None:
        async with running(tmp_path, data=data) as nodes:
            result = await job(nodes, weekly(parties=list(data), itemsets={"min_support": count, "strategy": strategy}))
            assert supports(result) == expected(data, count)
            assert len(supports(result)) > 1

    asyncio.run(test())


def test_nothing_anywhere_is_said(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, data={name: [] for name in DATA}) as nodes:
            error = await failed(nodes, weekly())
            assert error.exit_code == 10
            assert "no party has any transaction" in error.message

    asyncio.run(test())


def test_data_that_vanishes_or_rots_after_it_was_read_is_noticed(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            await all_is_well(nodes)
            file = tmp_path / "east.dat"
            good = file.read_bytes()
            for spoil in (lambda: file.unlink(), lambda: file.write_bytes(b"\xff\xfe\x00 not text")):
                spoil()
                error = await failed(nodes, weekly())
                assert (error.exit_code, error.code, error.party) == (10, "E101", "east"), error
                assert "the log of east has the reason" in error.message
                file.write_bytes(good)
            await all_is_well(nodes)

    asyncio.run(test())
