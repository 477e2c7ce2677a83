"""What results of models and releases are compared by."""

from __future__ import annotations

import math
from itertools import chain

import pyarrow as pa
import pytest

from jobs.kinds.models.finding import FoundModel
from jobs.kinds.models.numbers import numbers_of
from jobs.kinds.release.finding import FoundRelease
from jobs.kinds.release.parameters import joint_anonymisation
from jobs.kinds.release.release import Anonymized
from jobs.results.changes import changes
from tests.jobs.kinds.test_model_document import made
from tests.mining.joint.anonymisation.anonymisation_jobs_world import job as releasing
from tests.mining.joint.model_jobs_world import TASKS, Task, job


@pytest.mark.parametrize("task", TASKS)
def test_models_are_compared_by_numbers_with_names_of_their_own(task: Task) -> None:
    before, after = made(task, 40), made(task, 60)
    found = list(numbers_of(before))
    assert len({name for name, _ in found}) == len(found) > 3
    assert all(math.isfinite(number) for _, number in found)
    (same,) = changes(*(FoundModel(before).compared(job(task)),) * 2)
    assert (same.table, same.same, same.changed.number) == ("numbers", len(found), 0)
    (differ,) = changes(*(FoundModel(each).compared(job(task)) for each in (before, after)))
    assert differ.changed.number > 0
    shares = [number for name, number in found if name.startswith("accuracy")]
    assert all(0.3 < share <= 1 for share in shares)
    assert len(shares) == (task == "decision-tree")


def test_releases_are_compared_by_loss_risk_and_levels() -> None:
    spec = releasing()
    quasi = joint_anonymisation(spec).quasi_identifiers

    def released(rows: int) -> FoundRelease:
        cells = {each.name: [each.hierarchy.labels[-1][0]] * rows for each in quasi}
        table = pa.table({**cells, "ill": ["flu"] * rows, "note": ["x"] * rows})
        return FoundRelease(Anonymized(6, {each.name: each.hierarchy.height for each in quasi}, {}, {}, {}, table))

    (found,) = changes(released(6).compared(spec), released(4).compared(spec))
    moved = {row.sides[0][0]: (row.before[0], row.after[0]) for row in found.changed.rows}
    assert moved["released rows"] == (6, 4)
    assert moved["left out"] == (0, 2)
    assert moved["highest_prosecutor_risk"] == (1 / 6, 1 / 4)
    names = {*chain.from_iterable(released(6).compared(spec)["numbers"]["number"].to_pylist())}
    assert {"gcp", "classes", *(f"level of {each.name}" for each in quasi)} <= names
