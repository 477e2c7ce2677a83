"""What goes wrong in a party's data, its certificates or on the wire: one sentence, the right exit code, and
nodes that run the next job. The nodes have real certificates and ports, and live in the test's process."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator.jobs.runner import run_job
from jobs.description import sign
from link.errors import IdentityError, PeerError, PolicyDenied
from link.pki.authority import Authority, write_identity
from link.pki.trust import Trust
from link.transports import grpc_stream
from link.transports.grpc_stream import enclose
from protos.v1 import control_pb2 as control
from protos.v1.link_pb2 import Abort, Frame
from tests.examples import in_turn
from tests.integration.faults.failing import STRATEGIES, all_is_well, at, expected, failed, hello, job, unwrap, wrap
from tests.jobs.results.made import supports
from tests.party.nodes import DATA, Rows, brief, random_rows, running, weekly

pytestmark = [pytest.mark.turn(3), pytest.mark.slow]


def put(**fields: Any) -> Callable[[Frame], None]:
    def change(frame: Frame) -> None:
        for name, value in fields.items():
            setattr(frame, name, value)

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
    ("hello", hello(version="0", oldest_version="0"), 10, "speaks version 0 of the wire protocol"),
    ("hello", hello(suite="rot13"), 10, "another cryptographic suite"),
    ("hello", hello(nonce=b""), 40, "without a nonce"),
    ("hello", hello(nonce=bytes(16)), 20, "the signature of south is wrong"),
)


def test_a_party_that_breaks_the_rules_is_named(tmp_path: Path, subtests: pytest.Subtests) -> None:
    """At nodes that, each time, go on to the next job, and run it where nothing is broken."""

    async def test() -> None:
        async with running(tmp_path) as nodes:
            for number, (lane, change, exit_code, words) in enumerate(in_turn(BROKEN, 4)):
                with subtests.test(lane=lane, words=words):
                    wrap(nodes.nodes["south"], at(lane, change))
                    try:
                        error = await failed(nodes, brief(deadline="60s"))
                    finally:
                        unwrap(nodes.nodes["south"])
                    assert (error.exit_code, words in error.message) == (exit_code, True), error
                    assert "south" in error.message
                    if number % 5 == 4:
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
                _, ends = await nodes.run(brief(deadline="60s"))
            assert {(end.error_code, end.error_party) for end in ends.values()} == {("E403", sender)}, ends
            assert {end.error_message for end in ends.values()} == {f"{sender} sent more than 4194304 bytes at once"}
            await all_is_well(nodes)

    asyncio.run(test())


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"wire": "1", "oldest_wire": "1"}, "wire protocol"),
        ({"suite": "other"}, "cryptographic suite"),
        ({"name": "other"}, "calls itself"),
    ],
)
def test_a_node_of_another_version_or_name_is_refused_before_the_job(
    tmp_path: Path, fields: dict[str, str], what: str
) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            service, described = nodes.nodes["south"].control, nodes.nodes["south"].control.Describe

            async def describe(request: control.DescribeRequest, context: Any) -> control.SignedDescription:
                description = control.Description.FromString((await described(request, context)).description)
                for field, value in fields.items():
                    setattr(description, field, value)
                return sign(description, request.challenge, nodes.authority.issue("south"))

            await nodes.nodes["south"].server.stop(None)  # type: ignore[union-attr]
            service.Describe = describe  # type: ignore[assignment, method-assign]
            await nodes.nodes["south"].start()
            error = await failed(nodes, brief())
            assert error.exit_code == (40 if "name" in fields else 10)
            assert what in error.message
            assert error.party == "south"

    asyncio.run(test())


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
            error = await failed(nodes, brief())
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
            error = await failed(nodes, brief())
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
                    await run_job(brief(), identity, nodes.addresses)
                assert caught.value.exit_code == 20
            await all_is_well(nodes)

    asyncio.run(test())


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
        file.write_text(file.read_text().replace(old, new))

    async def test() -> None:
        async with running(tmp_path, prepare=prepare) as nodes:
            error = await failed(nodes, weekly())
            assert isinstance(error, PolicyDenied)
            assert (error.exit_code, error.party) == (30, "south")
            assert "south" in error.message
            assert words in error.message
            assert not any(node.host.running for node in nodes.nodes.values())

    asyncio.run(test())


def skewed() -> dict[str, Rows]:
    return {"north": random_rows(1, 200), "south": random_rows(2, 5), "east": [["item0", "item7"]]}


WORLDS: dict[str, tuple[dict[str, Rows], int]] = {
    "two": ({"north": random_rows(1), "south": random_rows(2)}, 12),
    "five": ({f"p{i}": random_rows(i, 20) for i in range(5)}, 40),
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
                error = await failed(nodes, brief())
                assert (error.exit_code, error.code, error.party) == (10, "E101", "east"), error
                assert "the log of east has the reason" in error.message
                file.write_bytes(good)
            await all_is_well(nodes)

    asyncio.run(test())
