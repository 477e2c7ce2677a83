"""Who is at fault: for each fault of a clock or a certificate, in each phase, the guilty one is named by all, and
nobody else; the others are unharmed. `test_storage_faults` does the same for disks, `test_guilty_network` for the wire.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import importlib
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from coordinator.jobs.runner import propose, run_job
from jobs.audit.checks.verification import verification
from jobs.results.result import Result
from link.errors import ComineError
from link.pki.authority import Authority, write_identity
from link.pki.identity import Identity
from link.pki.trust import Trust
from tests.examples import in_turn
from tests.integration.processes import Organisations
from tests.party.nodes import DATA, Nodes, brief, running

pytestmark = [pytest.mark.turn(2), pytest.mark.slow]

SPEC = brief(recipients=["all"])  # with the usual deadline of 30 minutes
HUB = "analyst"
MEMBERS = (*DATA, HUB)


class Fault(NamedTuple):
    """What must come of a fault.

    Attributes:
        guilty: The party that is named; None where it is the coordinator, or cannot be told.
        code: The error's code.
        words: That the sentence holds.
        before: Whether no work may have begun.
    """

    guilty: str | None
    code: str
    words: tuple[str, ...]
    before: bool = True


def started(nodes: Nodes) -> list[str]:
    return [name for name, log in nodes.logs.items() if '"job started"' in log.getvalue()]


async def outcome(nodes: Nodes, hub: Identity) -> Result | ComineError:
    try:
        return await run_job(SPEC, hub, nodes.addresses)
    except ComineError as error:
        return error


async def check(nodes: Nodes, hub: Identity, fault: Fault) -> None:
    """The fault ends a job as it should."""
    before = len(started(nodes))
    error = await outcome(nodes, hub)
    assert isinstance(error, ComineError)
    assert (error.code, error.party) == (fault.code, fault.guilty), error
    assert all(word in error.message for word in fault.words), error
    assert "\n" not in error.message
    if fault.before:
        assert len(started(nodes)) == before, error
    for name, node in nodes.nodes.items():
        while node.host.running:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
        accused = {record.error_party for record in node.store.all() if record.error_code not in ("", "E500")}
        assert accused <= {fault.guilty}, (name, error)  # E500: it was told that the job is over
    logs = [nodes.folder / "state" / name / "audit.log" for name in nodes.nodes]
    for finding in verification(logs, [], Trust(nodes.authority.certificate_pem)).findings:  # what it signed is kept
        assert f"that {fault.guilty} signed" in finding.what or f"/{fault.guilty}/" in finding.file, finding


# -- certificates -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("guilty", in_turn(MEMBERS, 2))
def test_a_certificate_that_would_end_before_the_job_is_refused_before_it_begins(tmp_path: Path, guilty: str) -> None:
    short = 20 / (24 * 60)  # days: it expires before the deadline
    until = dt.datetime.now(dt.UTC) + dt.timedelta(days=short)

    def prepare(authority: Authority) -> None:
        if guilty != HUB:
            write_identity(authority.issue(guilty, valid_days=short), tmp_path / "pki", force=True)

    async def test() -> None:
        async with running(tmp_path, prepare=prepare) as nodes:
            hub = nodes.authority.issue(HUB, "coordinator", valid_days=short if guilty == HUB else 1)
            words = (f"the certificate of {guilty} is valid until {until:%Y-%m-%d}", "the job may need it until")
            await check(nodes, hub, Fault(guilty, "E201", words))
            assert isinstance(await run_job(brief(deadline="60s"), hub, nodes.addresses), Result)

    asyncio.run(test())


@pytest.mark.parametrize("guilty", in_turn(MEMBERS[::-1], 2))
def test_nodes_refuse_it_too_whatever_the_coordinator_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guilty: str
) -> None:
    async def nothing(*_: Any) -> None:
        pass

    monkeypatch.setattr("coordinator.jobs.driver.preflight", nothing)
    test_a_certificate_that_would_end_before_the_job_is_refused_before_it_begins(tmp_path, guilty)


@pytest.mark.parametrize("coordinator", ["honest", "careless"])
def test_an_authority_whose_certificate_would_end_before_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, coordinator: str
) -> None:
    """Certificates of members may be valid for longer than the authority's, which is told as what is wrong."""
    real = Authority.create
    monkeypatch.setattr(Authority, "create", lambda: real(valid_days=20 / (24 * 60)))
    if coordinator == "careless":
        monkeypatch.setattr("coordinator.jobs.preflight.check_own_span", lambda *_: None)

    async def test() -> None:
        async with running(tmp_path) as nodes:
            hub = nodes.authority.issue(HUB, "coordinator")
            error = await outcome(nodes, hub)
            assert isinstance(error, ComineError)
            assert error.code == "E201"
            assert f"the authority's certificate at {error.party} is valid until" in error.message
            assert (error.party == HUB) is (coordinator == "honest")
            assert started(nodes) == []
            assert isinstance(await run_job(brief(deadline="60s"), hub, nodes.addresses), Result)

    asyncio.run(test())


def strange(pem: bytes) -> bytes:
    """The certificate with a version that X.509 does not have."""
    der = x509.load_pem_x509_certificate(pem).public_bytes(serialization.Encoding.DER)
    assert der.count(b"\xa0\x03\x02\x01\x02") == 1
    with_version = der.replace(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x09")
    return pem_of(with_version)


def pem_of(der: bytes) -> bytes:
    return ssl.DER_cert_to_PEM_cert(der).encode()


def shortened(pem: bytes) -> bytes:
    """Bytes that begin like a certificate and end in its midst."""
    return pem_of(x509.load_pem_x509_certificate(pem).public_bytes(serialization.Encoding.DER)[:-40])


SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "version": strange,
    "shortened": shortened,
    "empty": lambda _: b"",
    "garbage": lambda _: b"no certificate",
    "bytes": lambda _: b"\xff\x00",
    "foreign": lambda _: Authority.create().issue("south").certificate_pem,
    "another's": lambda _: b"",  # replaced in the test, which has the authority
}
SHOWN = {  # by phase: the function by which a node signs, and shows its certificate
    "introduction": "party.jobs.service.sign",
    "approval": "party.policy.consent.signed_approval",
    "greeting": "link.session.prove",
    "receipt": "link.transcripts.receipts.sign_receipt",
    "release": "party.jobs.endings.release.sign",
}


@contextmanager
def showing(phase: str, party: str, certificate: Callable[[bytes], bytes]) -> Iterator[None]:
    """Lets a party show something else in place of its certificate in one phase."""
    module, _, name = SHOWN[phase].rpartition(".")
    real = getattr(importlib.import_module(module), name)

    def shown(*arguments: Any, **more: Any) -> Any:
        made = real(*arguments, **more)
        if any(isinstance(each, Identity) and each.name == party for each in arguments):
            made.certificate = certificate(made.certificate)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SHOWN[phase], shown)
        yield


def test_who_shows_a_bad_certificate_is_named_in_each_phase(tmp_path: Path, subtests: pytest.Subtests) -> None:
    """It is east; in `test_guilty_table` it is south."""
    guilty = "east"

    async def test() -> None:
        async with running(tmp_path) as nodes:
            hub = nodes.authority.issue(HUB, "coordinator")
            other = nodes.authority.issue("north").certificate_pem
            cases = [(phase, what) for phase in SHOWN for what in SPOILT]
            cases.remove(("release", "bytes"))  # a node's own, which it fails to keep
            for phase, what in in_turn(cases, 6):
                certificate = (lambda _: other) if what == "another's" else SPOILT[what]
                with subtests.test(phase=phase, what=what), showing(phase, guilty, certificate):
                    before = phase in ("introduction", "approval")
                    await check(nodes, hub, Fault(guilty, "E201", (guilty,), before))
            assert isinstance(await outcome(nodes, hub), Result)

    asyncio.run(test())


def test_a_coordinator_with_a_bad_certificate_is_named(tmp_path: Path, subtests: pytest.Subtests) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            hub = nodes.authority.issue(HUB, "coordinator")
            other = nodes.authority.issue("north").certificate_pem
            for what, spoil in SPOILT.items():
                certificate = other if what == "another's" else spoil(hub.certificate_pem)

                def proposed(*arguments: Any, certificate: bytes = certificate, **more: Any) -> Any:
                    made = propose(*arguments, **more)
                    made.certificate = certificate
                    return made

                with subtests.test(what=what), pytest.MonkeyPatch.context() as patch:
                    patch.setattr("coordinator.jobs.runner.propose", proposed)
                    await check(nodes, hub, Fault(HUB, "E201", (f"that {HUB} signed with",)))
            assert isinstance(await outcome(nodes, hub), Result)

    asyncio.run(test())


# -- clocks -----------------------------------------------------------------------------------------------------------
def shift(nodes: Nodes, name: str, seconds: float) -> None:
    """Sets the clock by which a node in this process tells the time."""
    node, real = nodes.nodes[name], nodes.nodes[name].control.now
    for user in (node.control, node.host, node.host.jobs, node.host.context.consent):
        user.now = lambda: real() + seconds  # type: ignore[union-attr]


CLOCKS: dict[str, tuple[dict[str, float], str | None, tuple[str, ...]]] = {
    "ahead": ({"south": 7200}, "south", ("the clock of south is 2 hours ahead of",)),
    "behind": ({"east": -86400 * 30}, "east", ("the clock of east is 30 days behind",)),
    "coordinator": (dict.fromkeys(DATA, -3600.0), None, ("the clock of the coordinator is 60 minutes ahead of",)),
    "two and two": (dict.fromkeys(("north", "east"), 900.0), None, ("15 minutes apart", "is not known")),
}


@pytest.mark.parametrize("clocks", in_turn(CLOCKS, 2))
def test_whose_clock_is_wrong_is_named_before_anything_is_judged_by_it(tmp_path: Path, clocks: str) -> None:
    shifts, guilty, words = CLOCKS[clocks]

    async def test() -> None:
        async with running(tmp_path) as nodes:
            hub = nodes.authority.issue(HUB, "coordinator")
            for name, seconds in shifts.items():
                shift(nodes, name, seconds)
            await check(nodes, hub, Fault(guilty, "E100", words))
            for name, seconds in shifts.items():
                shift(nodes, name, -seconds)
            assert isinstance(await outcome(nodes, hub), Result)

    asyncio.run(test())


def test_a_clock_that_goes_wrong_while_people_decide_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coordinator.jobs.driver.PREFLIGHT_S", 0.0)

    async def test() -> None:
        async with running(tmp_path) as nodes:
            consent = nodes.nodes["south"].host.context.consent
            receive = consent.receive

            async def received(*arguments: Any) -> Any:
                answer = await receive(*arguments)
                shift(nodes, "south", 3600)
                return answer

            monkeypatch.setattr(consent, "receive", received)
            hub = nodes.authority.issue(HUB, "coordinator")
            await check(nodes, hub, Fault("south", "E100", ("the clock of south is 60 minutes ahead of",)))

    asyncio.run(test())


WRONG = """
import datetime, time
real, off = time.time, {seconds}
time.time = lambda: real() + off
class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return super().now(tz) + datetime.timedelta(seconds=off)
datetime.datetime = Clock
"""


def test_a_process_with_a_wrong_clock_does_not_make_anothers_certificate_guilty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the clock of south the certificate of north has expired, which by all others it has not."""
    made = Organisations.create(tmp_path, DATA)
    write_identity(made.authority.issue("north", valid_days=1), tmp_path / "pki", force=True)
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock" / "sitecustomize.py").write_text(WRONG.format(seconds=2 * 86400))
    try:
        made.start("north", "east")
        with monkeypatch.context() as patch:
            patch.setenv("PYTHONPATH", str(tmp_path / "clock"))
            made.start("south")
        made.job()
        ran = made.run_here()
        assert ran.code == 10
        assert "the clock of south is 2 days ahead of those of east, north and the coordinator" in ran.sentence
    finally:
        made.stop()
