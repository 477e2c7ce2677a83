"""Which connections are too many."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from link.identity import Role
from party.connections import MOST_OF_ADDRESS, _Connection, _Holder, _network, _plain, surplus

KINDS: list[Role | None] = [None, "client", "coordinator", "party"]


@given(
    st.dictionaries(st.tuples(st.sampled_from(KINDS), st.sampled_from("abcdef")), st.integers(1, 300), max_size=12),
    st.integers(16, 2000),
    st.randoms(use_true_random=False),
)
def test_each_kind_keeps_to_its_quarter_and_who_holds_least_loses_nothing(
    numbers: dict[tuple[Role | None, str], int], most: int, random: st.DataObject
) -> None:
    holders = [_Holder(*who) for who, number in numbers.items() for _ in range(number)]
    random.shuffle(holders)  # type: ignore[attr-defined]
    held = [(_Connection(i, i, ("10.0.0.1", i)), holder) for i, holder in enumerate(holders)]
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
    assert _plain("::ffff:10.0.0.1") == _plain("10.0.0.1") == _network("10.0.0.1") == "10.0.0.1"
    assert _network(_plain("2001:db8::1")) == _network(_plain("2001:db8::ffff:2")) == "2001:db8::"
    assert _network("2001:db8:0:1::1") != _network("2001:db8::1")
    assert _plain("fe80::1%eth0") == "fe80::1"
