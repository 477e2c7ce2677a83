"""Whatever a node answers to a coordinator or a client, these make something of it or say what is wrong with whom.

Real nodes answer over TLS, and one of their answers is another: in its bytes, or in its fields, where it must be signed
signed anew. Seeds are fresh on every run outside of continuous integration.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final

import pytest
from google.protobuf.message import Message
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from client.connection import Connection
from coordinator.anonymisation.queries import QueryNode
from coordinator.anonymisation.queries import listing as query_listing
from coordinator.anonymisation.queries import listing_as_data as queries_as_data
from coordinator.anonymisation.releases import ReleasingNode, listing, listing_as_data, rules_of
from coordinator.frequency.service import FrequencyNode
from coordinator.jobs.client import PartyClient
from coordinator.jobs.party_calls import ask, follow, introduce
from coordinator.jobs.planner import plan_job
from coordinator.jobs.released import assemble
from coordinator.shuffle.routes import RouteStatus, ShufflerNode
from jobs import description
from jobs.collections.reading import collection_as_data
from jobs.results.release import sign
from ldp.shuffling.route import route_of
from ldp.shuffling.statement import read_key
from link.errors import ComineError, InternalError
from party.node.interceptors import Gate
from party.node.methods import METHODS
from protos.v1 import control_pb2 as control
from protos.v1 import frequency_pb2 as frequency
from tests.examples import examples
from tests.fuzz import test_calls
from tests.fuzz.mutations import changed, mutated
from tests.fuzz.test_calls import REQUESTS, Stack
from tests.party.nodes import weekly

pytestmark = pytest.mark.turn(6)

EXAMPLES: Final = int(os.environ.get("COMINE_FUZZ_EXAMPLES", "0"))
SOON_S: Final = 2.0  # for calls that may go on: what watches the clock is tried elsewhere
CHALLENGE: Final = bytes(range(32))
ENDLESS: Final = {("Control", "Watch"), ("Control", "Queue"), ("FrequencyEstimation", "Watch")}
EMPTY: Final = "an answer without fields, of which only that it came is looked at"
MOST: Final = 5_000  # characters of a sentence

served = test_calls.stack  # the fixture


@dataclass
class Liar:
    """Stands where north writes its answers to one method.

    Attributes:
        method: Which.
        at: The number of the answer that is another one.
        said: That, as it goes over the wire; None where all are honest.
        honest: What came until then.
    """

    method: tuple[str, str] = ("", "")
    at: int = 0
    said: bytes | None = None
    honest: list[Message] = field(default_factory=list)

    def say(self, method: tuple[str, str], message: Message, serialize: Callable[[Message], bytes]) -> bytes:
        if method != self.method:
            return serialize(message)
        self.honest.append(message)
        return self.said if self.said is not None and len(self.honest) == self.at + 1 else serialize(message)


@pytest.fixture(scope="module")
def liar() -> Iterator[Liar]:
    patch, lies, honest = pytest.MonkeyPatch(), Liar(), Gate.intercept_service

    async def intercepted(self: Gate, continuation: Any, details: Any) -> Any:
        handler = await honest(self, continuation, details)
        if handler is None or self.me != "north" or handler.response_serializer is None:
            return handler
        service, _, name = details.method.removeprefix("/comine.v1.").partition("/")
        serialize = handler.response_serializer
        return handler._replace(response_serializer=lambda message: lies.say((service, name), message, serialize))

    patch.setattr(Gate, "intercept_service", intercepted)
    patch.setattr(
        "coordinator.jobs.client.secrets", SimpleNamespace(token_bytes=lambda _: CHALLENGE)
    )  # what is answered it stays answered
    yield lies
    patch.undo()


# -- what is made of answers ------------------------------------------------------------------------------------------
def _north(stack: Stack) -> tuple[Any, str, str]:
    return stack.callers["coordinator"], "north", stack.nodes.addresses["north"]


def _by(kind: Callable[..., Any], use: Callable[[Any, Stack], Any]) -> Callable[[Stack], None]:
    """Uses a client of this kind, and closes it."""

    async def used(stack: Stack) -> None:
        client = kind(*_north(stack))
        try:
            await use(client, stack)
        finally:
            await client.close()

    return lambda stack: stack.run(used(stack))


def _control(use: Callable[[PartyClient, Stack], Any]) -> Callable[[Stack], None]:
    return _by(PartyClient, use)


async def _ask(client: PartyClient, stack: Stack) -> None:
    nonce = os.urandom(16)
    proposal = stack.nodes.clients["north"].signed(weekly(), nonce=nonce)
    job_id = weekly().job_id(nonce, control.Proposal.FromString(proposal.proposal).expiry)
    try:
        await ask(client, job_id, proposal, stack.callers["coordinator"].trust, "analyst", again=False)
    finally:
        await client.cancel(job_id, "enough")


async def _queue(client: PartyClient, stack: Stack) -> None:
    nonce = os.urandom(16)
    proposal = stack.nodes.clients["north"].signed(weekly(), nonce=nonce)
    job_id = (await client.propose(proposal)).job_id
    try:
        async with aclosing(client.queue(job_id, wait=False)) as places:
            async for _ in places:
                return
    finally:
        await client.cancel(job_id, "enough")


async def _watch(client: PartyClient, stack: Stack) -> None:
    async def deal(*_: object) -> None:
        pass

    async with asyncio.timeout(SOON_S):
        await follow(client, stack.job, lambda *_: None, lambda *_: None, deal)


async def _result(client: PartyClient, stack: Stack) -> None:
    trust, released = stack.callers["coordinator"].trust, {}
    for name in stack.nodes.addresses:
        other = (
            client if name == "north" else PartyClient(stack.callers["coordinator"], name, stack.nodes.addresses[name])
        )
        released[name] = await other.result(stack.job, table=name == "north")
        if other is not client:
            await other.close()
    assemble(weekly(), stack.job, trust, released, "north")


async def _plan(_: PartyClient, stack: Stack) -> None:
    (await plan_job(weekly(), stack.callers["coordinator"], stack.nodes.addresses)).as_data()


def _frequency(use: Callable[[FrequencyNode, Stack], Any]) -> Callable[[Stack], None]:
    return _by(FrequencyNode, use)


async def _collections(node: FrequencyNode, _: Stack) -> None:
    for each in await node.collections():
        collection_as_data(each, node.spec(each))


async def _collection(node: FrequencyNode, _: Stack) -> None:
    found = await node.describe("homepages")
    collection_as_data(found, node.spec(found))
    await node.domain(found)


def _after_reports(use: Callable[[Stack], None]) -> Callable[[Stack], None]:
    def used(stack: Stack) -> None:
        if not stack.read.get("reports"):
            _client(stack)
            stack.read["reports"] = 1
        use(stack)

    return used


async def _estimates(node: FrequencyNode, _: Stack) -> None:
    await node.estimate(frequency.FrequencyRequest(collection="homepages"))


async def _changes(node: FrequencyNode, _: Stack) -> None:
    request = frequency.FrequencyRequest(collection="homepages")
    async with asyncio.timeout(SOON_S), aclosing(node.watch(request, 1.0)) as found:
        async for _each in found:
            return


async def _export(node: FrequencyNode, _: Stack) -> None:
    async with aclosing(node.export("homepages", states=True)) as parts:
        async for _each in parts:
            pass


def _client(stack: Stack) -> None:
    with Connection(stack.callers["client"], *_north(stack)[1:], attempts=1) as connection:
        batch = REQUESTS["FrequencyEstimation", "Submit"](stack)
        assert isinstance(batch, frequency.ReportBatch)
        list(connection.submit([batch]))


def _route(stack: Stack) -> None:
    node = ShufflerNode(*_north(stack))
    try:
        told = node.describe("weekly")
        route = route_of(told.document)
        RouteStatus(route, (told, told)).as_data()
        read_key(told.key, route, 0, stack.callers["coordinator"].trust)
    finally:
        node.close()


def _sealed(stack: Stack) -> None:
    node = ShufflerNode(stack.callers["client"], *_north(stack)[1:])
    try:
        message = REQUESTS["Shuffler", "Submit"](stack)
        node.submit([message])  # type: ignore[list-item]
    finally:
        node.close()


async def _listed(stack: Stack) -> None:
    releasing, asking = ReleasingNode(*_north(stack)), QueryNode(*_north(stack))
    try:
        open_ones = await releasing.datasets()
        listing(open_ones), listing_as_data("north", open_ones), [rules_of(each) for each in open_ones]
        answering = await asking.datasets()
        query_listing(answering), queries_as_data("north", answering)
    finally:
        await releasing.close()
        await asking.close()


async def _asked(stack: Stack) -> None:
    node = QueryNode(*_north(stack))
    try:
        (await node.ask("staff", "avg(salary) where age >= 30 and city = 'Bern'")).as_data()
    finally:
        await node.close()


USES: Final[dict[tuple[str, str], Callable[[Stack], None]]] = {
    ("Control", "Describe"): _control(lambda client, _: introduce(client)),
    ("Control", "Estimate"): _control(_plan),
    ("Control", "Propose"): _control(_ask),
    ("Control", "Queue"): _control(_queue),
    ("Control", "Watch"): _control(_watch),
    ("Control", "Result"): _control(_result),
    ("FrequencyEstimation", "List"): _frequency(_collections),
    ("FrequencyEstimation", "Describe"): _frequency(_collection),
    ("FrequencyEstimation", "Submit"): _client,
    ("FrequencyEstimation", "Estimate"): _after_reports(_frequency(_estimates)),
    ("FrequencyEstimation", "Watch"): _after_reports(_frequency(_changes)),
    ("FrequencyEstimation", "Export"): _frequency(_export),
    ("Shuffler", "Describe"): _route,
    ("Anonymization", "ListDatasets"): lambda stack: stack.run(_listed(stack)),
    ("Anonymization", "Query"): lambda stack: stack.run(_asked(stack)),
    ("Shuffler", "Submit"): _sealed,
}
ELSEWHERE: Final[dict[tuple[str, str], str]] = {
    ("Control", "Start"): EMPTY,
    ("Control", "Deal"): EMPTY,
    ("Control", "Cancel"): EMPTY,
    ("FrequencyEstimation", "Create"): "as Describe",
    ("FrequencyEstimation", "Close"): "as Describe",
    ("FrequencyEstimation", "Delete"): EMPTY,
    ("FrequencyEstimation", "Domain"): "lines whose digest is held against Describe, in tests of the service",
    (
        "Anonymization",
        "Anonymize",
    ): "a release takes seconds: its files in test_records, its parts in tests of the service",
    ("Shuffler", "Create"): "as Describe",
    ("Shuffler", "Flush"): "as Describe",
    ("Shuffler", "Retire"): "as Describe",
    ("Shuffler", "Forward"): "of one node to another, in tests of the service",
    ("Shuffler", "Collect"): "batches need two shufflers, in tests of the service",
}


def test_every_answer_is_made_wrong() -> None:
    ours = {(service.removeprefix("comine.v1."), name) for service, each in METHODS.items() for name in each}
    assert {pair for pair in ours if not pair[0].startswith("grpc.")} == USES.keys() | ELSEWHERE.keys()
    assert not USES.keys() & ELSEWHERE.keys()


@pytest.mark.parametrize(("service", "name"), sorted(USES))
@examples(few=EXAMPLES or 5, every=EXAMPLES or 30, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_an_answer_is_used_or_refused(
    service: str,
    name: str,
    liar: Liar,
    served: Stack,
    data: st.DataObject,
) -> None:
    method = (service, name)
    honest = HONEST.get(method)
    if honest is None:
        honest = HONEST[method] = _use(liar, served, method, None)
    assert honest, f"no answer to {name}"
    at = data.draw(st.integers(0, len(honest) - 1))
    _use(liar, served, method, data.draw(_another(served, honest[at])), at)


HONEST: Final[dict[tuple[str, str], list[Message]]] = {}


def _use(liar: Liar, stack: Stack, method: tuple[str, str], said: bytes | None, at: int = 0) -> list[Message]:
    liar.method, liar.at, liar.said, liar.honest = method, at, said, []
    try:
        USES[method](stack)
    except TimeoutError:
        assert method in ENDLESS
    except ComineError as error:
        _check(error, refused=said is not None)
    finally:
        liar.method = ("", "")
    return liar.honest


def _check(error: ComineError, *, refused: bool) -> None:
    """A refusal is for people, and there is one only where an answer was made wrong."""
    assert refused, error
    assert not isinstance(error, InternalError), error
    assert len(error.message) < MOST, error


@st.composite
def _another(draw: st.DrawFn, stack: Stack, message: Message) -> bytes:
    """An answer made wrong; where it is signed, perhaps inside its signature."""
    if draw(st.integers(0, 3)) == 0:
        return draw(mutated([message.SerializeToString(), b"\x0a\x02\x08\x01"]))
    if draw(st.booleans()):
        identity = stack.nodes.authority.issue("north")
        match message:
            case control.SignedDescription():
                inner = draw(changed(control.Description.FromString(message.description)))
                return description.sign(inner, CHALLENGE, identity).SerializeToString()  # type: ignore[arg-type]
            case control.ResultPart() if message.HasField("header"):
                release = draw(changed(control.Release.FromString(message.header.release)))
                return control.ResultPart(header=sign(release, identity)).SerializeToString()  # type: ignore[arg-type]
            case _:
                pass
    return draw(changed(message)).SerializeToString()
