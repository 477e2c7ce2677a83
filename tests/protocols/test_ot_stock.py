from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crypto.primitives.sharing import reconstruct
from crypto.primitives.xor_sharing import reconstruct_bits
from crypto.protocols import ot_stock
from crypto.protocols.comparison import at_least
from crypto.protocols.extension_seeds import FIELD_BITS, ReceiverSeeds, SenderSeeds, ratchet
from crypto.protocols.multiplication import multiply
from crypto.protocols.ot_stock import (
    MAX_AGE_S,
    MAX_BIDS,
    MAX_SKIPPED,
    Role,
    Stock,
    abandon,
    lease_receiving,
    lease_sending,
)
from crypto.protocols.two_party import TwoParty
from link.errors import InternalError, MalformedMessage, ProtocolViolation, UnexpectedMessage
from link.session import Session
from protos.v1.link_pb2 import Frame
from protos.v1.ot_stock_pb2 import LeaseBid
from protos.v1.shares_pb2 import BatchesTaken
from tests.examples import examples, slowly
from tests.protocols.stock_world import ENDS, RECEIVER, SENDER, Crash, Leased, MemoryStock, World
from tests.protocols.two_party_world import HOLDERS, A, B, shares_of
from tests.world import run_parties

FRESH = "ChoicePoints"  # what only base transfers send


def kinds(frames: list[Frame]) -> set[str]:
    return {frame.type.rpartition(".")[2] for frame in frames}


def assert_once(world: World, *leased: Leased) -> None:
    """No end has ever spent a number twice, and no two leases have streams or, under one Δ, a domain in common."""
    for store in world.stores.values():
        assert len(set(store.spent)) == len(store.spent)
    assert len({one.rows for one in leased}) == len(leased)
    assert len({(one.delta, one.domain) for one in leased}) == len(leased)
    assert len({(one.delta, one.number) for one in leased}) == len(leased)


# -- one session after another -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("k", slowly(FIELD_BITS, now=[0, 1, 2, 3]))
def test_sessions_lease_one_number_after_the_other_from_one_stock(k: int) -> None:
    world = World(field_bits=k)
    frames: list[list[Frame]] = [[] for _ in range(4)]
    leased = [world.run(frames=frames[i]) for i in range(4)]
    assert [one.number for one in leased] == [0, 1, 2, 3]
    assert len({one.delta for one in leased}) == 1
    assert_once(world, *leased)
    assert [FRESH in kinds(each) for each in frames] == [True, False, False, False]
    assert world.agreed
    assert not any(store.dropped for store in world.stores.values())


def test_a_lease_takes_two_messages_that_hold_nothing_but_the_stock_and_numbers() -> None:
    world = World()
    world.run()
    assert world.sender is not None
    world.run()
    frames: list[Frame] = []
    world.run(frames=frames)
    bids = [frame for frame in frames if frame.lane.startswith("/seeds")]
    assert kinds(bids) == {"LeaseBid"}
    assert [frame.sender for frame in bids] == [RECEIVER, SENDER]
    wanted = [LeaseBid(stock=world.sender.id, number=2, heard=heard) for heard in (2, 3)]
    assert [LeaseBid.FromString(frame.body) for frame in bids] == wanted


def test_a_lease_leaves_nothing_behind_from_which_its_streams_follow() -> None:
    """The kept seeds are the other children of what was kept before, and none of those that were leased."""
    seeds = np.frombuffer(b"".join(bytes([i]) * 16 for i in range(256)), np.uint8).reshape(64, 4, 16)
    kept, leased = ratchet(seeds)
    each = {one.tobytes() for level in (seeds, kept, leased) for one in level.reshape(-1, 16)}
    assert len(each) == 3 * 256
    world = World()
    world.run()
    seen: set[bytes] = set()
    for _ in range(3):
        assert world.receiver is not None
        now = {bytes(one) for one in np.frombuffer(world.receiver.seeds, np.uint8).reshape(-1, 16)}
        assert not now & seen
        seen |= now
        world.run()


@given(lease=st.integers(0, 2**16 - 1), other=st.integers(0, 2**16 - 1), label=st.binary(), second=st.binary())
@settings(max_examples=30, deadline=None)
def test_leases_never_share_a_domain_whatever_their_labels(lease: int, other: int, label: bytes, second: bytes) -> None:
    seeds = np.zeros((16, 256, 16), np.uint8)
    one, two = (
        ReceiverSeeds(seeds[:1].repeat(128, 0)[:, :2], lease=number).fork(name)
        for number, name in ((lease, label), (other, second))
    )
    assert one.domain < 2**64
    assert (one.domain == two.domain) == ((lease, label) == (other, second))


def test_a_label_serves_once() -> None:
    seeds = np.zeros((128, 2, 16), np.uint8)
    for half in (ReceiverSeeds(seeds), SenderSeeds(seeds, bytes(16))):
        forked = half.fork(b"label")
        half.fork(b"another")
        for family in (half, forked):
            with pytest.raises(InternalError, match="under one label"):
                family.fork(b"label")


# -- side by side ------------------------------------------------------------------------------------------------------
def test_sessions_side_by_side_never_lease_the_same_number() -> None:
    world = World()
    first = world.run()
    beside = world.run_beside(6)
    assert_once(world, first, *beside)
    assert {one.delta for one in beside} == {first.delta}
    assert world.agreed
    assert world.run().delta == first.delta


def test_first_sessions_side_by_side_leave_one_stock() -> None:
    world = World()
    beside = world.run_beside(3)
    assert len({one.delta for one in beside}) == 3
    assert world.agreed
    assert world.run().delta in {one.delta for one in beside}
    assert_once(world, *beside)


class Busy(MemoryStock):
    """As if other sessions were always faster."""

    def __init__(self, other: MemoryStock, ahead: int) -> None:
        super().__init__()
        self.kept = {where: replace(stock, next=stock.next + ahead) for where, stock in other.kept.items()}

    def get(self, peer: str, role: Role) -> Stock | None:
        if (stock := super().get(peer, role)) is not None:
            self.kept[peer, role] = stock = replace(stock, next=stock.next + 9)
        return stock


def test_sessions_that_are_overtaken_again_and_again_renew_in_the_end() -> None:
    world = World()
    first = world.run()
    for end in ENDS:
        world.stores[end] = Busy(world.stores[end], ahead=4 if end == SENDER else 0)
    frames: list[Frame] = []
    renewed = world.run(frames=frames)
    assert renewed.delta != first.delta
    assert "contended" in {why for store in world.stores.values() for why in store.dropped}
    bids = [LeaseBid.FromString(frame.body) for frame in frames if frame.type.endswith("LeaseBid")]
    numbers = [bid.number for bid in bids if bid.stock]
    assert numbers == sorted(set(numbers))
    assert MAX_BIDS <= len(numbers) <= 2 * MAX_BIDS
    assert_once(world, first, renewed)


# -- crashes -----------------------------------------------------------------------------------------------------------
crashes = st.one_of(
    st.none(),
    st.tuples(st.sampled_from(ENDS), st.integers(0, 2), st.booleans()),
    st.tuples(st.sampled_from(ENDS), st.just("before use"), st.just(True)),
)


@given(plan=st.lists(crashes, min_size=1, max_size=5))
@examples(10, 25, suppress_health_check=[HealthCheck.too_slow])
def test_whoever_crashes_wherever_no_number_is_leased_twice(plan: list[Any]) -> None:
    """After it the ends agree on the next number or renew the stock, and the session after that needs no renewal."""
    world, leased = World(), []
    for crash in plan:
        end, where, after = crash or ("", 0, False)
        if isinstance(where, int) and end:
            world.stores[end].dies = (where, after)
        with suppress(Crash):
            leased.append(world.run(before_use=end if where == "before use" else ""))
        for store in world.stores.values():
            store.dies = None
    leased += [world.run(), world.run()]
    assert leased[-1].delta == leased[-2].delta
    assert leased[-1].number == leased[-2].number + 1
    assert_once(world, *leased)
    assert world.agreed
    assert {why for store in world.stores.values() for why in store.dropped} <= {"unknown to the peer"}


@pytest.mark.parametrize("end", ENDS)
def test_a_crash_between_lease_and_use_burns_the_lease(end: str) -> None:
    world = World()
    first = world.run()
    with pytest.raises(Crash):
        world.run(before_use=end)
    after = world.run()
    assert (after.delta, after.number) == (first.delta, 2)


def test_numbers_that_only_one_end_has_spent_are_passed_over() -> None:
    world = World()
    first = world.run()
    for end, calls in ((RECEIVER, 3), (SENDER, 2)):
        for _ in range(calls):
            world.stores[end].dies = (0, True)
            with pytest.raises(Crash):
                world.run()
    after = world.run()
    assert after.delta == first.delta
    assert_once(world, first, after)


# -- copies that were restored -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("lost", [1, 2, 3, 7])
def test_a_copy_that_was_restored_at_one_end_is_refused_and_the_stock_made_anew(end: str, lost: int) -> None:
    world = World()
    leased = [world.run()]
    copy = world.stores[end].copy()
    leased += [world.run() for _ in range(lost)]
    world.stores[end].kept = copy
    renewed = world.run()
    assert renewed.delta not in {one.delta for one in leased}
    assert renewed.number == 0
    assert len({one.rows for one in (*leased, renewed)}) == len(leased) + 1
    reasons = {why for store in world.stores.values() for why in store.dropped}
    assert any(why.startswith("rolled back") for why in reasons)
    assert world.agreed
    assert world.run().delta == renewed.delta


def test_sessions_side_by_side_are_not_taken_for_a_restored_copy() -> None:
    world = World()
    for _ in range(4):
        world.run_beside(4)
    assert {why for store in world.stores.values() for why in store.dropped} <= {"unknown to the peer"}


def test_copies_that_were_restored_at_both_ends_do_not_repeat_streams() -> None:
    """Nobody can tell; but streams are named by their session, too."""
    world = World()
    world.run()
    copies = {end: world.stores[end].copy() for end in ENDS}
    one = world.run()
    for end in ENDS:
        world.stores[end].kept = copies[end]
    two = world.run()
    assert (one.delta, one.number) == (two.delta, two.number)
    assert one.rows != two.rows
    assert one.domain != two.domain


# -- renewal -----------------------------------------------------------------------------------------------------------
def renewed(world: World, before: Leased, why: str, ends: tuple[str, ...] = ENDS) -> None:
    after = world.run()
    assert after.delta != before.delta
    assert after.number == 0
    assert any(why in world.stores[end].dropped for end in ends)
    assert world.agreed


def test_a_stock_of_another_k_is_not_used() -> None:
    world = World()
    first = world.run()
    world.field_bits = 4
    renewed(world, first, "made under other terms")


@pytest.mark.parametrize("name", ["tests.world.SUITE", "crypto.protocols.ot_stock.WIRE_VERSION"])
def test_a_stock_of_another_suite_or_version_is_not_used(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    first = world.run()
    monkeypatch.setattr(name, "another")
    renewed(world, first, "made under other terms")


def test_a_stock_of_other_parties_is_not_used() -> None:
    """The store of one node in the place of another's."""
    world = World()
    first = world.run()
    stock = world.sender
    assert stock is not None
    world.stores[SENDER].kept[RECEIVER, "sender"] = replace(stock, terms=bytes(32))
    renewed(world, first, "made under other terms")


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("age", [MAX_AGE_S, -60.0])
def test_a_stock_that_is_too_old_or_of_the_future_is_renewed(end: str, age: float) -> None:
    world = World()
    first = world.run()
    ((where, stock),) = world.stores[end].kept.items()
    world.stores[end].kept[where] = replace(stock, made=stock.made - age)
    renewed(world, first, "too old")


def test_a_stock_ends_with_its_last_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ot_stock, "LEASES", 3)
    world = World()
    leased = [world.run() for _ in range(3)]
    assert [one.number for one in leased] == [0, 1, 2]
    renewed(world, leased[0], "used up")


@pytest.mark.parametrize("end", ENDS)
def test_an_end_without_its_stock_makes_the_other_renew(end: str) -> None:
    world = World()
    first = world.run()
    world.stores[end].kept.clear()
    renewed(world, first, "unknown to the peer", tuple({*ENDS} - {end}))


def test_a_peer_that_is_far_ahead_is_not_followed() -> None:
    world = World()
    first = world.run()
    ((where, stock),) = world.stores[RECEIVER].kept.items()
    world.stores[RECEIVER].kept[where] = replace(stock, next=stock.next + MAX_SKIPPED + 1)
    renewed(world, first, "too far behind")


def test_stocks_with_a_peer_that_broke_the_rules_are_dropped() -> None:
    world = World()
    world.run()
    for end, peer in ((SENDER, RECEIVER), (RECEIVER, SENDER)):
        abandon(world.stores[end], peer)
        assert not world.stores[end].kept
        assert world.stores[end].dropped == ["the peer broke the protocol"]


def test_a_stock_does_not_show_its_secrets() -> None:
    assert repr(Stock(bytes(16), bytes(32), 0.0, 7, 0, b"secret", b"secret")) == "<Stock, next lease 7>"


# -- malice ------------------------------------------------------------------------------------------------------------
GOOD = bytes(range(16))


@pytest.mark.parametrize("cheat", ENDS)
@pytest.mark.parametrize(
    "message",
    [
        LeaseBid(stock=bytes(15), number=1),
        LeaseBid(stock=bytes(17), number=1),
        LeaseBid(number=1),
        LeaseBid(heard=1),
        LeaseBid(stock=GOOD, number=2**16),
        LeaseBid(stock=GOOD, number=1, heard=2**16 + 1),
        BatchesTaken(),
    ],
)
def test_wrong_bids_are_refused_and_named(cheat: str, message: Any) -> None:
    world = World()
    world.run()
    with pytest.raises(ProtocolViolation) as caught:
        against(world, cheat, [message])
    assert caught.value.party == cheat
    assert isinstance(caught.value, UnexpectedMessage if isinstance(message, BatchesTaken) else MalformedMessage)


def test_a_bid_below_ones_own_or_for_another_stock_is_refused_and_named() -> None:
    for number, stock in ((0, None), (2, GOOD)):
        world = World()
        world.run()
        assert world.sender is not None
        with pytest.raises(MalformedMessage) as caught:
            against(world, SENDER, [LeaseBid(stock=stock or world.sender.id, number=number, heard=1)])
        assert caught.value.party == SENDER


def against(world: World, cheat: str, bids: list[Any]) -> None:
    """An honest end meets one that sends these bids."""

    async def honest(session: Session) -> None:
        role = lease_sending if session.me == SENDER else lease_receiving
        await role(session.lane("seeds"), cheat, world.stores[session.me])

    async def cheating(session: Session) -> None:
        for bid in bids:
            await session.lane("seeds").lane("bids").send(session.others[0], bid)
        await asyncio.Event().wait()

    run_parties(ENDS, {end: cheating if end == cheat else honest for end in ENDS}, seed=99)


# -- two parties -------------------------------------------------------------------------------------------------------
def test_computations_of_two_parties_over_several_sessions() -> None:
    stores = {holder: MemoryStock() for holder in HOLDERS}
    x, y = shares_of([3, 2**63, 17]), shares_of([5, 2, 11], 1)
    for seed in range(3):
        frames: list[Frame] = []

        async def role(session: Session) -> Any:
            parties = TwoParty(session.lane("pair"), HOLDERS, stock=stores[session.me])
            early = asyncio.create_task(parties.prepare())
            product = await multiply(session.lane("1"), parties, x[session.me], y[session.me])
            bits = await at_least(session.lane("2"), parties, y[session.me], 5, 64)
            await early
            await parties.prepare()
            return product, bits

        out = run_parties(HOLDERS, role, seed=seed, observe=frames.append)
        assert reconstruct([out[A][0], out[B][0]]).tolist() == [15, 0, 187]
        assert reconstruct_bits([out[A][1], out[B][1]]).tolist() == [1, 0, 1]
        assert (FRESH in kinds(frames)) == (seed == 0)
        assert sum(frame.type.endswith("LeaseBid") for frame in frames) == (2 if seed == 0 else 4)
    assert {role for _, role in stores[A].kept} == {"sender", "receiver"}
