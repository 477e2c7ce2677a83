"""Who may do what: by certificate, by the collection's file, and by the node's policy."""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509

from jobs.collections.spec import CollectionSpec, labels_of
from party.config import AUDIT_LOG
from party.node.methods import METHODS
from party.services.frequency import policy
from party.services.frequency.access import may_read, quota_of
from party.services.frequency.policy import (
    MOST_ROUNDS,
    FrequencySection,
    check_creation,
    check_rounds,
    memory_of,
)
from protos.v1 import control_pb2, frequency_pb2
from protos.v1 import frequency_pb2 as pb
from tests.errors import fails
from tests.looped import looped
from tests.party.nodes import refused
from tests.party.services.frequency.nodes import Caller, batch, running
from tests.party.services.frequency.specs import spec_of

REQUESTS: dict[str, Any] = {
    "Create": pb.CreateCollectionRequest(),
    "List": pb.ListCollectionsRequest(),
    "Describe": pb.DescribeCollectionRequest(collection="homepages"),
    "Domain": pb.DomainRequest(collection="homepages"),
    "Estimate": pb.FrequencyRequest(collection="homepages"),
    "Watch": pb.WatchFrequencyRequest(what=pb.FrequencyRequest(collection="homepages")),
    "Export": pb.ExportRequest(collection="homepages"),
    "Close": pb.CloseCollectionRequest(collection="homepages"),
    "Delete": pb.DeleteCollectionRequest(collection="homepages"),
}


async def called(caller: Caller, method: str) -> Any:
    """A call and all that it answers."""
    if method == "Submit":
        return await caller.submit(pb.ReportBatch())
    request = REQUESTS[method]
    call = getattr(caller.stub, method)(iter([request]) if method == "Create" else request)
    return [part async for part in call] if hasattr(call, "__aiter__") else await call


def test_every_method_of_both_services_has_its_roles() -> None:
    for module in (control_pb2, frequency_pb2):
        for service in module.DESCRIPTOR.services_by_name.values():
            assert set(METHODS[service.full_name]) == set(service.methods_by_name)


def test_a_revoked_certificate_counts_no_further_report(tmp_path: Path) -> None:
    """Its stream goes on until it sends again; what was acknowledged before stays counted."""

    async def test() -> None:
        async with running(tmp_path) as world:
            analyst, phone = world.analyst, world.caller("phone")
            created = await analyst.create(spec_of(access={"gateways": {"phone": 10}}))
            call = phone.stub.Submit()
            await call.write(batch(created, [1, 2], seed=1))
            assert (await call.read()).counted == 2
            serial = x509.load_pem_x509_certificate(phone.identity.certificate_pem).serial_number
            world.authority.revoke(world.folder / "pki", [serial])
            await call.write(batch(created, [3], seed=2))
            refusal = await refused(call.read())
            assert refusal.code == "E201"
            assert "the certificate of phone was revoked" in refusal.sentence
            assert (await analyst.describe()).counters.counted == 2
            assert (await world.caller("other").submit(batch(created, [4], seed=3)))[0].counted == 1

    asyncio.run(test())


def test_roles_are_kept_apart(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            analyst = world.analyst
            await analyst.create(spec_of())
            phone, peer = world.caller("phone"), world.caller("south", "party")
            for method in ("Create", "List", "Estimate", "Watch", "Export", "Close", "Delete"):
                refusal = await refused(called(phone, method))
                assert (refusal.status, refusal.code) == (grpc.StatusCode.PERMISSION_DENIED, "E201")
                assert refusal.sentence == "north takes orders from coordinators only, and phone is a client"
            refusal = await refused(called(analyst, "Submit"))
            assert refusal.sentence == "north answers this to clients only, and analyst is a coordinator"
            for method in (*REQUESTS, "Submit"):
                assert (await refused(called(peer, method))).code == "E201"
            assert (await phone.describe()).name == "homepages"

    asyncio.run(test())


def test_a_client_can_call_nothing_of_the_control_service(tmp_path: Path) -> None:
    from protos.v1.control_pb2_grpc import ControlStub

    async def test() -> None:
        async with running(tmp_path) as world:
            stub: Any = ControlStub(world.caller("phone").channel)
            refusal = await refused(stub.Describe(control_pb2.DescribeRequest(challenge=bytes(32))))
            assert refusal.sentence == "north takes orders from coordinators only, and phone is a client"

    asyncio.run(test())


def test_only_readers_read_and_only_the_creator_closes(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            analyst = world.analyst
            reader, other = world.caller("reader", "coordinator"), world.caller("other", "coordinator")
            created = await analyst.create(spec_of(access={"read": ["reader"], "submit": ["phone"]}))
            await world.caller("phone").submit(batch(created, [3]))
            for method in ("Describe", "Domain", "Estimate", "Watch", "Export"):
                refusal = await refused(called(other, method))
                assert (refusal.status, refusal.code) == (grpc.StatusCode.PERMISSION_DENIED, "E300")
                assert "is for analyst to read" in refusal.sentence
            names = [[each.name for each in (await called(each, "List")).collections] for each in (reader, other)]
            assert names == [["homepages"], []]
            for each in (reader, other):
                assert "who alone may close it" in (await refused(called(each, "Close"))).sentence
                assert "who alone may delete it" in (await refused(called(each, "Delete"))).sentence
            told = await world.caller("phone").describe()
            assert b"reader" in (await reader.describe()).spec == created.spec
            assert CollectionSpec.from_canonical(told.spec) == spec_of()  # without whom [access] names
            stranger = world.caller("stranger")
            assert (await refused(stranger.describe())).code == "E300"
            (receipt,) = await stranger.submit(batch(created, [3], seed=9))
            assert (receipt.status, receipt.counted) == (pb.REFUSED, 0)
            assert receipt.message == "'stranger' may not report to the collection 'homepages'"

    asyncio.run(test())


def test_a_node_without_the_table_says_that_the_service_is_off(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, policy=None) as world:
            analyst, phone = world.analyst, world.caller("phone")
            off = "the frequency service of north is off; its operator turns it on by a [frequency] table in party.toml"
            for caller, method in [*((analyst, method) for method in REQUESTS), (phone, "Submit")]:
                assert (await refused(called(caller, method))).sentence == off
            assert not (tmp_path / "state" / "north" / "frequency.db").exists()

    asyncio.run(test())


def test_what_is_created_and_read_is_in_the_audit_log(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            analyst = world.analyst
            created = await analyst.create(spec_of())
            await world.caller("phone").submit(batch(created, [3]))
            await analyst.estimate()
            await analyst.close()

    asyncio.run(test())
    lines = (tmp_path / "state" / "north" / AUDIT_LOG).read_bytes().splitlines()
    told = [(line["event"], line["fields"]) for line in map(json.loads, lines)]
    kept = [each for each in told if each[0].startswith(("collection", "round", "estimates"))]
    assert [event for event, _ in kept] == ["collection-created", "estimates-read", "round-ended", "collection-closed"]
    assert kept[0][1]["coordinator"] == kept[1][1]["coordinator"] == kept[3][1]["by"] == "analyst"
    assert kept[1][1]["reports"] == kept[2][1]["reports"] == 1


@pytest.mark.parametrize(
    ("policy", "spec"),
    [
        ({"create": ["boss"]}, {}),
        ({"max_epsilon": "0.5"}, {}),
        (
            {"max_epsilon": "1.5"},
            {"mechanism": "l-osue"},
        ),
        (
            {"max_epsilon": "2"},
            {"mechanism": "l-grr", "parameters": {"permanent_epsilon": Decimal("2.5")}},
        ),
        ({"mechanisms": ["olh"]}, {}),
        (
            {"max_domain": 7},
            {},
        ),
        (
            {"min_window": "1h"},
            {"window": {"length": "59m"}},
        ),
        (
            {"max_collections": 3},
            {},
        ),
    ],
)
def test_a_policy_refuses_and_names_its_rule(policy: dict[str, Any], spec: dict[str, Any]) -> None:
    section = FrequencySection.model_validate({"max_epsilon": "8", **policy})
    with fails("E300"):
        check_creation(section, spec_of(**spec), "analyst", "north", running=3)
    check_creation(
        FrequencySection.model_validate({"max_epsilon": "8"}), spec_of(**spec), "analyst", "north", running=3
    )


def test_the_open_collections_of_one_coordinator_end_so_many_rounds_a_day(tmp_path: Path) -> None:
    """The audit log keeps the end of each round for ever, be it without a report."""

    async def test() -> None:
        async with running(tmp_path) as world:
            analyst, other = world.analyst, world.caller("rival", "coordinator")
            await analyst.create(spec_of(window={"length": "1s"}))  # 86,400
            refusal = await refused(analyst.create(spec_of(name="more", window={"length": "6s"})))
            assert (refusal.code, refusal.party) == ("E403", "north")
            assert "may end 100,000 rounds a day together, and with 'more' they would end more" in refusal.sentence
            await analyst.create(spec_of(name="few", window={"length": "1s", "periods": 9_000}))
            await analyst.create(spec_of(name="slow", window={"length": "1m"}))  # 1,440
            await analyst.create(spec_of(name="single"))
            await other.create(spec_of(name="others", window={"length": "1s"}))
            await analyst.stub.Close(pb.CloseCollectionRequest(collection="homepages"))
            await analyst.create(spec_of(name="more", window={"length": "6s"}))

    asyncio.run(test())


@pytest.mark.parametrize("lengths", [[1] * 2, [2] * 3, [59] * 100, [60] * 100, [1, 60], [10] * 11 + [6]])
def test_rounds_of_whatever_windows_add_up(lengths: list[int]) -> None:
    specs = [spec_of(window={"length": f"{each}s"}) for each in lengths]
    if sum(86_400 / each for each in lengths) <= MOST_ROUNDS:
        check_rounds(specs[0], specs[1:], "analyst", "north")
    else:
        with fails("E403"):
            check_rounds(specs[0], specs[1:], "analyst", "north")


@pytest.mark.parametrize(
    ("spec_bytes", "label_bytes", "closed", "least", "most"),
    [  # measured: a list, a table and objects of 2^20 labels of 7 and of 61 characters took 142 and 271 MB
        (300, 8 << 20, True, 140e6, 150e6),
        (300, 62 << 20, True, 250e6, 280e6),
        (300, 0, False, 1 << 25, 34e6),
        (300, 0, True, 5_000, 10_000),  # 5 KB
        (560_000, 0, True, 2.07e6, 2.5e6),  # 2.07 MB
    ],
)
def test_what_a_collection_takes_of_memory(
    spec_bytes: int, label_bytes: int, *, closed: bool, least: float, most: float
) -> None:
    spec = spec_of(mechanism="dbitflip", size=1 << 20, labelled=label_bytes > 0)
    assert spec.sums == 1 << 21
    assert least <= memory_of(spec, spec_bytes, label_bytes, closed=closed) <= most


def test_the_collections_of_one_coordinator_take_so_much_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their labels stay in memory when they are closed: a node would be full of those that nobody deletes."""
    texts = [f"page {number}" for number in range(1000)]
    labels = labels_of(texts)
    spec = spec_of(size=len(texts), labelled=True)
    monkeypatch.setattr(policy, "MOST_MEMORY", 2 * memory_of(spec, len(spec.canonical()), len(labels), closed=False))

    async def test() -> None:
        async with running(tmp_path) as world:
            analyst, other = world.analyst, world.caller("rival", "coordinator")
            for name in ("one", "two"):
                await analyst.create(spec_of(name=name, size=len(texts), labelled=True), labels)
            for _ in range(2):
                refusal = await refused(analyst.create(spec_of(name="three", size=len(texts), labelled=True), labels))
                assert (refusal.code, refusal.party) == ("E403", "north")
                assert "the collections of analyst at north may take" in refusal.sentence
                await other.create(spec_of(name="others", size=len(texts), labelled=True), labels)
                await analyst.close("one")
                await other.close("others")
                await other.delete("others")
                await world.restart()
            await analyst.delete("one")
            await analyst.create(spec_of(name="three", size=len(texts), labelled=True), labels)

    asyncio.run(test())


def test_few_reports_are_not_shown(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, policy="max_epsilon = 8\nmin_reports = 100") as world:
            analyst, fleet = world.analyst, world.caller("fleet")
            created = await analyst.create(spec_of(access={"gateways": {"fleet": 1000}}))
            await fleet.submit(batch(created, [1] * 99))
            refusal = await refused(called(analyst, "Estimate"))
            assert (refusal.code, "(rule min_reports)" in refusal.sentence) == ("E300", True)
            assert b"1" not in (await analyst.export())["estimates.csv"]
            await fleet.submit(batch(created, [1], seed=5))
            assert (await analyst.estimate()).head.reports == 100

    asyncio.run(test())


def test_a_collection_is_created_once_and_at_its_node(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            analyst = world.analyst
            await analyst.create(spec_of())
            assert "already" in (await refused(analyst.create(spec_of()))).sentence
            elsewhere = await refused(analyst.create(spec_of(name="x", node="south")))
            assert elsewhere.sentence == "the collection 'x' is meant for the node of south, not of north"
            for data in (b"", b"{}", b"[" * 100_000, b"\xff", spec_of().canonical() + b" "):
                wrong = await refused(analyst.stub.Create(iter([pb.CreateCollectionRequest(spec=data)])))
                assert wrong.code == "E100"

    asyncio.run(test())


def test_quotas_follow_the_access_table() -> None:
    spec = spec_of(access={"submit": ["a"], "gateways": {"g": 5}, "read": ["r"]})
    assert [quota_of(spec, name) for name in ("a", "g", "b")] == [1, 5, 0]
    assert quota_of(spec_of(), "anybody") == 1
    assert [may_read(spec, "boss", name) for name in ("boss", "r", "x")] == [True, True, False]


@looped
async def test_rules_change_while_the_node_runs(tmp_path: Path) -> None:
    """Collections that are open stay as they were created; reports and rounds are those of before."""
    async with running(tmp_path, policy="max_epsilon = 8\nmin_reports = 100") as world:
        analyst, fleet, file = world.analyst, world.caller("fleet"), tmp_path / "north.toml"
        created = await analyst.create(spec_of(access={"gateways": {"fleet": 1000}}))
        await fleet.submit(batch(created, [1] * 50))
        text = file.read_text()
        file.write_text(text.replace("max_epsilon = 8\nmin_reports = 100", "max_epsilon = 0.1\nmin_reports = 50"))
        assert await world.node.reload(file) == ("[frequency]",)
        assert (await analyst.estimate()).head.reports == 50
        assert "(rule max_epsilon)" in (await refused(analyst.create(spec_of(name="next")))).sentence
        await fleet.submit(batch(created, [1], seed=5))
        assert (await analyst.estimate()).head.reports == 51
        file.write_text(text.replace("[frequency]\nmax_epsilon = 8\nmin_reports = 100", ""))
        with fails("E100"):
            await world.node.reload(file)
