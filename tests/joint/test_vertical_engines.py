"""Every engine of joint vertical mining: the joined table's itemsets, and nothing seen but what is declared."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from link.errors import InputDataError
from mining.joint.vertical.parameters import Mode, VerticalMining
from tests.joint.oracle import pooled_supports
from tests.joint.test_vertical import columns_of, tables
from tests.joint.vertical_world import ENGINES, helper_of, mine_all, quick_keys

__all__ = ["quick_keys"]

pytestmark = pytest.mark.usefixtures("quick_keys")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("mode", ["intersection", "union"])
@given(tables(), st.integers(1, 6), st.data())
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_equals_mining_the_joined_table(engine: str, mode: Mode, case, least: int, data: st.DataObject) -> None:
    found, presence, n = case
    if mode == "intersection":
        presence = {party: [True] * n for party in presence}
    parties = tuple(found)
    common = [all(presence[party][row] for party in parties) for row in range(n)]
    task = VerticalMining(
        min(least, max(1, sum(common))),
        tuple(data.draw(st.lists(st.sampled_from(parties), min_size=1, unique=True))),
        tuple(data.draw(st.permutations(parties))[:2]),
        parties[0],
        mode,
        disclose=data.draw(st.sampled_from(["candidates", "supports", "frequent"])),
        engine=engine,
        helper=helper_of(engine, parties),
    )
    columns = {party: columns_of(found[party], presence[party], everywhere=mode == "intersection") for party in parties}
    if not any(common):
        with pytest.raises(InputDataError, match="no row in common"):
            mine_all(columns, task)
        return
    joined = [
        [item for party in parties for item, bits in found[party].items() if bits[row]]
        for row in range(n)
        if common[row]
    ]
    expected = pooled_supports({"all": joined}, task.min_support)
    for party, result in mine_all(columns, task).items():
        assert result.strategy == f"level-wise, {engine}"
        if party not in task.learners:
            assert result.itemsets is None
            continue
        assert result.itemsets is not None
        rows = {frozenset(itemset): count for itemset, count in result.itemsets.rows()}
        assert set(rows) == set(expected)
        if task.disclose != "frequent":
            assert rows == expected
