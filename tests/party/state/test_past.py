"""The jobs that have ended, a part at a time."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from party.state.past import Filter
from party.state.store import Store
from protos.v1.control_pb2 import AWAITING_APPROVAL, CANCELLED, EXPIRED, FAILED, RUNNING, SUCCEEDED
from tests.party.state.test_store import record

NOW = 1e9
STATES = (SUCCEEDED, FAILED, RUNNING, CANCELLED, EXPIRED, AWAITING_APPROVAL, AWAITING_APPROVAL, SUCCEEDED)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store.open(tmp_path / "node.db")
    for number, state in enumerate(STATES):
        more = {"coordinator": "other", "dataset": "visits"} if number == 7 else {}
        expiry = int(NOW) + (1 if number == 6 else -1)
        made.add(record(number, state=state, received=float(number), expiry=expiry, **more))
    return made


@pytest.mark.parametrize(
    ("which", "numbers"),
    [
        (Filter(NOW), [7, 5, 4, 3, 1, 0]),
        (Filter(NOW, SUCCEEDED), [7, 0]),
        (Filter(NOW, EXPIRED), [5, 4]),
        (Filter(NOW, coordinator="other"), [7]),
        (Filter(NOW, FAILED, dataset="visits"), []),
        (Filter(NOW + 10, EXPIRED), [6, 5, 4]),
    ],
)
def test_they_are_found_the_newest_first(store: Store, which: Filter, numbers: list[int]) -> None:
    ids = [record(number).job_id for number in numbers]
    with closing(store):
        assert store.count_past(which) == len(numbers)
        assert store.past(which, 0, 50) == ids
        assert store.past(which, 1, 2) == ids[1:3]


def test_a_part_of_all_is_found_in_an_index_alone(store: Store) -> None:
    """So that proposals, which are long, are read for the part that is shown and no others."""
    with closing(store):
        asked = list[str]()
        store.connection.set_trace_callback(asked.append)
        store.past(Filter(NOW, SUCCEEDED), 0, 50)
        store.connection.set_trace_callback(None)
        plan = store.connection.execute(f"EXPLAIN QUERY PLAN {asked[0]}").fetchall()
    assert "USING COVERING INDEX jobs_by_state" in plan[0][3]
