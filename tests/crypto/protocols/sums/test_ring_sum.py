from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from crypto.protocols.sums.ring_sum import ring_sum
from crypto.protocols.sums.secure_sum import declared
from link.errors import UndeclaredDisclosure
from link.session import Session
from protos.v1.link_pb2 import Frame, Opening
from protos.v1.secure_sum_pb2 import RunningSum
from tests.errors import fails
from tests.world import run_parties

Vectors = dict[str, NDArray[np.uint64]]
WORDS = st.one_of(st.integers(0, 9), st.integers(2**64 - 9, 2**64 - 1), st.integers(0, 2**64 - 1))


def run(vectors: Vectors, frames: list[Frame] | None = None, *, label: str = "sum", seed: int = 0) -> Vectors:
    async def role(session: Session) -> NDArray[np.uint64]:
        return await ring_sum(session, vectors[session.me], label=label)

    statement = [declared("sum", vectors, 10**6, what="test", when="test")]
    record = [] if frames is None else frames
    return run_parties(tuple(vectors), role, declared=statement, seed=seed, observe=record.append)


def draw(n: int, m: int, seed: int = 0) -> Vectors:
    generator = np.random.default_rng(seed)
    return {f"p{i}": generator.integers(0, 2**64 - 1, m, dtype=np.uint64, endpoint=True) for i in range(n)}


@settings(max_examples=25, deadline=None)
@given(data=st.data(), n=st.integers(3, 7), m=st.sampled_from([0, 1, 2, 30]), seed=st.integers(0, 2**32))
def test_all_parties_learn_the_sum(data: st.DataObject, n: int, m: int, seed: int) -> None:
    vectors = {f"p{i}": data.draw(arrays(np.uint64, m, elements=WORDS)) for i in range(n)}
    expected = [sum(int(v[k]) for v in vectors.values()) % 2**64 for k in range(m)]
    assert [total.tolist() for total in run(vectors, seed=seed).values()] == [expected] * n


def test_two_neighbours_recover_what_lies_between_them() -> None:
    """The attack that this protocol is known for, from the two frames that p1 and p3 see."""
    frames: list[Frame] = []
    vectors = draw(5, 20)
    run(vectors, frames)
    sent = {f.sender: words(f) for f in frames if f.type == RunningSum.DESCRIPTOR.full_name}
    assert (sent["p2"] - sent["p1"]).tolist() == vectors["p2"].tolist()


def words(frame: Frame) -> NDArray[np.uint64]:
    return np.frombuffer(RunningSum.FromString(frame.body).data, np.uint64)


def test_fewer_than_three_parties_are_refused() -> None:
    with fails("E100"):
        run(draw(2, 1))


def test_an_undeclared_label_is_not_opened() -> None:
    frames: list[Frame] = []
    with pytest.raises(UndeclaredDisclosure):
        run(draw(3, 4), frames, label="another")
    assert not [f for f in frames if f.type == Opening.DESCRIPTOR.full_name]


@pytest.mark.parametrize("values", [np.zeros(3, np.int64), np.zeros((3, 1), np.uint64)])
def test_only_uint64_vectors_are_summed(values: NDArray[np.uint64]) -> None:
    with pytest.raises(ValueError, match="uint64"):
        run(dict.fromkeys(("p0", "p1", "p2"), values))


@pytest.mark.parametrize(("n", "m"), [(3, 1), (3, 1000), (5, 1000), (3, 300_000)])
def test_costs(n: int, m: int) -> None:
    frames: list[Frame] = []
    parties = draw(n, m)

    async def role(session: Session) -> int:
        await ring_sum(session, parties[session.me], label="sum")
        return session.costs.rounds

    statement = [declared("sum", parties, m, what="test", when="test")]
    rounds = run_parties(tuple(parties), role, declared=statement, observe=frames.append)
    payload = sum(len(RunningSum.FromString(f.body).data) for f in frames if f.type.endswith("RunningSum"))
    opened = sum(len(Opening.FromString(f.body).values) for f in frames if f.type.endswith("Opening"))
    assert (payload, opened) == (8 * m * n, 8 * m * (n - 1))
    assert rounds == {"p0": n, **dict.fromkeys(list(parties)[1:], n + 1)}
