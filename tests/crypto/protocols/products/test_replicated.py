from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives.columns import bits_of
from crypto.primitives.randomness import Randomness
from crypto.primitives.shares import ring_matrix
from crypto.primitives.shares.additive import reconstruct
from crypto.primitives.shares.replicated import ReplicatedShare, reconstruct_replicated, replicate
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.products.replicated import Input, matrix_product, multiply, to_additive
from crypto.protocols.products.replicated_counts import spanning_counts
from crypto.protocols.sums.pairwise import agree
from link.session import Session
from protos.v1.link_pb2 import Frame
from protos.v1.products_pb2 import Component, ComponentSeed
from tests.crypto.protocols.products_world import assert_views_alike, itemset_counts, packed, table
from tests.crypto.protocols.two_party_world import assert_uniform
from tests.errors import fails
from tests.examples import examples
from tests.world import below, run_parties

PARTIES = ("a", "b", "c", "d", "e")
THREE = ("a", "b", "c")


async def share_columns(
    session: Session, owner: str, columns: Any, shape: tuple[int, int], word: Any = np.uint32
) -> Any:
    """Shares one owner's packed columns; owner and holders call this, others may."""
    way = Input(session, THREE, owner, word)
    if session.me == owner:
        return way.share(await way.send(bits_of(columns, (0, shape[1])).astype(word)), shape)
    return way.share(await way.take(shape), shape)


def counts(
    columns: Any,
    rows: int,
    itemsets: Any,
    *,
    three: tuple[str, ...] = THREE,
    two: tuple[str, str] = ("a", "b"),
    instead: Mapping[str, Any] | None = None,
    frames: list[Frame] | None = None,
    **options: Any,
) -> dict[str, Any]:
    own = packed(columns)

    async def role(session: Session) -> Any:
        secrets = await agree(session)
        lane = session.lane("work")
        if instead and session.me in instead:
            return await instead[session.me](lane)
        pair = TwoParty(session.lane("pair"), two) if session.me in two else None
        return await spanning_counts(lane, secrets, three, pair, own[session.me], rows, itemsets)

    return run_parties(tuple(columns), role, observe=below("/work", frames), **options)


@examples(4, 12)
@given(data=st.data(), rows=st.integers(0, 400), seed=st.integers(0, 2**32))
def test_against_numpy(data: st.DataObject, rows: int, seed: int) -> None:
    parties = PARTIES[: data.draw(st.integers(3, 5))]
    numbers = [data.draw(st.integers(1, 3)) for _ in parties]
    columns = table(parties, numbers, rows, data.draw(st.sampled_from([0.0, 0.8, 1.0])), seed)
    three = data.draw(st.permutations(parties))[:3]
    two = tuple(data.draw(st.permutations(three))[:2])
    members = st.lists(st.sampled_from(parties), min_size=2, unique=True)
    itemset = members.flatmap(
        lambda names: st.fixed_dictionaries({n: st.integers(0, len(columns[n]) - 1) for n in names})
    )
    itemsets = data.draw(st.lists(itemset, max_size=12))
    out = counts(columns, rows, itemsets, three=tuple(three), two=two, seed=seed)
    assert reconstruct([out[name] for name in two]).tolist() == itemset_counts(columns, itemsets)
    assert all(out[name] is None for name in parties if name not in two)


def test_several_blocks_over_grpc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring_matrix, "BLOCK_WORDS", 1024)
    columns = table(PARTIES, (2, 2, 2, 2, 2), 8765, 0.8, 0)
    itemsets = [dict.fromkeys(PARTIES, 1), {"d": 0, "e": 0}, {"a": 0, "d": 1, "e": 0}, {"b": 1, "c": 0}]
    out = counts(columns, 8765, itemsets, transport="grpc")
    assert reconstruct([out["a"], out["b"]]).tolist() == itemset_counts(columns, itemsets)


@pytest.mark.parametrize("word", [np.uint32, np.uint64])
@pytest.mark.parametrize("owner", PARTIES[:4])
def test_input_of_any_party(word: Any, owner: str) -> None:
    bits = table([owner], [3], 77, 0.5, 0)
    own = packed(bits)

    async def role(session: Session) -> Any:
        return await share_columns(session.lane("x"), owner, own.get(session.me), (3, 77), word)

    out = run_parties(PARTIES[:4], role)
    assert out["d"] is None
    assert (reconstruct_replicated([out[name] for name in THREE]) == bits[owner]).all()


@pytest.mark.parametrize("word", [np.uint32, np.uint64])
def test_products_and_shares_of_two(word: Any) -> None:
    generator = np.random.default_rng(0)
    x, y = (generator.integers(0, 1000, (4, 50)).astype(word) for _ in range(2))
    shares = [dict(zip(THREE, replicate(v, THREE, Randomness.from_seed(i)), strict=True)) for i, v in enumerate((x, y))]

    async def role(session: Session) -> Any:
        secrets, (of_x, of_y) = await agree(session), (each[session.me] for each in shares)
        product = await multiply(session.lane("1"), secrets, of_x, of_y)
        inner = await matrix_product(session.lane("2"), secrets, of_x, of_y)
        column = await matrix_product(session.lane("3"), secrets, of_x, of_y[:1])
        additive = []
        for two in (("a", "b"), ("c", "b"), ("a", "c")):
            if session.me in two:
                pair = TwoParty(session.lane(f"pair {two}"), two)
                additive.append((two, await to_additive(session.lane(f"{two}"), pair, column)))
        return product, inner, dict(additive)

    out = run_parties(THREE, role)
    assert (reconstruct_replicated([out[n][0] for n in THREE]) == x * y).all()
    assert (reconstruct_replicated([out[n][1] for n in THREE]) == x @ y.T).all()
    for two in out["a"][2].keys() | out["b"][2].keys():
        assert reconstruct([out[n][2][two] for n in two]).tolist() == (x @ y[0]).tolist()


def test_messages_do_not_depend_on_the_columns() -> None:
    """Three tables without a common row: every view is uniform and alike; probability of error 1e-6 a test."""
    rows, runs = 2500, []
    parties = PARTIES[:4]
    itemsets = [{"a": 0, "b": 0, "c": 0, "d": 0}, {"c": 0, "d": 1}, {"a": 1, "d": 0}]
    for seed, ones in enumerate([(), ("a", "b", "c"), ("d",)]):
        columns = {p: np.full((2, rows), p in ones) for p in parties}
        frames: list[Frame] = []
        out = counts(columns, rows, itemsets, frames=frames, seed=seed)
        assert not reconstruct([out["a"], out["b"]]).any()
        runs.append(frames)
    assert_views_alike(runs)


def test_what_a_holder_holds_of_anothers_columns_is_uniform_or_zero() -> None:
    bits = {"d": np.ones((8, 4096), np.bool_), "b": np.ones((8, 4096), np.bool_)}
    own = packed(bits)

    async def role(session: Session) -> Any:
        return [
            await share_columns(session.lane(name), name, own[name] if name == session.me else None, (8, 4096))
            for name in bits
        ]

    out = run_parties(PARTIES[:4], role)
    for name in THREE:
        from_outside, from_b = out[name]
        for component in (from_outside.own, from_outside.following):
            assert_uniform(component.view(np.uint8).reshape(-1))
        for component in (from_b.own, from_b.following) if name != "b" else ():
            if component.any():
                assert_uniform(component.view(np.uint8).reshape(-1))


async def _short_component(lane: Session) -> None:
    for number in range(1):
        inner = lane.lane(f"{number}")
        for receiver in ("a", "c"):
            await inner.send(receiver, ComponentSeed(seed=bytes(32)))
        for receiver in ("b", "a"):
            await inner.send(receiver, ComponentSeed(seed=bytes(32)))
        await inner.send("c", Component(data=bytes(4 * 40 - 4)))
        await inner.send("b", Component(data=bytes(4 * 40)))
    await lane.lane("never").recv("a", Component)


async def _short_seed(lane: Session) -> None:
    await lane.lane("0").send("a", ComponentSeed(seed=bytes(31)))
    await lane.lane("never").recv("a", Component)


@pytest.mark.parametrize("cheat", [_short_component, _short_seed])
def test_wrong_input_is_refused_and_its_owner_named(cheat: Any) -> None:
    columns = table(PARTIES[:4], (1, 1, 1, 1), 40, 0.5, 0)
    with fails("E402") as caught:
        counts(columns, 40, [{"c": 0, "d": 0}], instead={"d": cheat})
    assert caught.value.party == "d"


def test_misuse() -> None:
    columns = table(THREE, (1, 1, 1), 8, 0.5, 0)
    for three, itemsets, words in (
        (("a", "b", "b"), [{"a": 0, "b": 0}], "three parties of the job"),
        (("a", "b", "x"), [{"a": 0, "b": 0}], "three parties of the job"),
        (THREE, [{"a": 0}], "two parties of the job or more"),
        (THREE, [{"a": 0, "x": 0}], "two parties of the job or more"),
        (THREE, [{"a": 0, "b": 1}], "outside the 1"),
    ):
        with pytest.raises(ValueError, match=words):
            counts(columns, 8, itemsets, three=three)
    share = ReplicatedShare(np.zeros((1, 1), np.uint32), np.zeros((1, 1), np.uint32), "a", THREE)

    async def role(session: Session) -> None:
        two = TwoParty(session.lane("pair"), ("a", "d") if session.me in "ad" else ("b", "c"))
        with pytest.raises(TypeError, match="becomes none of"):
            await to_additive(session.lane("x"), two, share)

    run_parties(PARTIES[:4], role)
