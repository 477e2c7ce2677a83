"""With sums that stay shared, of an infrequent candidate nobody learns more than that it is infrequent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest
from google.protobuf import symbol_database
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from link.disclosure import kinds
from mining.data.transactions import Transactions
from mining.joint.disclosure import openings
from mining.joint.horizontal.mine import mine
from mining.joint.parameters import HorizontalMining, JointItemsets
from mining.joint.tally import SumRange
from protos.v1 import common_pb2
from protos.v1.link_pb2 import Frame, Opening
from protos.v1.secure_sum_pb2 import MaskedValues
from tests.examples import examples
from tests.mining.joint.oracle import Rows, pooled_supports
from tests.mining.joint.test_horizontal import cases, task_for
from tests.world import run_parties

pytestmark = pytest.mark.turn(6)

LEAST = 12
CATALOGUE = tuple("abcdef")
COMPUTE = ("north", "south")

# All three hold {a, b} together often enough; {a, d}, {c, d}, e and f are infrequent in every version.
DATA: dict[str, Rows] = {
    "north": [["a", "b"]] * 6 + [["a", "d"]] * 2 + [["c"]] * 5 + [["e"]],
    "south": [["a", "b"]] * 5 + [["a", "d"]] * 3 + [["c", "d"]] * 4 + [["e", "f"]] * 3,
    "east": [["a", "b"]] * 4 + [["a", "d"]] * 4 + [["c", "d"]] * 3 + [["d"]] * 2 + [["f"]] * 2,
}
# As many rows, and as many of each frequent itemset; how many of each infrequent one is another matter.
CHANGED: dict[str, Rows] = {
    "north": [["a", "b"]] * 6 + [["a"]] * 2 + [["c", "d"]] * 2 + [["c"]] * 3 + [["f"]],
    "south": [["a", "b"]] * 5 + [["a", "d"]] + [["a"]] * 2 + [["c", "d"]] * 4 + [["d"]] * 2 + [["f"]],
    "east": [["a", "b"]] * 4 + [["a", "d"]] * 2 + [["a"]] * 2 + [["c", "d"]] * 3 + [["d"]] * 4,
}


def run(
    data: Mapping[str, Rows], task: HorizontalMining, seed: int = 0
) -> tuple[dict[str, JointItemsets], list[Frame]]:
    frames: list[Frame] = []

    async def role(session):
        return await mine(session.lane("task"), Transactions.from_rows(data[session.me]), task)

    declared = openings(task, tuple(data))
    return run_parties(list(data), role, declared=declared, seed=seed, observe=frames.append), frames


def shared_task(disclose: str) -> HorizontalMining:
    return task_for(
        DATA,
        LEAST,
        disclose=disclose,
        compute=COMPUTE,
        strategy="level-wise",
        universe="catalogue",
        catalogue=CATALOGUE,
    )


@cache
def first_version(disclose: str, seed: int) -> tuple[dict[str, JointItemsets], list[Frame]]:
    """A run over `DATA`, for all who look at it."""
    return run(DATA, shared_task(disclose), seed)


def test_the_two_versions_differ_in_infrequent_counts_alone() -> None:
    """What the tests below rest on."""
    assert pooled_supports(DATA, LEAST) == pooled_supports(CHANGED, LEAST)
    assert {p: len(rows) for p, rows in DATA.items()} == {p: len(rows) for p, rows in CHANGED.items()}
    for changed_party in DATA:
        mixed = mixture(changed_party)
        assert pooled_supports(mixed, LEAST) == pooled_supports(DATA, LEAST)
        assert pooled_supports(mixed, 1) != pooled_supports(DATA, 1)


def mixture(viewer: str) -> dict[str, Rows]:
    """The viewer's rows as they were, all others' changed."""
    return {party: DATA[party] if party == viewer else CHANGED[party] for party in DATA}


View = tuple[tuple[object, ...], dict[str, list[int]], dict[str, bytes]]


def view(ran: tuple[dict[str, JointItemsets], list[Frame]], viewer: str) -> View:
    """Of all that a party receives: its shape; what is opened, put together; the bytes of all else by type."""
    results, frames = ran
    database = symbol_database.Default()
    order = sorted(frames, key=lambda f: (f.lane, f.sender, f.receiver, f.seq))
    received = [f for f in order if f.receiver == viewer]
    shape = tuple((f.sender, f.lane, f.seq, f.type, len(f.body), f.last, f.round) for f in received)
    hidden: dict[str, bytes] = defaultdict(bytes)
    for frame in received:
        if frame.type == Opening.DESCRIPTOR.full_name:
            message = Opening.FromString(frame.body)
            hidden[f"opened {message.label}"] += message.values
        elif not kinds(database.GetSymbol(frame.type)) <= {common_pb2.PUBLIC}:
            hidden[frame.type] += frame.body
    found = results[viewer].itemsets
    assert found is not None
    outcome = {"".join(items): [count] for items, count in found.rows()} if found.counted else {}
    return shape, outcome, hidden


def nibbles(parts: list[bytes]) -> NDArray[np.int64]:
    bits = np.unpackbits(np.frombuffer(b"".join(parts), np.uint8)).reshape(-1, 4)
    return np.bincount(bits @ [8, 4, 2, 1], minlength=16)


@pytest.mark.parametrize(("viewer", "disclose"), [("north", "supports"), ("south", "frequent"), ("east", "frequent")])
def test_a_partys_view_does_not_depend_on_infrequent_counts(viewer: str, disclose: str) -> None:
    """Every computing party and the third: the same frames in the same order and sizes, and the same distribution.

    Each of the chi-square tests, at most a dozen a case, wrongly fails with probability 10⁻⁷.
    """
    runs = 8
    first = [view(first_version(disclose, seed), viewer) for seed in range(runs)]
    others = (run(mixture(viewer), shared_task(disclose), seed + runs) for seed in range(runs))
    second = [view(ran, viewer) for ran in others]
    assert {shape for shape, _, _ in first} == {shape for shape, _, _ in second}
    assert len({shape for shape, _, _ in first}) == 1
    assert all(outcome == first[0][1] for _, outcome, _ in [*first, *second])
    kinds_of_bytes = set(first[0][2])
    assert kinds_of_bytes == set(second[0][2])
    for kind in kinds_of_bytes:
        tables = [nibbles([hidden[kind] for _, _, hidden in views]) for views in (first, second)]
        used = np.flatnonzero(tables[0] + tables[1])
        if len(used) > 1:
            assert stats.chi2_contingency([table[used] for table in tables]).pvalue > 1e-7, kind


@pytest.mark.parametrize("disclose", ["frequent"])
def test_what_the_holders_get_and_open_are_uniform_shares(disclose: str) -> None:
    """The first holder's masked sums, and either holder's shares of the opened bits; error probability 10⁻⁷ each."""
    sums, bits = b"", {holder: [] for holder in COMPUTE}
    for seed in range(20):
        _, frames = first_version(disclose, seed)
        for frame in frames:
            if frame.type.endswith("MaskedValues"):
                assert (frame.sender, frame.receiver) == ("east", "north")
                sums += MaskedValues.FromString(frame.body).data
            elif frame.type == Opening.DESCRIPTOR.full_name and frame.receiver == "east":
                message = Opening.FromString(frame.body)
                if message.label == "frequent":
                    octets = np.frombuffer(message.values, np.uint8)
                    bits[frame.sender] += np.unpackbits(octets, count=message.number, bitorder="little").tolist()
    assert stats.chisquare(nibbles([sums])).pvalue > 1e-7
    for shares in bits.values():
        assert stats.binomtest(sum(shares), len(shares)).pvalue > 1e-7


def test_nothing_but_bits_is_opened_where_only_frequency_is_asked_for() -> None:
    results, frames = first_version("frequent", 0)
    labels = {Opening.FromString(f.body).label for f in frames if f.type == Opening.DESCRIPTOR.full_name}
    assert labels == {"rows", "frequent"}
    for result in results.values():
        assert result.itemsets is not None
        assert not result.itemsets.counted
        assert {frozenset(items) for items, _ in result.itemsets.rows()} == set(pooled_supports(DATA, LEAST))


@given(cases())  # each of them a whole job
@examples(1, 6)
def test_which_itemsets_are_frequent_equals_the_pooled_result(
    case: tuple[dict[str, Rows], HorizontalMining],
) -> None:
    data, task = case
    task = task_for(
        data,
        task.min_support,
        **{name: getattr(task, name) for name in ("compute", "strategy", "thin", "max_length", "merger", "learners")},
        disclose="frequent",
    )
    results, _ = run(data, task)
    expected = set(pooled_supports(data, task.min_support, task.max_length))
    for party, result in results.items():
        if party not in task.learners:
            assert result.itemsets is None
            continue
        assert result.itemsets is not None
        assert {frozenset(items) for items, _ in result.itemsets.rows()} == expected


@given(
    st.integers(1, 2**61),
    st.lists(st.integers(0, 2**61), min_size=2, max_size=6),
)
def test_capped_sums_reach_c_exactly_where_the_sums_do(min_count: int, counts: list[int]) -> None:
    """And fit their word and width: any counts of up to 2^61 transactions in all."""
    n_rows = sum(counts)
    if not min_count <= n_rows <= 2**61:
        return
    capped = SumRange.capped(min_count, len(counts), n_rows)
    total = sum(min(count, min_count) for count in counts)
    assert (total >= min_count) == (sum(counts) >= min_count)
    assert total <= np.iinfo(capped.word).max
    assert -(1 << capped.width - 1) <= 0 - min_count
    assert total - min_count <= (1 << capped.width - 1) - 1
    assert capped.width <= 8 * capped.word.itemsize


@pytest.mark.parametrize(
    ("min_count", "parties", "n_rows", "width", "word"),
    [
        (89, 3, 88_162, 9, np.uint16),
        (2438, 3, 8124, 14, np.uint16),
        (1, 2, 2, 2, np.uint8),
        (8124, 3, 8124, 14, np.uint16),
    ],
)
def test_the_width_of_a_comparison(min_count: int, parties: int, n_rows: int, width: int, word: type) -> None:
    assert SumRange.capped(min_count, parties, n_rows) == SumRange(np.dtype(word), width)
