"""The runner against scripted nodes: good ends, every kind of bad end, and who is told."""

from __future__ import annotations

import asyncio
import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coordinator.jobs import lifecycle
from coordinator.jobs.runner import run_job
from coordinator.node_client import NodeClient
from jobs.kinds.packed_itemsets import digest, pack
from jobs.loading import job_of
from jobs.results.result import Result
from jobs.spec.job import JobSpec
from link.errors import (
    ComineError,
    DeadlineExceeded,
    IdentityError,
    InputDataError,
    MalformedMessage,
    PeerError,
    PolicyDenied,
    ProtocolViolation,
    VersionMismatch,
)
from link.pki.authority import Authority
from mining.itemsets import Itemsets
from mining.rules.association import Rules
from protos.v1 import control_pb2 as control
from tests.coordinator.nodes import SPEC, TABLE, World, world
from tests.errors import fails

WITHOUT_COUNTS = Itemsets(("bread",), [(np.array([[0]], np.int32), np.zeros(1, np.int64))], 9, counted=False)
NO_RULES = Rules(WITHOUT_COUNTS, *[np.empty(0, np.int64)] * 3)


def run(spec: JobSpec = SPEC, **changes: dict[str, Any]) -> tuple[Result | ComineError, World]:
    """The result or the error, and the world in which it came about."""

    async def test() -> tuple[Result | ComineError, World]:
        async with world(**changes) as made:
            try:
                return await run_job(spec, made.coordinator, made.addresses), made
            except ComineError as error:
                return error, made

    return asyncio.run(test())


def failed(message: str, code: str = "E101", party: str = "south") -> control.JobEvent:
    return control.JobEvent(state=control.FAILED, error_code=code, error_message=message, error_party=party)


def test_a_good_end() -> None:
    result, made = run()
    assert isinstance(result, Result)
    assert result.finding is not None
    assert dict(result.finding.itemsets) == {("bread",): 5, ("milk",): 4}
    assert (result.n_rows, set(result.parties), result.session_id) == (9, {"north", "south"}, bytes(32))
    assert result.receipts["south"].agrees_with == ("peer",)
    for node in made.nodes.values():
        assert node.calls == ["Describe", "Propose", "Start", "Watch", "Result"]


def test_progress_is_told() -> None:
    told: list[tuple[object, ...]] = []

    async def test() -> None:
        async with world() as made:
            await run_job(SPEC, made.coordinator, made.addresses, lambda *words: told.append(words))

    asyncio.run(test())
    assert ("north", "sum", 1, 2, 3, 0) in told


def test_the_first_cause_is_reported_and_all_are_told() -> None:
    error, made = run(
        north={"events": [failed("south was lost", "E200")]}, south={"events": [failed("its file is cut off")]}
    )
    assert isinstance(error, InputDataError)
    assert (error.message, error.party) == ("its file is cut off", "south")
    assert all("Cancel" in node.calls for node in made.nodes.values())


def test_a_refusal_cancels_the_job_where_it_was_accepted() -> None:
    error, made = run(south={"refuse": {"Propose": PolicyDenied("south forbids it", party="south")}})
    assert isinstance(error, PolicyDenied)
    assert error.party == "south"
    assert "Start" not in made.nodes["north"].calls
    assert "Cancel" in made.nodes["north"].calls


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"release": lambda r: setattr(r, "result_digest", bytes(32))}, ProtocolViolation, "another result"),
        ({"release": lambda r: setattr(r, "n_rows", 8)}, ProtocolViolation, "number of rows"),
        ({"release": lambda r: setattr(r, "session", b"1" * 32)}, ProtocolViolation, "another session"),
        ({"release": lambda r: setattr(r, "party", "north")}, ProtocolViolation, "another party or job"),
        ({"release": lambda r: setattr(r, "job_id", bytes(32))}, ProtocolViolation, "another party or job"),
        ({"signer": Authority.create().issue("south")}, IdentityError, "authority"),
        ({"wire": "99"}, VersionMismatch, "99"),
    ],
)
def test_what_one_party_may_not_sign(changes: dict[str, Any], kind: type[ComineError], words: str) -> None:
    error, _ = run(south=changes)
    assert isinstance(error, kind), error
    assert "south" in error.message
    assert words in error.message


def test_a_table_that_was_not_signed_is_refused() -> None:
    other = pack(Itemsets(("tea",), [], 9))
    error, _ = run(north={"table": other})
    assert isinstance(error, ProtocolViolation)
    assert error.party == "north"


@pytest.mark.parametrize(
    ("disclose", "rules", "table"),
    [
        ("supports", None, pack(WITHOUT_COUNTS)),
        ("frequent", None, TABLE),
        ("frequent", None, pack(WITHOUT_COUNTS, NO_RULES)),
        ("frequent", {"min_confidence": 0.5}, pack(WITHOUT_COUNTS)),
    ],
)
def test_a_signed_table_of_another_kind_is_refused(disclose: str, rules: Any, table: bytes) -> None:
    contents = SPEC.model_dump(mode="json", by_alias=True, exclude_none=True)
    contents["itemsets"]["disclose"] = disclose
    if rules is not None:
        contents["job"]["task"], contents["rules"] = "rules", rules
    release = {"release": lambda r: setattr(r, "result_digest", digest(table)), "table": table}
    error, _ = run(job_of(contents, "the test", Path()), north=release, south=release)
    assert isinstance(error, ProtocolViolation)
    assert error.message == "north sent a result of another kind than the job asks for"


def test_a_signed_table_that_cannot_be_read_is_refused() -> None:
    cut = TABLE[:-3]
    release = {"release": lambda r: setattr(r, "result_digest", digest(cut)), "table": cut}
    error, _ = run(north=release, south=release)
    assert isinstance(error, MalformedMessage)


def test_a_party_that_is_down_is_named_with_its_address() -> None:
    async def test() -> PeerError:
        async with world() as made:
            await made.servers["south"].stop(0)
            with pytest.raises(PeerError) as caught:
                await run_job(SPEC, made.coordinator, made.addresses)
            assert made.addresses["south"] in caught.value.message
            return caught.value

    assert asyncio.run(test()).party == "south"


def test_a_party_that_is_lost_while_the_job_runs_is_waited_for_until_its_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lifecycle, "MARGIN_S", 0.0)
    spec = SPEC.model_copy(update={"job": SPEC.job.model_copy(update={"deadline": "2s"})})

    async def test() -> None:
        async with world(south={"hold": True}) as made:
            job = asyncio.ensure_future(run_job(spec, made.coordinator, made.addresses))
            await made.nodes["south"].watched.wait()
            await made.servers["south"].stop(0)
            with fails("E600"):
                await job
            assert "Cancel" in made.nodes["north"].calls

    asyncio.run(test())


def test_another_party_at_the_address_is_found_out() -> None:
    async def test() -> None:
        async with world() as made:
            swapped = {"north": made.addresses["south"], "south": made.addresses["north"]}
            with fails("E201"):
                await run_job(SPEC, made.coordinator, swapped)

    asyncio.run(test())


def test_parties_of_another_authority_are_not_trusted() -> None:
    async def test() -> None:
        async with world() as made:
            stranger = Authority.create().issue("hub", "coordinator")
            with fails("E201"):
                await run_job(SPEC, stranger, made.addresses)

    asyncio.run(test())


def test_a_job_that_failed_lets_go_of_its_calls_at_once_even_while_its_error_is_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A call keeps its connection open, whether or not the channel is closed."""
    made: list[weakref.ref[Any]] = []
    call = NodeClient.call

    def noted(client: NodeClient, awaited: Any) -> Any:
        made.append(weakref.ref(awaited))
        return call(client, awaited)

    monkeypatch.setattr(NodeClient, "call", noted)
    gc.disable()
    try:
        error, _ = run(south={"refuse": {"Start": PolicyDenied("not today", party="south")}})
        assert isinstance(error, PolicyDenied)
        assert made
        assert not [each for each in made if each() is not None]
    finally:
        gc.enable()


def test_cancelling_tells_all_parties() -> None:
    async def test() -> None:
        async with world(north={"hold": True}, south={"hold": True}) as made:
            job = asyncio.ensure_future(run_job(SPEC, made.coordinator, made.addresses))
            await asyncio.gather(*(node.watched.wait() for node in made.nodes.values()))
            job.cancel()
            with pytest.raises(asyncio.CancelledError):
                await job
            assert all("Cancel" in node.calls for node in made.nodes.values())

    asyncio.run(test())


def test_the_deadline_ends_a_job_that_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "MARGIN_S", 0.0)
    spec = SPEC.model_copy(update={"job": SPEC.job.model_copy(update={"deadline": "1s"})})
    error, made = run(spec, south={"hold": True})
    assert isinstance(error, DeadlineExceeded)
    assert "Cancel" in made.nodes["south"].calls
