"""Policies that decide at the nodes, and coordinators that try to get around them."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from jobs.consent import approve
from jobs.kinds.packed_itemsets import unpack
from jobs.loading import job_of
from mining.reference.pooled import brute_force
from protos.v1 import control_pb2 as control
from tests.party.nodes import DATA, audited, brief, refused, running, weekly


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
            job_id, approvals = await nodes.agree(brief())
            first, second, third = approvals
            rival = nodes.client(nodes.authority.issue("rival", "coordinator"))
            others = nodes.forged(job_id, brief(), "rival")
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


def test_no_more_jobs_are_started_than_the_policy_allows_even_where_more_were_approved(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, policy="max_jobs = 2") as nodes:
            agreed = [await nodes.agree(brief()) for _ in range(3)]
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
            _, ends = await nodes.run(brief())
            assert {event.state for event in ends.values()} == {control.SUCCEEDED}
            refusal = await refused(nodes.clients["north"].start(decision[0][0], [a for _, a in decision]))
            assert refusal.code == "E300", refusal.sentence
            assert "rule party_sets" in refusal.sentence

    asyncio.run(test())


def test_data_that_changed_by_a_few_rows_are_not_mined_again(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, policy="min_new_rows = 5") as nodes:

            async def mined() -> set[tuple[int, str]]:
                _, ends = await nodes.run(brief())
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


def test_jobs_that_would_tell_of_few_parties_or_rows_together_are_refused(tmp_path: Path) -> None:
    """The second set of parties by every node that has had the first; rows, by their own party."""

    async def test() -> None:
        async with running(tmp_path, policy="min_group = 5") as nodes:

            async def mined() -> set[tuple[int, str]]:
                _, ends = await nodes.run(brief())
                return {(event.state, event.error_code) for event in ends.values()}

            good, bad = {(control.SUCCEEDED, "")}, {(control.FAILED, "E101")}
            file = tmp_path / "south.dat"
            rows = file.read_text()
            assert await mined() == good
            refusal = await refused(nodes.clients["north"].propose(weekly(parties=["north", "south"])))
            assert (refusal.code, "rule min_group" in refusal.sentence) == ("E300", True)
            file.write_text(rows + "item0 item1\n" * 30)
            assert await mined() == good
            file.write_text(rows + "item0 item1\n")
            assert await mined() == bad
            assert "rule min_group" in nodes.logs["south"].getvalue()
            file.write_text(rows)
            assert await mined() == good

    asyncio.run(test())


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
            _, ends = await nodes.run(brief())
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
                _, ends = await nodes.run(brief(dataset=name))
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


def test_a_job_that_is_cancelled_from_several_sides_at_once_ends_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            client = nodes.clients["north"]
            job_id = await client.propose(weekly())
            await asyncio.gather(*(client.stub.Cancel(control.CancelRequest(job_id=job_id)) for _ in range(5)))
            ended = [entry for entry in audited(tmp_path, "north") if entry["event"] == "ended"]
            assert len(ended) == 1

    asyncio.run(test())
