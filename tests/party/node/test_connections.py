"""Which connections are too many."""

from __future__ import annotations

import asyncio
import os
import resource
import select
import socket
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from link.pki.identity import Role
from party.node import connections as module
from party.node.connections import (
    MOST,
    MOST_OF_ADDRESS,
    Connection,
    Connections,
    Holder,
    defer_accept,
    most_connections,
    network,
    other_end,
    own_sockets,
    plain,
    shut,
    surplus,
)
from tests.examples import examples

KINDS: list[Role | None] = [None, "client", "coordinator", "party"]


@examples(25, 100)
@given(
    st.dictionaries(st.tuples(st.sampled_from(KINDS), st.sampled_from("abcdef")), st.integers(1, 300), max_size=12),
    st.integers(16, 2000),
    st.randoms(use_true_random=False),
)
def test_each_kind_keeps_to_its_quarter_and_who_holds_least_loses_nothing(
    numbers: dict[tuple[Role | None, str], int], most: int, random: st.DataObject
) -> None:
    holders = [Holder(*who) for who, number in numbers.items() for _ in range(number)]
    random.shuffle(holders)  # type: ignore[attr-defined]
    held = [(Connection(i, i, ("10.0.0.1", i)), holder) for i, holder in enumerate(holders)]
    closed = surplus(held, most)
    kept = Counter(holders)
    for holder, connections in closed.items():
        own = [connection for connection, who in held if who == holder]
        assert connections == own[: len(connections)]  # the oldest
        kept[holder] -= len(connections)
    for kind in KINDS:
        of_kind = {holder: number for holder, number in kept.items() if holder.kind == kind}
        assert sum(of_kind.values()) <= most // 4
        lost = [kept[holder] for holder in of_kind if holder in closed]
        if kind is None:
            assert all(number <= MOST_OF_ADDRESS for number in of_kind.values())
        if lost:  # nobody who lost any has less than who lost none
            assert min(lost) >= max([number for holder, number in of_kind.items() if holder not in closed], default=0)
        if sum(numbers[holder] for holder in of_kind) <= most // 4 and kind is not None:
            assert not lost


def test_one_host_is_one_stranger() -> None:
    assert plain("::ffff:10.0.0.1") == plain("10.0.0.1") == network("10.0.0.1") == "10.0.0.1"
    assert network(plain("2001:db8::1")) == network(plain("2001:db8::ffff:2")) == "2001:db8::"
    assert network("2001:db8:0:1::1") != network("2001:db8::1")
    assert plain("fe80::1%eth0") == "fe80::1"


@pytest.mark.parametrize(
    ("limit", "most"),
    [(64, 32), (1024, 768), (1 << 20, MOST), (1 << 30, MOST), (resource.RLIM_INFINITY, MOST)],
)
def test_connections_are_bounded_however_many_descriptors_there_are(
    monkeypatch: pytest.MonkeyPatch, limit: int, most: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    assert most_connections() == most


@pytest.mark.parametrize("trouble", [OSError(24, "Too many open files"), RuntimeError("a fault")])
def test_what_hinders_a_look_is_told_once_and_ends_no_looking(
    monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    told: list[dict[str, object]] = []
    looks = 0

    async def test() -> None:
        log = SimpleNamespace(error=lambda event, **fields: told.append({"event": event} | fields))
        guard, done = Connections(cast(Any, log), 100), asyncio.Event()
        loop = asyncio.get_running_loop()

        def look(_: int) -> Counter[tuple[Holder, str]]:
            nonlocal looks
            looks += 1
            if looks in (1, 2, 4):
                raise trouble
            if looks == 5:
                loop.call_soon_threadsafe(done.set)
            return Counter()

        monkeypatch.setattr(guard, "close_surplus", look)
        guard.start(1)
        await asyncio.wait_for(done.wait(), 20)
        await guard.stop()

    monkeypatch.setattr(module, "LOOK_S", 0.001)
    monkeypatch.setattr("sys.platform", "linux")
    asyncio.run(test())
    assert told == [{"event": "upkeep failed", "error": trouble}] * 2


def test_who_connects_and_says_nothing_takes_no_descriptor() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_server(("127.0.0.1", 0)) as other,
        socket.create_connection(other.getsockname()) as apart,
    ):
        port = server.getsockname()[1]
        for descriptor in (server.fileno(), other.fileno(), apart.fileno()):
            defer_accept(descriptor, port, 600)
        assert other.getsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT) == 0
        server.setblocking(False)
        with socket.create_connection(server.getsockname()), socket.create_connection(server.getsockname()) as speaks:
            with pytest.raises(BlockingIOError):
                server.accept()
            speaks.sendall(b"x")
            assert select.select([server], [], [], 20)[0]
            with server.accept()[0] as accepted:
                assert accepted.getpeername() == speaks.getsockname()
            with pytest.raises(BlockingIOError):
                server.accept()
            defer_accept(server.fileno(), port, 0)
            assert server.getsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT) == 0


def test_only_where_strangers_were_too_many_are_connections_kept_from_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    now, told = 0.0, []
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now, thread_time=time.thread_time))
        guard = Connections(cast(Any, None), 100)
        for at, crowded in ((0.0, False), (1.0, True), (2.0, False), (600.0, False), (600.5, True), (1201.0, False)):
            now = at
            guard.let_wait(server.getsockname()[1], crowded=crowded)
            told.append(server.getsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT) > 0)
    assert told == [False, True, True, True, True, False]


def test_connections_are_found_and_ended_where_no_descriptor_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_free(*_: object) -> Any:
        raise OSError(24, "Too many open files")

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as far, server.accept()[0] as near:
            with monkeypatch.context() as patch:
                patch.setattr(os, "listdir", none_free)
                patch.setattr(os, "dup", none_free)
                found = own_sockets()
                inode = os.fstat(near.fileno()).st_ino
                assert found[inode] == near.fileno()
                assert other_end(found[inode], inode, port) == far.getsockname()
                shut(Connection(inode, found[inode], far.getsockname()))
            assert far.recv(1) == b""
            os.fstat(near.fileno())  # which is its owner's to close


def test_members_that_come_and_go_unseen_are_forgotten_and_those_who_stay_are_not() -> None:
    async def test() -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            guard = Connections(cast(Any, SimpleNamespace(error=None)), 100)
            guard.met("ipv4:10.0.0.1:7", "client", "early")  # nobody looks, so nobody would forget it
            assert not guard.members
            guard.start(port)  # nothing is awaited below, so it does not look by itself
            with socket.create_connection(("127.0.0.1", port)) as far, server.accept()[0]:
                guard.met(f"ipv4:127.0.0.1:{far.getsockname()[1]}", "party", "south")
                for number in range(1000):
                    guard.met(f"ipv4:10.0.0.1:{number}", "client", "quick")
                for _ in range(3):
                    guard.open_now(port)
                assert guard.members == {far.getsockname(): Holder("party", "south")}
            guard.open_now(port)
            assert not guard.members
            await guard.stop()

    asyncio.run(test())


def test_a_descriptor_that_is_anothers_by_now_is_left_alone(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as far, server.accept()[0] as near:
            inode = os.fstat(near.fileno()).st_ino
            end = other_end(near.fileno(), inode, port)
            assert end == far.getsockname()
            assert other_end(server.fileno(), os.fstat(server.fileno()).st_ino, port) is None
            with pytest.raises(OSError, match="another's"):
                other_end(near.fileno(), inode + 1, port)
            with (tmp_path / "file").open("w") as file:
                free = os.dup(file.fileno())
                os.close(free)
                with pytest.raises(OSError):  # noqa: PT011 - in the words of the system
                    other_end(file.fileno(), inode, port)
                shut(Connection(os.fstat(file.fileno()).st_ino, file.fileno(), ("127.0.0.1", 1)))
                shut(Connection(inode, file.fileno(), ("127.0.0.1", 1)))
                os.fstat(file.fileno())
                after = os.dup(file.fileno())
                os.close(after)
                assert after == free  # no copy is left
            shut(Connection(inode + 1, near.fileno(), ("127.0.0.1", 1)))
            far.sendall(b"x")
            assert near.recv(1) == b"x"
            shut(Connection(inode, near.fileno(), ("127.0.0.1", 1)))
            assert far.recv(1) == b""
