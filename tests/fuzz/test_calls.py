"""Whatever a member sends to a node, the answer is an answer or a coded refusal, and the node goes on.

Real nodes over TLS get honest requests that were made wrong: in their bytes, in their fields, and in the documents
inside these, signed anew where somebody must sign. Seeds are fresh on every run outside of continuous integration.
"""

from __future__ import annotations

import asyncio
import copy
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import DecodeError, Message
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from crypto.primitives.sealed import new_private_key, public_key_of
from jobs.consent import approve
from ldp.shuffling.route import Route
from link.pki.identity import Identity, Role
from link.transports.grpc_channel import dial
from party.node.methods import METHODS
from protos.v1 import anonymization_pb2 as anonymization
from protos.v1 import control_pb2 as control
from protos.v1 import frequency_pb2 as frequency
from protos.v1 import link_pb2 as link
from protos.v1 import shuffle_pb2 as shuffle
from protos.v1.plan_pb2 import EstimateRequest
from tests.examples import examples
from tests.fuzz.mutations import changed, mutated, otherwise
from tests.integration.anonymization.patients import DATASET as PATIENTS_DATASET
from tests.integration.anonymization.patients import PATIENTS
from tests.party.nodes import Nodes, running, weekly
from tests.party.services.frequency.specs import spec_of
from tests.party.services.queries.staff import DATASET as STAFF_DATASET
from tests.party.services.queries.staff import STAFF

pytestmark = pytest.mark.turn(8)

EXAMPLES = int(os.environ.get("COMINE_FUZZ_EXAMPLES", "0"))
ANSWER_S = 60.0  # for a call, on a busy machine
WATCH_S = 0.5  # for answers of a call that would go on
PROPOSAL, APPROVAL = b"comine.proposal/1\0", b"comine.approval/1\0"
ENDLESS = ("Watch", "Queue", "Collect", "Exchange")  # which a caller ends
STREAMS = ("Submit", "Forward", "Exchange")
COLLECTOR = new_private_key(Randomness.from_seed(b"fuzz"))


@dataclass(repr=False)
class Stack:
    """Three nodes with all services, and callers of all roles."""

    nodes: Nodes
    loop: asyncio.AbstractEventLoop
    callers: dict[Role, Identity] = field(default_factory=dict)
    channels: dict[Role, Any] = field(default_factory=dict)
    job: bytes = b""
    collection: frequency.Collection = field(default_factory=frequency.Collection)
    read: dict[str, int] = field(default_factory=dict)  # how far each log
    honest: dict[Any, Message] = field(default_factory=dict)  # the same in all examples of a test

    def __repr__(self) -> str:
        return "Stack()"

    def run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(ANSWER_S)

    def call(self, role: Role, service: str, method: str, requests: Sequence[bytes]) -> grpc.aio.AioRpcError | None:
        """Sends requests as they are; the refusal, where there was one."""
        return self.run(self._call(role, service, method, requests))  # type: ignore[no-any-return]

    async def _call(
        self, role: Role, service: str, method: str, requests: Sequence[bytes]
    ) -> grpc.aio.AioRpcError | None:
        call = self.channels[role].stream_stream(f"/comine.v1.{service}/{method}")()
        try:
            async with asyncio.timeout(WATCH_S if method in ENDLESS else ANSWER_S / 2):
                with suppress(asyncio.InvalidStateError, grpc.aio.AioRpcError):  # it has been answered meanwhile
                    for request in requests:
                        await call.write(request)
                    await call.done_writing()
                while await call.read() is not grpc.aio.EOF:
                    pass
        except TimeoutError:
            assert method in ENDLESS, f"{method} was not answered"
        except grpc.aio.AioRpcError as error:
            # This end's own word on a request that it could not send, since the call had been answered meanwhile.
            return None if "SendMessageOperation" in (error.debug_error_string() or "") else error
        finally:
            call.cancel()
        return None

    def faults(self) -> list[str]:
        """New lines of the nodes' logs that tell of a fault of their own."""
        lines = []
        for name, log in self.nodes.logs.items():
            text = log.getvalue()
            lines += text[self.read.get(name, 0) :].splitlines()
            self.read[name] = len(text)
        return [line for line in lines if "call failed" in line or "Traceback" in line]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("calls")
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    ended, ready = asyncio.Event(), threading.Event()
    made: list[Stack] = []

    async def serve() -> None:
        policy = "max_plans = 1000000"
        async with running(folder, policy=policy, prepare=lambda _: _all_services(folder)) as nodes:
            stack = Stack(nodes, loop)
            for role, name in (("coordinator", "analyst"), ("client", "fleet"), ("party", "south")):
                stack.callers[role] = nodes.authority.issue(name, role)
                stack.channels[role] = dial(stack.callers[role], "north", nodes.addresses["north"])
            stack.job = await nodes.begin(weekly())
            await nodes.ends(stack.job)
            made.append(stack)
            ready.set()
            await ended.wait()
            for channel in stack.channels.values():
                await channel.close()

    served = asyncio.run_coroutine_threadsafe(serve(), loop)
    try:
        while not ready.wait(0.1):
            if served.done():
                served.result()
        (stack,) = made
        stack.run(_prepared(stack))
        yield stack
    finally:
        loop.call_soon_threadsafe(ended.set)
        try:
            served.result(ANSWER_S)
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()


def _all_services(folder: Path) -> None:
    (folder / "staff.csv").write_text(STAFF)
    (folder / "patients.csv").write_text(PATIENTS)
    (folder / "sex.csv").write_text("f,*\nm,*\n")
    file = folder / "north.toml"
    more = '[frequency]\nmax_epsilon = 8.0\n[shuffler]\nmin_batch = 2\ngateways = ["client/fleet"]\n'
    file.write_text(file.read_text() + STAFF_DATASET + PATIENTS_DATASET + more)


async def _prepared(stack: Stack) -> None:
    """A collection and a route that requests can name."""
    spec = spec_of(access={"gateways": {"fleet": 1_000_000}}).canonical()
    create = stack.channels["coordinator"].stream_unary(
        "/comine.v1.FrequencyEstimation/Create", response_deserializer=frequency.Collection.FromString
    )
    request = frequency.CreateCollectionRequest(spec=spec)
    stack.collection = await create(iter([request.SerializeToString()]))
    route = shuffle.CreateRouteRequest(document=_route().document()).SerializeToString()
    assert await stack._call("coordinator", "Shuffler", "Create", [route]) is None


def _route() -> Route:
    return Route(
        name="weekly",
        id=bytes(range(16)),
        shufflers=("north", "south"),
        collector="coordinator/analyst",
        collector_key=public_key_of(COLLECTOR),
        size=8,
        minimum=5,
        gateways=(("client/fleet", 1_000_000),),
    )


# -- honest requests -------------------------------------------------------------------------------------------------
def _proposal(stack: Stack) -> control.SignedProposal:
    return stack.nodes.clients["north"].signed(weekly(), nonce=bytes(range(16)))


def _start(stack: Stack) -> control.StartRequest:
    identities = [stack.nodes.authority.issue(name) for name in ("north", "south", "east")]
    approvals = [approve(stack.job, "analyst", each, decided=int(time.time()), by="policy") for each in identities]
    return control.StartRequest(job_id=stack.job, attempt=2, approvals=approvals, seed=bytes(32))


def _batch(stack: Stack) -> frequency.ReportBatch:
    reports = b"LDPR\x01" + stack.collection.rounds[0].fingerprint + (2).to_bytes(8, "little") + bytes(2)
    return frequency.ReportBatch(sequence=1, collection="homepages", pseudonyms=bytes(range(32)), reports=reports)


def _patients() -> str:
    told = {"quasi_identifiers": ["age", "sex"], "sensitive": ["disease"], "algorithm": "optimal", "model": {"k": 5}}
    return json.dumps(told | {"max_suppression": "0.02"})


def _forwarded() -> shuffle.BatchPart:
    signed = shuffle.SignedStatement(statement=b"", signature=bytes(70), certificate=b"")
    head = shuffle.BatchHead(route=bytes(32), batch=1, reports=2, statements=[signed])
    return shuffle.BatchPart(head=head, reports=bytes(128), last=True)


Make = Callable[[Stack], Message]
REQUESTS: dict[tuple[str, str], Make] = {
    ("Control", "Describe"): lambda stack: control.DescribeRequest(challenge=bytes(32)),
    ("Control", "Estimate"): lambda stack: EstimateRequest(spec=weekly().canonical()),
    ("Control", "Propose"): _proposal,
    ("Control", "Queue"): lambda stack: control.QueueRequest(job_id=stack.job, wait=True),
    ("Control", "Start"): _start,
    ("Control", "Watch"): lambda stack: control.WatchRequest(job_id=stack.job),
    ("Control", "Deal"): lambda stack: control.DealtPart(job_id=stack.job, label=bytes(32), offset=0, data=bytes(64)),
    ("Control", "Result"): lambda stack: control.ResultRequest(job_id=stack.job),
    ("Control", "Cancel"): lambda stack: control.CancelRequest(job_id=stack.job, reason="enough"),
    ("FrequencyEstimation", "Create"): lambda stack: frequency.CreateCollectionRequest(
        spec=spec_of(name="other").canonical()
    ),
    ("FrequencyEstimation", "List"): lambda stack: frequency.ListCollectionsRequest(),
    ("FrequencyEstimation", "Describe"): lambda stack: frequency.DescribeCollectionRequest(collection="homepages"),
    ("FrequencyEstimation", "Domain"): lambda stack: frequency.DomainRequest(collection="homepages"),
    ("FrequencyEstimation", "Submit"): _batch,
    ("FrequencyEstimation", "Estimate"): lambda stack: frequency.FrequencyRequest(
        collection="homepages", round=0, most=3, post_processing="norm-sub", candidates=b"a\nb\n"
    ),
    ("FrequencyEstimation", "Watch"): lambda stack: frequency.WatchFrequencyRequest(
        what=frequency.FrequencyRequest(collection="homepages"), every=1.0, first=0
    ),
    ("FrequencyEstimation", "Export"): lambda stack: frequency.ExportRequest(collection="homepages", states=True),
    ("FrequencyEstimation", "Close"): lambda stack: frequency.CloseCollectionRequest(collection="gone"),
    ("FrequencyEstimation", "Delete"): lambda stack: frequency.DeleteCollectionRequest(collection="gone"),
    ("Shuffler", "Create"): lambda stack: shuffle.CreateRouteRequest(document=_route().document()),
    ("Shuffler", "Describe"): lambda stack: shuffle.DescribeRouteRequest(route="weekly"),
    ("Shuffler", "Submit"): lambda stack: shuffle.SealedReports(sequence=1, route="weekly", reports=[bytes(120)] * 3),
    ("Shuffler", "Flush"): lambda stack: shuffle.FlushRequest(route="weekly"),
    ("Shuffler", "Forward"): lambda stack: _forwarded(),
    ("Shuffler", "Collect"): lambda stack: shuffle.CollectRequest(route="weekly", after=0),
    ("Shuffler", "Retire"): lambda stack: shuffle.RetireRouteRequest(route="gone"),
    ("Anonymization", "ListDatasets"): lambda stack: anonymization.ListDatasetsRequest(),
    ("Anonymization", "Query"): lambda stack: anonymization.QueryRequest(
        dataset="staff", query="avg(salary) where age >= 30 and city = 'Bern'"
    ),
    ("Anonymization", "Anonymize"): lambda stack: anonymization.AnonymizeRequest(
        dataset="patients", configuration=_patients()
    ),
    ("Link", "Exchange"): lambda stack: link.Envelope(resume=link.Resume(job_id=stack.job, received=0)),
}


def test_every_method_has_an_honest_request() -> None:
    ours = {(service.removeprefix("comine.v1."), name) for service, each in METHODS.items() for name in each}
    assert {pair for pair in ours if not pair[0].startswith("grpc.")} | {("Link", "Exchange")} == REQUESTS.keys()


# -- and what becomes of them ----------------------------------------------------------------------------------------
def _documents(message: Message) -> Iterator[tuple[Message, str, Any]]:
    """The JSON documents in the fields of a message."""
    for own, value in message.ListFields():
        if own.type in (own.TYPE_BYTES, own.TYPE_STRING) and not own.is_repeated:
            with suppress(ValueError, RecursionError):
                document = json.loads(value)
                if isinstance(document, dict):
                    yield message, own.name, document


def _canonical(document: Any) -> bytes:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def _signed_again(stack: Stack, message: Message, data: st.DataObject) -> None:
    """Changes what is inside a signature, and signs that."""
    if isinstance(message, control.SignedProposal):
        proposal = control.Proposal.FromString(message.proposal)
        if data.draw(st.booleans()):
            document = data.draw(otherwise(json.loads(proposal.spec)))
            proposal.spec = data.draw(st.sampled_from([_canonical(document), *NESTED]))
        else:
            proposal = data.draw(changed(proposal))
        message.proposal = proposal.SerializeToString()
        message.signature = stack.callers["coordinator"].sign(PROPOSAL + message.proposal)
    elif isinstance(message, control.StartRequest):
        approval = data.draw(st.sampled_from(list(message.approvals)))
        try:
            inner = control.Approval.FromString(approval.approval)
        except DecodeError:
            return
        approval.approval = data.draw(changed(inner)).SerializeToString()
        signer = stack.nodes.authority.issue("south")
        approval.signature, approval.certificate = signer.sign(APPROVAL + approval.approval), signer.certificate_pem


NESTED = (
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b'{"job":"\\ud800"}',
    b'{"job":"\xed\xa0\x80"}',
    b'{"job":' + b"9" * 5_000 + b"}",
    b"\xff\xfe",
    b"NaN",
)


@st.composite
def requests(draw: st.DrawFn, stack: Stack, make: Make, data: st.DataObject, streams: bool) -> list[bytes]:
    """A request of a method, or up to three where it takes a stream."""
    found = []
    for _ in range(draw(st.integers(1, 3)) if streams else 1):
        message = copy.deepcopy(stack.honest.setdefault(make, make(stack)))
        documents = list(_documents(message))
        match draw(st.integers(0, 5)):
            case 0:
                found.append(draw(mutated([message.SerializeToString(), b"\x0a\x02\x08\x01"])))
                continue
            case 1 | 2 if documents:
                owner, name, document = draw(st.sampled_from(documents))
                text = draw(st.sampled_from([_canonical(draw(otherwise(document))), *NESTED]))
                as_text = owner.DESCRIPTOR.fields_by_name[name].type == 9
                setattr(owner, name, text.decode("utf-8", "replace") if as_text else text)
            case 1 | 2 | 3 if isinstance(message, control.SignedProposal | control.StartRequest):
                _signed_again(stack, message, data)
            case 4:
                pass
            case _:
                message = draw(changed(message))
        found.append(message.SerializeToString())
    return found


def _role(service: str, name: str) -> Role:
    if service == "Link":
        return "party"
    roles = METHODS[f"comine.v1.{service}"][name].roles
    return "coordinator" if "coordinator" in roles else "client" if "client" in roles else "party"


@pytest.mark.parametrize(("service", "name"), REQUESTS)
@examples(
    EXAMPLES or 6,
    EXAMPLES or 25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_a_call_is_answered_or_refused(service: str, name: str, stack: Stack, data: st.DataObject) -> None:
    sent = data.draw(requests(stack, REQUESTS[service, name], data, name in STREAMS))
    refusal = stack.call(_role(service, name), service, name, sent)
    assert stack.faults() == []
    if refusal is None:
        return
    told = (refusal.code(), refusal.details())
    assert refusal.code() not in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL), told
    if service != "Link":
        assert "comine-code" in dict(refusal.trailing_metadata() or ()), told


def _holding(stack: Stack, body: bytes) -> list[tuple[Role, str, str, Message]]:
    """Requests in which a document is something else."""
    proposal = control.Proposal(spec=body, nonce=bytes(16), expiry=int(time.time()) + 600).SerializeToString()
    analyst = stack.callers["coordinator"]
    signed = control.SignedProposal(
        proposal=proposal, signature=analyst.sign(PROPOSAL + proposal), certificate=analyst.certificate_pem
    )
    text = body.decode("utf-8", "replace")
    return [
        ("coordinator", "Control", "Estimate", EstimateRequest(spec=body)),
        ("coordinator", "Control", "Propose", signed),
        ("coordinator", "FrequencyEstimation", "Create", frequency.CreateCollectionRequest(spec=body)),
        ("coordinator", "Shuffler", "Create", shuffle.CreateRouteRequest(document=body)),
        ("coordinator", "Anonymization", "Query", anonymization.QueryRequest(dataset="staff", query=text)),
        (
            "coordinator",
            "Anonymization",
            "Anonymize",
            anonymization.AnonymizeRequest(dataset="patients", configuration=text, hierarchies={"age": text}),
        ),
    ]


def _everywhere(document: Any) -> Iterator[bytes]:
    """A document with half of a character in the place of each of its texts, and nested deeply in each place."""
    for key in document:
        for value in ("\ud800", json.loads("[" * 400 + "]" * 400)):
            yield _canonical(document | {key: value})
            if isinstance(document[key], dict):
                yield from (_canonical(document | {key: document[key] | {inner: value}}) for inner in document[key])


def test_documents_that_are_none(stack: Stack) -> None:
    bodies = [(body, "") for body in NESTED]
    for service, document in (("Control", weekly().canonical()), ("Anonymization", _patients())):
        bodies += [(body, service) for body in _everywhere(json.loads(document))]  # by who reads such documents
    for body, reader in bodies:
        for role, service, name, request in _holding(stack, body):
            if reader not in ("", service):
                continue
            refusal = stack.call(role, service, name, [request.SerializeToString()])
            assert refusal is not None, (name, body[:100])
            assert "comine-code" in dict(refusal.trailing_metadata() or ())
            assert stack.faults() == [], (name, body[:100])


@pytest.mark.parametrize(("service", "name"), [pair for pair in REQUESTS if pair[0] != "Link"])
@pytest.mark.parametrize("body", [*NESTED, b"\xff" * 1000, b"\x0a" * 1000, b"\x0b" * 3000])
def test_nothing_honest_at_all(service: str, name: str, body: bytes, stack: Stack) -> None:
    """Bytes that are no message, and messages all of whose texts are none."""
    refusal = stack.call(_role(service, name), service, name, [body])
    assert stack.faults() == []
    assert refusal is None or "comine-code" in dict(refusal.trailing_metadata() or ())


def test_the_nodes_still_run_jobs(stack: Stack) -> None:
    async def again() -> dict[str, control.JobEvent]:
        return (await stack.nodes.run(weekly()))[1]

    assert {end.state for end in stack.run(again()).values()} == {control.SUCCEEDED}
    assert stack.faults() == []
