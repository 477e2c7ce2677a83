from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from crypto.primitives import blocks, embedding
from crypto.primitives.discrete_laplace import TruncatedDiscreteLaplace
from crypto.primitives.embedding import extract
from crypto.primitives.randomness import Randomness
from crypto.protocols import fake_stock
from crypto.protocols.fake_stock import FakeStock
from crypto.protocols.union_lists import ListSizes, common_fakes, padded, room_for_common_fakes
from tests.protocols.set_union_world import NAMES, in_union, message_of, points_of, run_union, sets_of


def filled(number: int, width: int = 1) -> FakeStock:
    stock = FakeStock()
    stock.take(number, width)
    while not stock.full:
        stock.make()
    return stock


def contents(points: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return extract(points.reshape(-1, 32)).reshape(*points.shape[:2], -1)


@pytest.mark.parametrize("width", [1, 3])
def test_a_stock_has_as_many_fakes_as_were_asked_for_last_time(width: int) -> None:
    stock = FakeStock()
    assert stock.full
    assert stock.take(300, width).shape == (0, width, 32)
    assert not stock.full
    while not stock.full:
        stock.make()
    taken = stock.take(1000, width)
    assert taken.shape == (300, width, 32)
    assert blocks.decode(contents(taken)) == [None] * 300
    assert not len(stock.take(1, width))


def test_no_fake_is_taken_twice_whoever_takes_at_once() -> None:
    stock = filled(2000)
    with ThreadPoolExecutor(8) as pool:
        made = [pool.submit(stock.make) for _ in range(20)]
        taken = list(pool.map(lambda _: stock.take(37, 1), range(200)))
    assert all(call.result() is None for call in made)
    rows = [row.tobytes() for points in taken for row in points]
    assert len(rows) >= 2000
    assert len(set(rows)) == len(rows)


def test_a_stock_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_stock, "MOST_BLOCKS", 100)
    assert len(filled(10**9, 3).take(10**9, 3)) == 33
    wide = FakeStock()
    assert wide.take(5, fake_stock.WIDEST + 1).shape == (0, fake_stock.WIDEST + 1, 32)
    assert wide.full


def test_nothing_is_remembered_of_what_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[bytes, bytes] = {}
    monkeypatch.setattr(embedding, "_known", known)
    filled(50)
    assert not known


def test_a_list_takes_its_private_fakes_from_the_stock_as_far_as_it_goes() -> None:
    fakes = common_fakes(1.0)
    sizes = ListSizes(2, {"a": 40, "b": 40}, room_for_common_fakes(2, fakes))
    shared, private = Randomness.from_seed(1), Randomness.from_seed(2)
    own = padded([b"x", b"y"], sizes, "a", fakes, [shared], private, filled(10, 2))
    assert own.ready.shape == (10, 2, 32)
    assert len(own.tuples) + len(own.ready) == sizes.length("a")
    assert blocks.decode(contents(own.ready)) == [None] * 10
    assert sorted(each for each in blocks.decode(own.tuples) if each is not None) == [b"x", b"y"]
    common = fakes.sample(Randomness.from_seed(1))
    plenty = padded([b"x", b"y"], sizes, "a", fakes, [Randomness.from_seed(1)], private, filled(1000, 2))
    assert len(plenty.tuples) == 2 + common  # the common fakes are never from a stock


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.sets(st.text(max_size=20), max_size=12), min_size=2, max_size=4),
    st.lists(st.integers(0, 80), min_size=4, max_size=4),
    st.sampled_from(["lists", "merged"]),
)
def test_a_union_is_the_same_with_stocks_of_any_size(sets: list[set[str]], sizes: list[int], fill: str) -> None:
    parties = sets_of(*sets)
    stocks = {name: filled(size, 2) for name, size in zip(NAMES, sizes, strict=False) if size}
    with_stocks = run_union(parties, merger="south", bound=30, fill=fill, stocks=stocks)
    without = run_union(parties, merger="south", bound=30, fill=fill)
    assert with_stocks.unions == without.unions
    assert [len(union) for union in with_stocks.unions.values()] == [len(set().union(*parties.values()))] * len(sets)
    for name, costs in without.costs.items():
        assert with_stocks.costs[name].rounds == costs.rounds


def test_an_empty_set_whose_list_comes_whole_from_the_stock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TruncatedDiscreteLaplace, "sample", lambda _self, _stream: 0)
    stocks = {name: filled(60) for name in NAMES[:3]}
    assert run_union(sets_of(set(), {"a"}, set()), merger="north", bound=3, stocks=stocks).unions["north"] == [b"a"]


def test_the_wire_carries_as_much_with_a_stock_as_without_and_no_point_of_it() -> None:
    sets = sets_of({"a", "b"}, {"b"}, {"c"})
    stocks = {name: filled(60) for name in sets}
    kept = {name: {row.tobytes() for row in stock._ready[1].reshape(-1, 32)} for name, stock in stocks.items()}
    with_stocks = run_union(sets, merger="north", bound=20, stocks=stocks)
    without = run_union(sets, merger="north", bound=20)

    def shape(run: object) -> list[tuple[str, str, str, int]]:
        frames = [frame for frame in run.frames if in_union(frame)]  # type: ignore[attr-defined]
        sizes = [len(getattr(message_of(frame), "data", b"")) for frame in frames]
        return sorted((f.lane, f.sender, f.receiver, size) for f, size in zip(frames, sizes, strict=True))

    assert shape(with_stocks) == shape(without)
    seen = set(points_of([frame for frame in with_stocks.frames if in_union(frame)]))
    assert not seen & set().union(*kept.values())
    taken = [name for name in sets if len(stocks[name]._ready[1]) < 60]
    assert taken == list(sets)
