from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives import blocks, embedding
from crypto.primitives.commutative import CommutativeKey
from crypto.primitives.discrete_laplace import TruncatedDiscreteLaplace
from crypto.primitives.randomness import Randomness
from crypto.protocols import list_stock
from crypto.protocols.list_stock import ListStock, PreparedList
from crypto.protocols.union_lists import ListSizes, common_fakes, padded, room_for_common_fakes
from tests.examples import examples
from tests.protocols.set_union_world import NAMES, in_union, message_of, options_with, points_of, run_union, sets_of

ITEMS = [b"bread", b"butter", b"milk", b"rolls"]


def filled(elements: Collection[bytes], capacity: int, width: int = 1) -> ListStock:
    """A stock after an earlier union with this set."""
    stock = ListStock()
    assert stock.take(sorted(elements), capacity, width) is None
    fill(stock)
    return stock


def fill(stock: ListStock) -> None:
    while stock.make():
        pass


def content(prepared: PreparedList) -> list[bytes | None]:
    """What is in a list, in its order."""
    points = prepared.points
    return blocks.decode(prepared.key.decrypt_blocks(points.reshape(-1, 32)).reshape(*points.shape[:2], -1))


@pytest.mark.parametrize("width", [1, 3])
def test_a_set_that_comes_again_is_there_with_fakes_up_to_the_capacity(width: int) -> None:
    taken = filled(ITEMS, 300, width).take(ITEMS, 300, width)
    assert taken is not None
    assert taken.points.shape == (300, width, 32)
    assert content(taken) == [*ITEMS, *[None] * 296]


def test_any_part_of_an_earlier_set_serves() -> None:
    for part in (ITEMS[:3], ITEMS[2:], []):
        for capacity in (4, 8):
            taken = filled(ITEMS, 8).take(part, capacity, 1)
            assert taken is not None
            assert content(taken) == [*part, *[None] * (capacity - len(part))]


def test_sets_in_turns_are_all_kept() -> None:
    stock = filled(ITEMS, 200)
    others = [b"%d" % number for number in range(40)]
    assert stock.take(others, 64, 1) is None
    for _ in range(3):
        fill(stock)
        assert stock.take(ITEMS, 200, 1) is not None
        fill(stock)
        assert stock.take(others, 64, 1) is not None


def test_the_latest_set_is_made_first_and_then_the_fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_stock, "_BATCH_BLOCKS", 4)
    stock = ListStock()
    assert stock.take([b"%d" % number for number in range(1000)], 1000, 1) is None
    assert stock.take(ITEMS, 8, 1) is None
    for _ in range(3):
        stock.make()
    (shelf,) = stock._shelves.values()
    assert set(shelf.points) == set(ITEMS)
    assert len(shelf.fakes) == 8


def test_a_set_with_a_new_element_has_to_wait() -> None:
    stock = filled(ITEMS[:3], 8)
    assert stock.take(ITEMS, 8, 1) is None
    fill(stock)
    assert stock.take(ITEMS, 8, 1) is not None


def test_a_list_is_taken_once_and_the_next_one_has_nothing_in_common_with_it() -> None:
    stock = filled(ITEMS, 20)
    first = stock.take(ITEMS, 20, 1)
    assert stock.take(ITEMS, 20, 1) is None
    fill(stock)
    second = stock.take(ITEMS, 20, 1)
    assert first is not None
    assert second is not None
    assert not {row.tobytes() for row in first.points[:, 0]} & {row.tobytes() for row in second.points[:, 0]}
    probe = first.points[:1, 0]
    assert (first.key.encrypt(probe) != second.key.encrypt(probe)).any()


def test_what_a_union_leaves_is_forgotten_with_its_key() -> None:
    stock = filled(ITEMS, 20)
    assert stock.take(ITEMS[:1], 2, 1) is not None
    assert stock.take(ITEMS[1:], 3, 1) is None


def test_widths_have_stocks_of_their_own() -> None:
    stock = filled(ITEMS, 5)
    assert stock.take(ITEMS, 5, 2) is None
    fill(stock)
    narrow, wide = stock.take(ITEMS, 5, 1), stock.take(ITEMS, 5, 2)
    assert narrow is not None
    assert wide is not None
    assert wide.points.shape == (5, 2, 32)
    probe = narrow.points[:1, 0]
    assert (narrow.key.encrypt(probe) != wide.key.encrypt(probe)).any()


def test_no_list_is_taken_twice_whoever_takes_and_makes_at_once() -> None:
    stock = filled(ITEMS, 10)
    with ThreadPoolExecutor(8) as pool:
        made = [pool.submit(stock.make) if step % 2 else pool.submit(stock.take, ITEMS, 10, 1) for step in range(600)]
    lists = [call.result() for call in made if isinstance(call.result(), PreparedList)]
    assert len(lists) > 1
    rows = Counter(row.tobytes() for prepared in lists for row in prepared.points)
    assert max(rows.values()) == 1
    assert all(content(prepared) == [*ITEMS, *[None] * 6] for prepared in lists)


def test_a_stock_stays_small_and_gives_up_the_oldest_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_stock, "MOST_BLOCKS", 30)
    stock = ListStock()
    for start in range(0, 40, 4):
        assert stock.take([b"%d" % number for number in range(start, start + 4)], 6, 3) is None
        fill(stock)
        (shelf,) = stock._shelves.values()
        assert shelf.points.keys() == shelf.elements.keys()
        assert len(shelf.points) + len(shelf.fakes) <= 10
    assert sorted(shelf.points) == [b"%d" % number for number in range(32, 40)]
    assert stock.take([b"%d" % number for number in range(36, 40)], 6, 3) is not None


def test_an_element_that_is_given_up_while_it_is_made_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_stock, "MOST_BLOCKS", 8)
    stock = ListStock()
    assert stock.take(ITEMS, 8, 1) is None
    encrypt = CommutativeKey.encrypt_blocks

    def meanwhile(key: CommutativeKey, given: embedding.Blocks, *, come_again: bool = True) -> np.ndarray:
        monkeypatch.setattr(CommutativeKey, "encrypt_blocks", encrypt)
        assert stock.take([b"%d" % number for number in range(8)], 8, 1) is None
        return encrypt(key, given, come_again=come_again)

    monkeypatch.setattr(CommutativeKey, "encrypt_blocks", meanwhile)
    stock.make()
    (shelf,) = stock._shelves.values()
    assert not shelf.points


def test_nothing_is_made_for_lists_that_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_stock, "MOST_BLOCKS", 30)
    stock = ListStock()
    assert stock.take(ITEMS, 16, 2) is None
    assert stock.take(ITEMS, 5, list_stock.WIDEST + 1) is None
    assert not stock.make()


def test_no_fake_is_remembered_after_it_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[bytes, bytes] = {}
    monkeypatch.setattr(embedding, "_known", known)
    filled(ITEMS, 50)
    assert len(known) == len(ITEMS)


def test_with_a_prepared_list_as_much_is_left_to_do_whatever_the_set() -> None:
    fakes = common_fakes(1.0)
    sizes = ListSizes(2, 2, 40, room_for_common_fakes(2, fakes))
    for elements in ([], [b"x", b"y"], [b"%d" % number for number in range(40)]):
        for seed in range(3):
            stock = filled(elements, 40, 2)
            own = padded(elements, sizes, fakes, [Randomness.from_seed(seed)], Randomness.from_seed(9), stock)
            assert own.encrypted.shape == (40, 2, 32)
            assert own.elements.shape == (0, 2, 30)
            assert own.fakes.shape == (sizes.room, 2, 30)
            common = fakes.sample(stream := Randomness.from_seed(seed))
            assert (own.fakes[:common] == blocks.fake(stream, common, 2)).all()


@examples(5, 12)
@given(
    st.lists(st.sets(st.text(max_size=20), max_size=12), min_size=2, max_size=4),
    st.lists(st.booleans(), min_size=4, max_size=4),
    st.sampled_from(["lists", "merged"]),
)
def test_a_union_is_the_same_whoever_has_a_list_in_stock(sets: list[set[str]], has: list[bool], fill: str) -> None:
    parties = sets_of(*sets)
    width = max(blocks.blocks_needed(len(e)) for own in [{b""}, *parties.values()] for e in own)
    stocks = {
        name: filled(parties[name], 64, width) for name, one in zip(NAMES, has, strict=False) if name in parties and one
    }
    with_stocks = run_union(parties, merger="south", bound=30, fill=fill, stocks=stocks)
    without = run_union(parties, merger="south", bound=30, fill=fill)
    assert with_stocks.unions == without.unions
    assert [len(union) for union in with_stocks.unions.values()] == [len(set().union(*parties.values()))] * len(sets)
    assert all(not shelf.points for stock in stocks.values() for shelf in stock._shelves.values())  # all were taken
    for name, costs in without.costs.items():
        assert with_stocks.costs[name].rounds == costs.rounds


def test_an_empty_set_whose_list_comes_from_the_stock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TruncatedDiscreteLaplace, "sample", lambda _self, _stream: 0)
    stocks = {name: filled([], 64) for name in ("north", "south")}
    sets = sets_of(set(), {"a"}, set())
    assert run_union(sets, merger="north", bound=3, stocks=stocks).unions["north"] == [b"a"]


def test_a_union_that_is_filled_up_leaves_the_stock_alone() -> None:
    sets = {name: {bytes([number]) * 16} for number, name in enumerate(NAMES[:3])}
    stocks = {name: ListStock() for name in sets}
    union = run_union(sets, merger="north", bound=3, fill="union", max_element_bytes=16, stocks=stocks).unions["north"]
    assert len(union) == 3 * 64
    assert not any(stock._shelves for stock in stocks.values())


def test_the_wire_carries_as_much_with_a_stock_as_without_and_nothing_in_two_unions() -> None:
    sets = sets_of({"a", "b"}, {"b"}, {"c"})
    stocks = {name: filled(own, 64) for name, own in sets.items()}
    with_stocks = run_union(sets, merger="north", bound=20, stocks=stocks)
    without = run_union(sets, merger="north", bound=20)
    for stock in stocks.values():
        fill(stock)
    again = run_union(sets, merger="north", bound=20, stocks=stocks, seed=1)

    def shape(run: object) -> list[tuple[str, str, str, int]]:
        frames = [frame for frame in run.frames if in_union(frame)]  # type: ignore[attr-defined]
        sizes = [len(getattr(message_of(frame), "data", b"")) for frame in frames]
        return sorted((f.lane, f.sender, f.receiver, size) for f, size in zip(frames, sizes, strict=True))

    def points(run: object) -> set[bytes]:
        return set(points_of([frame for frame in run.frames if in_union(frame)]))  # type: ignore[attr-defined]

    assert shape(with_stocks) == shape(without) == shape(again)
    assert not points(with_stocks) & points(again)


@pytest.mark.parametrize("size", [0, 1, 20])
def test_a_prepared_list_spares_the_first_layer_of_all_but_the_room(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sets = sets_of({str(number) for number in range(size)}, {"b"}, {"c"})
    stocks = {name: filled(own, 64) for name, own in sets.items()}
    done: list[int] = []
    encrypt = CommutativeKey.encrypt_blocks

    def counted(key: CommutativeKey, given: embedding.Blocks, *, come_again: bool = True) -> np.ndarray:
        done.append(len(given))
        return encrypt(key, given, come_again=come_again)

    monkeypatch.setattr(CommutativeKey, "encrypt_blocks", counted)
    run_union(sets, merger="north", bound=20, stocks=stocks)
    assert sum(done) == 3 * room_for_common_fakes(3, common_fakes(options_with({})["epsilon_dup"]))
