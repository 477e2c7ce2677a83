"""Consent at the nodes: people and policies that decide, restarts, and coordinators that try to get around them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sqlite3
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import party.inbox_cli
import party.jobs.tables
from comine.command import run
from jobs.consent import approve, read_approval
from jobs.kinds.packed_itemsets import digest, unpack
from jobs.loading import job_of
from jobs.results.release import verify
from link.pki.trust import Trust
from mining.reference.pooled import brute_force
from party.config import PartyConfig
from party.state.store import Store
from protos.v1 import control_pb2 as control
from tests.integration.faults.test_guilty import shift
from tests.jobs.audit.world import WHOLE_JOB
from tests.party.files import write_federation
from tests.party.nodes import DATA, Client, audited, crash, expire, hold, refused, running, weekly

pytestmark = pytest.mark.usefixtures("few_fakes")

MANUAL = "min_support = 0.1"  # beside approve = "manual", which `manual` puts in


@pytest.fixture
def manual(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, str], Callable[[Any], None]]:
    def prepare(folder: Path, *names: str) -> Callable[[Any], None]:
        def change(_: Any) -> None:
            for name in names:
                file = folder / f"{name}.toml"
                file.write_text(file.read_text().replace('approve = "auto"', 'approve = "manual"'))

        return change

    return prepare


async def command(*arguments: str) -> int:
    """Runs `comine party …` as another process would, beside the node."""
    return await asyncio.to_thread(run, ["party", *arguments])


async def until(client: Client, job_id: bytes, state: int) -> control.JobEvent:
    """The first event of a job in some state."""
    async with asyncio.timeout(20):
        async for event in client.stub.Watch(control.WatchRequest(job_id=job_id)):
            if event.state == state:
                return event
    raise AssertionError(f"the job never came to {control.JobState.Name(state)}")


def store_of(folder: Path, name: str) -> Store:
    return Store.open(folder / "state" / name / "node.db")


# -- people -----------------------------------------------------------------------------------------------------------
def test_a_job_waits_for_people_and_then_runs(tmp_path: Path, manual: Any, capsys: pytest.CaptureFixture[str]) -> None:
    async def test() -> None:
        async with running(tmp_path, prepare=manual(tmp_path, "north", "south")) as nodes:
            nonce, expiry = os.urandom(16), int(time.time()) + 86_400
            decided = await nodes.all(lambda client: client.decide(weekly(), nonce, expiry))
            job_id = decided[0][0]
            assert [approval is None for _, approval in decided] == [True, True, False]
            early = await refused(nodes.clients["north"].start(job_id, nodes.forged(job_id, weekly())))
            assert "nobody at north has approved this job yet" in early.sentence
            watching = [asyncio.create_task(until(nodes.clients[n], job_id, control.APPROVED)) for n in DATA]
            await until(nodes.clients["north"], job_id, control.AWAITING_APPROVAL)
            for name in ("north", "south"):
                file = str(tmp_path / f"{name}.toml")
                by = ("--by", "alice") if name == "north" else ()
                assert await command("approve", file, job_id.hex()[:8], *by) == 0
            events = await asyncio.gather(*watching)
            approvals = [event.approval for event in events]
            trust = nodes.clients["north"].identity.trust
            signed = [read_approval(approval, trust, name) for approval, name in zip(approvals, DATA, strict=True)]
            assert [(approval.by, approval.job_id) for approval in signed] == [
                ("alice", job_id),
                ("operator", job_id),  # and not whoever is logged in at the node's machine
                ("policy", job_id),
            ]
            await nodes.all(lambda client: client.start(job_id, approvals))
            assert {event.state for event in (await nodes.ends(job_id)).values()} == {control.SUCCEEDED}

    asyncio.run(test())
    assert "approved by alice" in capsys.readouterr().out
    events = [entry["event"] for entry in audited(tmp_path, "north")]
    assert events == [*WHOLE_JOB, "node-stopped"]


def test_a_person_can_deny_with_a_reason_that_the_coordinator_is_told(tmp_path: Path, manual: Any) -> None:
    async def test() -> None:
        async with running(tmp_path, prepare=manual(tmp_path, "north")) as nodes:
            north = nodes.clients["north"]
            job_id = await north.propose(weekly())
            file = str(tmp_path / "north.toml")
            watching = asyncio.create_task(until(north, job_id, control.DENIED))
            assert (
                await command("deny", file, job_id.hex(), "--by", "bob", "--reason", "see https://north.example/sale")
                == 0
            )
            event = await watching
            assert (event.error_code, event.error_party) == ("E300", "north")
            assert event.error_message == "bob at north denied the job: see https://north.example/sale"
            for verb in (["approve", file, job_id.hex()], ["deny", file, job_id.hex(), "--reason", "again"]):
                assert await command(*verb) == 2  # decided once and for all
            assert (await refused(north.start(job_id, nodes.forged(job_id, weekly())))).code == "E401"

    asyncio.run(test())
    assert [e["fields"].get("reason") for e in audited(tmp_path, "north") if e["event"] == "refused"] == [
        "see https://north.example/sale"
    ]


def test_a_decision_that_comes_too_late_is_refused(tmp_path: Path, manual: Any) -> None:
    async def test() -> None:
        async with running(tmp_path, prepare=manual(tmp_path, "north")) as nodes:
            north = nodes.clients["north"]
            job_id = await north.propose(weekly())
            expire(nodes.nodes["north"], job_id)
            await until(north, job_id, control.EXPIRED)
            assert await command("approve", str(tmp_path / "north.toml"), job_id.hex()) == 2
            shift(nodes, "north", -600)  # its time passes where no node is there to see it
            second = await north.propose(weekly(), os.urandom(16), int(time.time()) - 1)
            await nodes.nodes["north"].stop()
            assert await command("approve", str(tmp_path / "north.toml"), second.hex()) == 60
            await nodes.restart("north")
            event = await until(north, second, control.EXPIRED)
            assert event.error_code == "E600"

    asyncio.run(test())


def test_what_the_policy_refuses_by_now_cannot_be_approved_or_started(tmp_path: Path, manual: Any) -> None:
    async def test() -> None:
        async with running(tmp_path, prepare=manual(tmp_path, "north")) as nodes:
            north, file = nodes.clients["north"], tmp_path / "north.toml"
            first, second = [await north.propose(weekly(), bytes([i]) * 16) for i in (1, 2)]
            assert await command("approve", str(file), first.hex()) == 0
            await until(north, first, control.APPROVED)
            await nodes.nodes["north"].stop()
            file.write_text(file.read_text().replace('approve = "manual"', 'approve = "manual"\nmin_support = 0.5'))
            assert await command("approve", str(file), second.hex()) == 30
            await nodes.restart("north")
            refusal = await refused(north.start(first, nodes.forged(first, weekly())))
            assert (refusal.code, "rule min_support" in refusal.sentence) == ("E300", True)

    asyncio.run(test())


def test_a_decision_at_the_last_moment_is_not_overrun(tmp_path: Path, manual: Any) -> None:
    """A person decides while the node writes down that the job was cancelled."""

    async def test() -> None:
        async with running(tmp_path, prepare=manual(tmp_path, "north")) as nodes:
            host, north = nodes.nodes["north"].host, nodes.clients["north"]
            for verb, state in (("approve", control.CANCELLED), ("deny", control.DENIED)):
                job_id = await north.propose(weekly(), os.urandom(16))
                record, more = host.context.audit.record, ["--reason", "no"] if verb == "deny" else []

                async def recorded(
                    *events: Any, v: str = verb, j: bytes = job_id, m: Any = more, r: Any = record
                ) -> None:
                    await r(*events)
                    assert await command(v, str(tmp_path / "north.toml"), j.hex(), *m) == 0

                host.context.audit.record = recorded  # type: ignore[method-assign]
                await north.cancel(job_id)
                host.context.audit.record = record  # type: ignore[method-assign]
                assert (await north.watch(job_id))[-1].state == state
                store = store_of(tmp_path, "north")
                assert (found := store.get(job_id)) is not None
                assert found.state == state
                store.close()

    asyncio.run(test())


# -- restarts ---------------------------------------------------------------------------------------------------------
def test_awaiting_and_approved_jobs_outlive_the_node(tmp_path: Path, manual: Any) -> None:
    async def test() -> None:
        async with running(tmp_path, prepare=manual(tmp_path, "north")) as nodes:
            nonce, expiry = os.urandom(16), int(time.time()) + 600
            decisions = await nodes.all(lambda client: client.decide(weekly(), nonce, expiry))
            job_id, north = decisions[0][0], nodes.clients["north"]
            await nodes.nodes["north"].stop()
            assert await command("approve", str(tmp_path / "north.toml"), job_id.hex()) == 0
            await nodes.restart("north")
            await nodes.nodes["south"].stop()
            await nodes.restart("south")
            approved = (await until(north, job_id, control.APPROVED)).approval
            assert (await until(nodes.clients["south"], job_id, control.APPROVED)).approval == decisions[1][1]
            approvals = [approved, decisions[1][1], decisions[2][1]]
            await nodes.all(lambda client: client.start(job_id, approvals))
            assert {event.state for event in (await nodes.ends(job_id)).values()} == {control.SUCCEEDED}

    asyncio.run(test())


def test_a_job_that_ran_while_its_node_died_has_failed_and_is_never_started_again(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            hold(nodes.nodes["south"])
            expiry = int(time.time()) + 600
            job_id, approvals = await nodes.agree(weekly(), expiry)
            await nodes.all(lambda client: client.start(job_id, approvals))
            await crash(nodes.nodes["south"])
            await nodes.restart("south")
            south = nodes.clients["south"]
            event = (await south.watch(job_id))[-1]
            assert (event.state, event.error_code, event.error_party) == (control.FAILED, "E200", "south")
            assert "the node of south was restarted while the job ran" in event.error_message
            assert (await refused(south.start(job_id, approvals))).code == "E401"

    asyncio.run(test())


def test_proposals_and_starts_are_replayed_in_vain_after_a_restart(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            north = nodes.clients["north"]
            signed = north.signed(weekly())
            job_id = (await north.stub.Propose(signed)).job_id
            bad = north.signed(weekly(dataset="sales"))
            assert (await refused(north.stub.Propose(bad))).code == "E100"
            run_id, ends = await nodes.run(weekly())
            assert ends["north"].state == control.SUCCEEDED
            for _ in range(2):
                for again in (signed, bad):
                    assert (await refused(north.stub.Propose(again))).code == "E401"
                assert (await refused(north.start(run_id, nodes.forged(run_id, weekly())))).code == "E401"
                await nodes.nodes["north"].stop()
                await nodes.restart("north")
            assert (await until(north, job_id, control.APPROVED)).HasField("approval")

    asyncio.run(test())


def test_a_released_result_outlives_the_node_and_is_gone_after_its_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = brute_force((row for rows in DATA.values() for row in rows), 36)

    async def test() -> None:
        async with running(tmp_path) as nodes:
            job_id, ends = await nodes.run(weekly())
            (file,) = (tmp_path / "state" / "north" / "released").iterdir()
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            await nodes.nodes["north"].stop()
            await nodes.restart("north")
            north = nodes.clients["north"]
            (event,) = await north.watch(job_id)
            assert (event.state, event.bytes_sent) == (control.SUCCEEDED, ends["north"].bytes_sent)
            header, table = await north.result(job_id)
            trust = Trust(nodes.authority.certificate_pem)
            release = verify(header, trust=trust, party="north", job_id=job_id)
            assert digest(table) == release.result_digest
            assert {frozenset(items): count for items, count in unpack(table).itemsets} == expected
            await nodes.nodes["north"].stop()
            monkeypatch.setattr(party.jobs.tables, "KEEP_S", 0.0)
            await nodes.restart("north")
            assert not file.exists()
            assert "kept the result of this job for an hour" in (await refused(north.result(job_id))).sentence

    asyncio.run(test())


# -- coordinators that cheat ------------------------------------------------------------------------------------------
def test_a_job_altered_after_approval_is_refused(tmp_path: Path) -> None:
    """All parties agree to 0.2; the coordinator then starts 0.1 with those approvals."""

    async def test() -> None:
        async with running(tmp_path) as nodes:
            _, approvals = await nodes.agree(weekly())
            altered, _ = await nodes.agree(weekly(itemsets={"min_support": "0.1"}))
            for client in nodes.clients.values():
                refusal = await refused(client.start(altered, approvals))
                assert (refusal.code, "is for another job" in refusal.sentence) == ("E400", True)
                never = bytes(32)
                assert "no such job" in (await refused(client.start(never, approvals))).sentence

    asyncio.run(test())


def test_a_party_that_is_asked_for_something_else_than_the_others_is_not_joined(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            nonce, expiry = os.urandom(16), int(time.time()) + 600
            specs = {"north": weekly(), "south": weekly(), "east": weekly(itemsets={"max_length": 2})}
            decisions = {n: await c.decide(specs[n], nonce, expiry) for n, c in nodes.clients.items()}
            assert len({job_id for job_id, _ in decisions.values()}) == 2
            approvals = [approval for _, approval in decisions.values()]
            for name, client in nodes.clients.items():
                refusal = await refused(client.start(decisions[name][0], approvals))
                assert (refusal.code, "is for another job" in refusal.sentence) == ("E400", True)

    asyncio.run(test())


def test_approvals_must_be_of_all_parties_of_this_job_and_coordinator(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            job_id, approvals = await nodes.agree(weekly())
            first, second, third = approvals
            rival = nodes.client(nodes.authority.issue("rival", "coordinator"))
            others = nodes.forged(job_id, weekly(), "rival")
            foreign = approve(job_id, "analyst", nodes.authority.issue("west"), decided=1, by="policy")
            changed = control.SignedApproval()
            changed.CopyFrom(third)
            changed.approval = third.approval[:-1] + bytes([third.approval[-1] ^ 1])
            for given, code in (
                ([], "E400"),
                ([first, second], "E400"),
                ([first, second, third, third], "E400"),
                ([first, second, second], "E201"),
                ([second, first, third], "E201"),
                ([first, second, foreign], "E201"),
                ([first, second, changed], "E201"),
                ([first, second, others[2]], "E400"),
            ):
                assert (await refused(nodes.clients["north"].start(job_id, given))).code == code
            assert (await refused(rival.start(job_id, others))).code == "E401"
            await nodes.all(lambda client: client.start(job_id, approvals))
            assert {event.state for event in (await nodes.ends(job_id)).values()} == {control.SUCCEEDED}

    asyncio.run(test())


def test_a_proposal_must_be_signed_by_the_coordinator_that_brings_it(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            north = nodes.clients["north"]
            rival = nodes.client(nodes.authority.issue("rival", "coordinator"))
            signed = north.signed(weekly())
            assert (await refused(rival.stub.Propose(signed))).code == "E201"
            for change in ("proposal", "signature"):
                altered = control.SignedProposal()
                altered.CopyFrom(signed)
                field = getattr(signed, change)
                setattr(altered, change, field[:-1] + bytes([field[-1] ^ 1]))
                assert (await refused(north.stub.Propose(altered))).code == "E201"

    asyncio.run(test())


# -- several jobs together --------------------------------------------------------------------------------------------
def test_no_more_jobs_are_started_than_the_policy_allows_even_where_more_were_approved(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, policy="max_jobs = 2") as nodes:
            agreed = [await nodes.agree(weekly()) for _ in range(3)]
            for job_id, approvals in agreed[:2]:
                await nodes.all(lambda client, j=job_id, a=approvals: client.start(j, a))
                await nodes.ends(job_id)
            refusal = await refused(nodes.clients["north"].start(*agreed[2]))
            assert (refusal.code, "rule max_jobs" in refusal.sentence) == ("E300", True)
            refusal = await refused(nodes.clients["north"].propose(weekly()))
            assert (refusal.code, "rule max_jobs" in refusal.sentence) == ("E300", True)

    asyncio.run(test())


def test_the_party_set_of_the_first_job_is_that_of_all(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, policy='party_sets = "fixed"') as nodes:
            pair = weekly(parties=["north", "south"])
            expiry = int(time.time()) + 60
            decision = [await nodes.clients[n].decide(pair, bytes(16), expiry) for n in pair.job.parties]
            assert all(approval is not None for _, approval in decision)
            _, ends = await nodes.run(weekly())
            assert {event.state for event in ends.values()} == {control.SUCCEEDED}
            refusal = await refused(nodes.clients["north"].start(decision[0][0], [a for _, a in decision]))
            assert refusal.code == "E300", refusal.sentence
            assert "rule party_sets" in refusal.sentence

    asyncio.run(test())


def test_data_that_changed_by_a_few_rows_are_not_mined_again(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, policy="min_new_rows = 5") as nodes:

            async def mined() -> set[tuple[int, str]]:
                _, ends = await nodes.run(weekly())
                return {(event.state, event.error_code) for event in ends.values()}

            good, bad = {(control.SUCCEEDED, "")}, {(control.FAILED, "E101")}
            file = tmp_path / "south.dat"
            rows = file.read_text()
            assert await mined() == good
            assert await mined() == good  # the very same rows
            file.write_text(rows + "item0 item1\n")
            assert await mined() == bad
            assert await mined() == bad  # a refused job is not what the next one is compared with
            privacy = {"model": "distributed", "epsilon": "2", "delta": "1e-6"}
            contents = weekly().model_dump(mode="json", by_alias=True) | {"privacy": privacy}
            noisy = job_of(contents, "job.toml", Path())
            _, ends = await nodes.run(noisy)  # whose noise nothing bounds
            assert {(event.state, event.error_code) for event in ends.values()} == bad
            assert {event.error_party for event in ends.values()} == {"south"}
            assert not any("rows" in event.error_message for event in ends.values())  # why, the others are not told
            assert "rule min_new_rows" in nodes.logs["south"].getvalue()
            file.write_text(rows + "item0 item1\n" * 5)
            assert await mined() == good

    asyncio.run(test())


# -- withheld items ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("universe", "strategy"), [("frequent-items", "level-wise"), ("all-items", "one-shot")])
def test_excluded_items_are_as_if_they_were_nowhere(tmp_path: Path, strategy: str, universe: str) -> None:
    pooled = [[item for item in row if item not in ("item0", "item3")] for rows in DATA.values() for row in rows]
    assert [] in pooled  # rows that lose all their items still count
    itemsets = {"strategy": strategy, "universe": universe, "exclude": ["item[03]", "none*"]}

    async def test() -> None:
        async with running(tmp_path, policy='withhold = ["item[03]"]') as nodes:
            refusal = await refused(nodes.clients["north"].propose(weekly()))
            assert 'exclude = ["item[03]"]' in refusal.sentence
            job_id, ends = await nodes.run(weekly(itemsets=itemsets))
            assert {event.state for event in ends.values()} == {control.SUCCEEDED}
            _, table = await nodes.clients["north"].result(job_id)
            found = unpack(table).itemsets
            assert {frozenset(items): count for items, count in found} == brute_force(pooled, 36)
            assert found.n_rows == 180

    asyncio.run(test())


# -- what cannot be recorded does not happen --------------------------------------------------------------------------
def test_without_an_audit_log_nothing_happens(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            job_id, approvals = await nodes.agree(weekly())
            log = tmp_path / "state" / "north" / "audit.log"
            log.rename(log.with_name("moved"))
            refusal = await refused(nodes.clients["north"].propose(weekly(), os.urandom(16)))
            assert (refusal.code, refusal.party) == ("E103", "north")
            assert refusal.sentence == (
                "north cannot write its audit log, and nothing may happen unrecorded; the log of north has the reason"
            )
            assert "audit.log" in nodes.logs["north"].getvalue()
            await nodes.all(lambda client: client.start(job_id, approvals))
            for event in (await nodes.ends(job_id)).values():
                assert (event.state, event.error_party) == (control.FAILED, "north")
                assert str(tmp_path) not in event.error_message
            log.with_name("moved").rename(log)
            _, ends = await nodes.run(weekly())
            assert {event.state for event in ends.values()} == {control.SUCCEEDED}

    asyncio.run(test())


def test_another_name_of_the_same_rows_is_no_way_around_min_new_rows(tmp_path: Path) -> None:
    twin = '[[dataset]]\nname = "twin"\nkind = "transactions"\nsource = "{}.dat"\nformat = "basket"\n[policy]'

    def prepare(_: object) -> None:
        for path in (*tmp_path.glob("*.toml"),):
            path.write_text(path.read_text().replace("[policy]", twin.format(path.stem)))

    async def test() -> None:
        async with running(tmp_path, policy="min_new_rows = 5", prepare=prepare) as nodes:

            async def mined(name: str) -> set[str]:
                _, ends = await nodes.run(weekly(dataset=name))
                return {event.error_code for event in ends.values()}

            assert await mined("baskets") == {""}
            with (tmp_path / "south.dat").open("a") as file:
                file.write("item0 item1\n")
            assert await mined("twin") == {"E101"}
            await nodes.nodes["south"].stop()
            await nodes.restart("south")
            assert [await mined(name) for name in ("twin", "baskets")] == [{"E101"}] * 2

    asyncio.run(test())


def test_a_cancel_of_a_job_that_never_came_makes_no_noise(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            await nodes.clients["north"].cancel(os.urandom(32), "another party refused")
            assert "refused" not in nodes.logs["north"].getvalue()

    asyncio.run(test())


# -- the commands -----------------------------------------------------------------------------------------------------
def test_a_job_that_is_cancelled_from_several_sides_at_once_ends_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            client = nodes.clients["north"]
            job_id = await client.propose(weekly())
            await asyncio.gather(*(client.stub.Cancel(control.CancelRequest(job_id=job_id)) for _ in range(5)))
            ended = [entry for entry in audited(tmp_path, "north") if entry["event"] == "ended"]
            assert len(ended) == 1

    asyncio.run(test())


def test_show_tells_a_person_all_there_is_to_decide_on(
    tmp_path: Path, manual: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "north.toml")
    ids = dict[str, bytes]()

    async def test() -> None:
        async with running(tmp_path, policy=MANUAL, prepare=manual(tmp_path, "north")) as nodes:
            nonce, expiry = os.urandom(16), int(time.time()) + 600
            decisions = await nodes.all(lambda client: client.decide(weekly(), nonce, expiry))
            ids["first"] = decisions[0][0]
            assert await command("approve", file, ids["first"].hex(), "--by", "alice") == 0
            event = await until(nodes.clients["north"], ids["first"], control.APPROVED)
            approvals = [event.approval, decisions[1][1], decisions[2][1]]
            await nodes.all(lambda client: client.start(ids["first"], approvals))
            await nodes.ends(ids["first"])
            later = weekly(itemsets={"min_support": "0.15", "exclude": ["x*"]}, name="evil\x1b[2J")
            ids["second"] = await nodes.clients["north"].propose(later)

    asyncio.run(test())
    capsys.readouterr()

    def output(*arguments: str) -> str:
        assert run(["party", *arguments]) == 0
        return capsys.readouterr().out

    inbox = json.loads(output("inbox", file, "--json"))
    assert inbox["schema"] == "comine.inbox/1"
    assert [(job["job_id"], job["state"]) for job in inbox["jobs"]] == [(ids["second"].hex(), "awaiting approval")]
    everything = json.loads(output("inbox", file, "--all", "--json"))["jobs"]
    assert [job["state"] for job in everything] == ["awaiting approval", "succeeded"]
    assert everything[1]["decided_by"] == "alice"

    shown = json.loads(output("show", file, ids["second"].hex()[:6], "--json"))
    assert shown["schema"] == "comine.proposal/1"
    assert shown["job"]["itemsets"]["min_support"] == "0.15"
    assert any("x*" in line.get("detail", "") for line in shown["disclosure"])
    assert any("items that the job excludes" in sentence for sentence in shown["statement"])
    assert shown["policy"]["decision"] == "manual"
    assert {"rule": "min_support", "says": "allows", "allowed": "at least 0.1", "refusal": None} in (
        shown["policy"]["rules"]
    )
    assert shown["changes"]["since"] == ids["first"].hex()
    assert {change["key"] for change in shown["changes"]["changes"]} == {
        "job.name",
        "itemsets.min_support",
        "itemsets.exclude",
    }
    assert [(job["job_id"], job["state"], job["n_rows"]) for job in shown["earlier"]] == [
        (ids["first"].hex(), "succeeded", 60)
    ]
    assert shown["plan"]["schema"] == "comine.plan/1"

    brief = output("show", file, ids["second"].hex())
    changed = ("name: weekly → evil", "min_support: 20 % → 15 %", "exclude: x* added")
    for words in ("awaiting approval", "\nasked        by analyst: ", "\nworst case ", "\ncost ", "a person decides"):
        assert words in brief
    assert all(f"\n  {change}" in brief for change in changed)
    assert "What it discloses" not in brief
    text = output("show", file, ids["second"].hex(), "--detail")
    told = " ".join(text.split())
    assert all(sentence in told for sentence in shown["statement"])
    assert all(line["what"] in told for line in shown["disclosure"] if "label" in line)
    for words in ("awaiting approval", "What it discloses", "a person decides", "succeeded"):
        assert words in text
    assert re.search(r"^  trust\.compute +north, south$", text, re.MULTILINE)
    assert not {"itemsets.engine", "itemsets.cuts", "itemsets.quantiles", "trust.helper"} & set(text.split())
    assert f"comine party approve {file} {ids['second'].hex()[:12]}" in text
    assert "\x1b" not in text
    assert "\x1b" not in output("inbox", file)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["show", "{file}", "123"], 2, "first 4 hexadecimal digits"),
        (["show", "{file}", "12xy"], 2, "first 4 hexadecimal digits"),
        (["approve", "{file}", "1234"], 2, "there is no job 1234"),
        (["approve", "{file}", "1234", "--by", "policy"], 2, "how a node signs by itself"),
        (["deny", "{file}", "1234", "--reason", ""], 2, "the reason must have 1 to 200"),
        (["deny", "{file}", "1234"], 2, "--reason"),
        (["inbox", "absent.toml"], 10, "does not exist"),
    ],
)
def test_a_command_that_cannot_be_done_says_why(
    tmp_path: Path, arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.party.files import write_federation

    write_federation(tmp_path, dict(DATA))
    file = str(tmp_path / "north.toml")
    assert run(["party", *(argument.format(file=file) for argument in arguments)]) == code
    assert words in capsys.readouterr().err


def test_on_a_terminal_a_person_is_asked_once_more(
    tmp_path: Path, manual: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = list[bytes]()

    async def test() -> None:
        async with running(tmp_path, prepare=manual(tmp_path, "north")) as nodes:
            ids.append(await nodes.clients["north"].propose(weekly()))

    asyncio.run(test())
    monkeypatch.setattr(party.inbox_cli, "is_terminal", lambda: True)
    asked, answers = list[str](), iter([False, True])
    monkeypatch.setattr("typer.confirm", lambda text, **_: (asked.append(text), next(answers))[1])
    file, job = str(tmp_path / "north.toml"), ids[0].hex()
    assert run(["party", "approve", file, job]) == 50
    told = capsys.readouterr().err
    assert "nothing was decided" in told
    assert told.startswith("asked        by analyst: frequent itemsets")
    assert "\nworst case " in told
    assert "\nChanges: none to compare with" in told
    assert run(["party", "approve", file, job, "--json"]) == 0
    decided = json.loads(capsys.readouterr().out)
    assert (decided["schema"], decided["jobs"][0]["state"]) == ("comine.inbox/1", "approved")
    assert asked == [f"approve job {job[:12]} of analyst on baskets?"] * 2
    assert run(["party", "deny", file, job, "--reason", "too late", "--yes"]) == 2
    assert len(asked) == 2


def test_an_altered_record_cannot_be_approved(tmp_path: Path, manual: Any, capsys: pytest.CaptureFixture[str]) -> None:

    ids = list[bytes]()

    async def test() -> None:
        async with running(tmp_path, prepare=manual(tmp_path, "north")) as nodes:
            ids.append(await nodes.clients["north"].propose(weekly()))

    asyncio.run(test())
    with sqlite3.connect(tmp_path / "state" / "north" / "node.db") as database:
        (proposal,) = database.execute("SELECT proposal FROM jobs").fetchone()
        database.execute("UPDATE jobs SET proposal = ?", (proposal.replace(b'"0.2"', b'"0.1"'),))
    database.close()
    assert run(["party", "approve", str(tmp_path / "north.toml"), ids[0].hex()]) in (10, 20)
    assert PartyConfig.load(tmp_path / "north.toml").policy.approve == "manual"
    store = store_of(tmp_path, "north")
    assert (found := store.get(ids[0])) is not None
    assert found.state == control.AWAITING_APPROVAL
    store.close()


@pytest.mark.parametrize("command", [["inbox"], ["show", "ab"], ["approve", "ab"], ["deny", "ab", "--reason", "no"]])
def test_no_command_makes_a_lost_database_of_releases_anew(
    tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    write_federation(tmp_path, DATA)
    state = tmp_path / "state" / "north"
    store = Store.open(state / "node.db")
    store.add_companions(["releases.db"])
    store.close()
    name, *more = command
    assert run(["party", name, str(tmp_path / "north.toml"), *more]) == 10
    assert "releases.db of north is gone or empty" in capsys.readouterr().err
    assert not (state / "releases.db").exists()
