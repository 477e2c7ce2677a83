"""Models of tables in blocks are those of the pooled rows, under any cut; what ends a job is told as in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.jobs.simulation.simulate import simulate_job
from jobs.data import Data
from jobs.kinds.models.document import pack_model
from jobs.results.result import Result
from jobs.spec.job import JobSpec
from link.errors import ComineError
from tests.examples import examples
from tests.mining.joint.model_jobs_world import PARTIES, TASKS, Rows, Task, job, parted, people, pooled, splits, table
from tests.mining.partitioned.tables_world import partitioned
from tests.mining.partitioned.world import PARTITIONS, evenly, ragged

pytestmark = pytest.mark.turn(3)


def run(spec: JobSpec, data: Mapping[str, Data]) -> Result:
    return asyncio.run(simulate_job(spec, data, seed=1))


@st.composite
def cuts(draw: st.DrawFn, n_rows: int) -> list[int]:
    """One, three or seventeen blocks, or any, empty ones among them."""
    return draw(st.sampled_from([evenly(n_rows, parts) for parts in PARTITIONS]) | ragged(n_rows))


@pytest.mark.parametrize("task", TASKS)
@given(splits(), st.data())
@examples(3, 10)
def test_a_model_of_rows_in_blocks_is_that_of_pooled_rows(
    tmp_path_factory: pytest.TempPathFactory,
    task: Task,
    split: tuple[Rows, list[int], tuple[str, ...]],
    draw: st.DataObject,
) -> None:
    rows, bounds, parties = split
    spec, memory = job(task, parties), parted(rows, bounds, parties)
    blocks: dict[str, Data] = {
        party: partitioned(own, draw.draw(cuts(own.n_rows)), tmp_path_factory.mktemp(party))
        for party, own in memory.items()
    }
    one = draw.draw(st.sampled_from(parties))  # whose rows may be in memory all the same
    found = run(spec, {**blocks, one: memory[one]} if draw.draw(st.booleans()) else blocks)
    assert found.n_rows == len(rows["class"])
    assert pack_model(found.model()) == pack_model(pooled(spec, rows))


def _ended(spec: JobSpec, data: Mapping[str, Data]) -> tuple[str, str | None, str]:
    with pytest.raises(ComineError) as caught:
        run(spec, data)
    return caught.value.code, caught.value.party, caught.value.message


@pytest.mark.parametrize(
    ("task", "changes"),
    [
        ("naive-bayes", {"smoker": ["maybe"] * 12}),
        ("naive-bayes", {"town": ["A"] * 9 + ["B", "", "there"], "age": ["old"] * 12}),
        ("decision-tree", {"age": ["7"] * 11 + [""]}),
        ("k-means", {"weight": ["80"] * 3 + ["heavy", "", "80,5"] * 3}),
        ("k-means", {"height": None}),
        ("decision-tree", {"class": None, "town": ["there"] * 12}),
    ],
)
def test_what_does_not_fit_ends_a_job_as_in_memory(
    tmp_path: Path, task: Task, changes: Mapping[str, Sequence[str] | None]
) -> None:
    rows = {**people(12, 0), **changes}
    own = table({name: list(cells) for name, cells in rows.items() if cells is not None})
    other, spec = table(people(12, 1)), job(task, PARTIES[:2])
    found = [_ended(spec, {"north": own, "south": other})]
    for parts in PARTITIONS:
        (tmp_path / str(parts)).mkdir()
        blocks = partitioned(own, evenly(12, parts), tmp_path / str(parts))
        found.append(_ended(spec, {"north": blocks, "south": other}))
    assert set(found) == {found[0]}
