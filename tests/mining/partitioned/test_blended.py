"""Blended mining of rows in blocks: halves and questions by chance alone, counts and answers by the same law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from link.session import Session
from mining.data.rows import Rows
from mining.data.transactions import Transactions
from mining.joint.blended.disclosure import openings
from mining.joint.blended.estimate import from_answers
from mining.joint.blended.mine import mine
from mining.joint.blended.own_records import answers, asked, halves, response, second_half
from mining.joint.distributed.truncation import truncated_item_counts
from mining.joint.estimated import EstimatedOutcome, pack_estimates
from tests.examples import examples
from tests.mining.joint.hybrid.hybrid_world import ITEMS, PARTIES, SEEN, baskets
from tests.mining.joint.hybrid.test_blended import TASK
from tests.mining.partitioned.world import PARTITIONS, evenly, partitioned, ragged
from tests.world import run_parties

pytestmark = pytest.mark.turn(3)


@given(st.integers(0, 60), st.integers(1, 8), st.integers(0, 1 << 30), st.data())
@examples(10, 60)
def test_halves_are_all_records(n_rows: int, most: int, seed: int, draw: st.DataObject) -> None:
    data = Transactions.from_rows(baskets(n_rows, 1)).onto(ITEMS)
    one, other = halves(partitioned(data, draw.draw(ragged(n_rows))), Randomness.from_seed(seed))
    assert (one.n_rows, other.n_rows) == (n_rows - second_half(n_rows), second_half(n_rows))
    assert (one.item_counts() + other.item_counts()).tolist() == data.item_counts().tolist()
    both = truncated_item_counts(one, most) + truncated_item_counts(other, most)
    assert both.tolist() == truncated_item_counts(data, most).tolist()
    few = ("c", "none", "a")
    assert (one.onto(few).item_counts() + other.onto(few).item_counts()).tolist() == data.onto(
        few
    ).item_counts().tolist()
    assert one.without(["[a-c]"]).items == other.without(["[a-c]"]).items == ITEMS[3:]


@given(st.lists(st.integers(0, 3), max_size=40), st.data())
@examples(10, 60)
def test_every_record_is_asked_once(held: list[int], draw: st.DataObject) -> None:
    """With answers that are hardly ever wrong, all that hold everything say yes, and nobody else does."""
    head = ITEMS[:3]
    data = Transactions.from_rows([*head] if all_of_them else [] for all_of_them in held)
    task = replace(TASK, epsilon=16)  # type: ignore[arg-type]
    found = answers(partitioned(data, draw.draw(ragged(len(held)))), head, task, Randomness.from_seed(4))
    assert found.sum() == np.count_nonzero(held)
    assert (found <= asked(len(held), len(head))).all()


def test_answers_are_without_bias_and_vary_as_in_memory() -> None:
    """Means of 200 runs, within 5 standard errors for 4 items: a false alarm has a probability below 3·10⁻⁶. Variances
    of 200 runs have a relative deviation of 10 %, and are asked to be within 50 % of what estimates say."""
    head, runs = ("a", "b", "d", "h"), 200
    rows = Transactions.from_rows(baskets(400, 5))
    blocks = partitioned(rows, [0, 30, 30, 300, 400])
    of, found = asked(rows.n_rows, len(head)), []
    told = []
    for seed in range(runs):
        estimate = from_answers(answers(blocks, head, TASK, Randomness.from_seed(seed)), of, response(TASK))
        found.append(estimate.frequencies)
        told.append(estimate.variances)
    estimates, true = np.array(found), rows.onto(head).item_counts() / rows.n_rows
    assert (np.abs(estimates.mean(axis=0) - true) < 5 * np.sqrt(estimates.var(axis=0, ddof=1) / runs)).all()
    assert np.abs(estimates.var(axis=0) / np.mean(told, axis=0) - 1).max() < 0.5


@pytest.mark.parametrize("parts", PARTITIONS)
def test_whole_jobs(parts: int) -> None:
    """Supports lie within 6 of their deviations: a false alarm has a probability below 10⁻⁷."""
    memory = {party: Transactions.from_rows(baskets(2_000, place)) for place, party in enumerate(PARTIES)}
    data: dict[str, Rows] = {party: partitioned(own, evenly(own.n_rows, parts)) for party, own in memory.items()}
    if parts == 3:
        data["east"] = memory["east"]

    async def role(session: Session) -> EstimatedOutcome:
        return await mine(session.lane("task"), data[session.me], TASK)

    outcomes = run_parties(list(data), role, declared=openings(TASK, tuple(data)))
    found = [each.estimated for each in outcomes.values() if each.estimated is not None]
    assert len({pack_estimates(each) for each in found}) == 1
    itemsets = found[0].itemsets
    assert set(itemsets.items) == {"a", "b", "c"}
    for sets, counts, deviations in itemsets.levels:
        for (item,), count, deviation in zip(sets.tolist(), counts, deviations, strict=True):
            assert abs(count / 6_000 - SEEN[itemsets.items[item]]) < 6 * deviation / 6_000 + 0.03  # of the draw of rows
