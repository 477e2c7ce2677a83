"""The task `align` equals what the tables of all parties in one place would tell, and tells each party no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.protocols.alignment.disclosure import Mode
from crypto.protocols.comparison.two_party import pairs_of
from mining.data.formats.table_readers import table_from_arrow
from mining.data.row_ids import IdNormalisation
from mining.data.tables import Table
from mining.joint.align import AlignedRows, RowAlignment, align, learned, openings, positions_of
from protos.v1.link_pb2 import Frame
from tests.errors import fails
from tests.examples import examples
from tests.world import run_parties

pytestmark = pytest.mark.turn(3)

MODES: tuple[Mode, ...] = ("intersection", "cardinality", "union")


def table_of(ids: Sequence[str]) -> Table:
    """A table with a column beside the ids, whose name no other party may see."""
    columns = {"id": pa.array(ids, pa.string()), "secret-column": pa.array(["secret-cell"] * len(ids), pa.string())}
    return table_from_arrow(pa.table(columns), ["id"], "the test")


def run(
    ids: Mapping[str, Sequence[str]], task: RowAlignment, observe: list[Frame] | None = None, seed: int = 0
) -> dict[str, AlignedRows]:
    tables = {party: table_of(own) for party, own in ids.items()}
    keep = (lambda frame: None) if observe is None else observe.append
    return run_parties(
        list(ids),
        lambda session: align(session.lane("task"), pairs_of(session), tables[session.me], task),
        declared=openings(task, tuple(ids)),
        observe=keep,
        seed=seed,
    )


def places(ids: Sequence[str], rows: np.ndarray) -> dict[str, int]:
    """By id of a party its position."""
    kept = positions_of(table_of(ids), rows)
    assert kept.column_names == ["id", "position"]
    assert kept["position"].to_pylist() == sorted(kept["position"].to_pylist())
    return dict(zip(kept["id"].to_pylist(), kept["position"].to_pylist(), strict=True))


@st.composite
def holdings(draw: st.DrawFn) -> dict[str, list[str]]:
    """Ids of two to five parties: many, few, none, all the same."""
    universe = [f"person {number}" for number in range(draw(st.integers(1, 12)))]
    some = st.lists(st.sampled_from(universe), unique=True) | st.just(universe)
    return {f"p{number}": draw(some) for number in range(draw(st.integers(2, 5)))}


@pytest.mark.parametrize("mode", MODES)
@given(holdings(), st.booleans())
@examples(1, 6)
def test_equals_the_tables_in_one_place(mode: Mode, ids: dict[str, list[str]], bounded: bool) -> None:
    found = run(ids, RowAlignment("p0", mode, bound=16 if bounded else None))
    common = set.intersection(*map(set, ids.values()))
    assert {each.n_common for each in found.values()} == {None if mode == "union" else len(common)}
    if mode == "cardinality":
        assert all(each.rows is None for each in found.values())
        return
    at = {}
    for party, each in found.items():
        assert each.rows is not None
        at[party] = places(ids[party], each.rows)
    if mode == "intersection":
        assert all(set(own) == common for own in at.values())
        assert all(sorted(own.values()) == list(range(len(common))) for own in at.values())
    else:
        assert all(set(own) == set(ids[party]) for party, own in at.items())
        assert len({len(each.rows) for each in found.values() if each.rows is not None}) == 1
    everywhere: dict[str, int] = {}
    for own in at.values():
        for person, position in own.items():
            assert everywhere.setdefault(person, position) == position
    assert len(set(everywhere.values())) == len(everywhere)


def test_ids_are_brought_into_the_form_that_the_job_asks_for() -> None:
    ids = {"a": [" P1", "p2"], "b": ["p1 ", "P3"], "c": ["p1"]}
    assert run(ids, RowAlignment("a"))["a"].n_common == 0
    found = run(ids, RowAlignment("a", normalisation=IdNormalisation(trim=True, case="fold")))
    assert [each.n_common for each in found.values()] == [1, 1, 1]
    assert found["a"].rows is not None
    assert places(ids["a"], found["a"].rows) == {" P1": 0}  # as it stands in the table


@pytest.mark.parametrize("mode", MODES)
def test_nothing_of_a_table_but_its_ids_is_used_and_these_are_not_sent(mode: Mode) -> None:
    frames: list[Frame] = []
    run(
        {"a": ["person 1", "person 2"], "b": ["person 2"], "c": ["person 2", "person 9"]},
        RowAlignment("a", mode),
        frames,
    )
    everything = b"".join(frame.SerializeToString() for frame in frames)
    assert len(everything) > 1000
    for text in (b"secret", b"person"):
        assert text not in everything


@pytest.mark.parametrize("parties", [2, 3])
@pytest.mark.parametrize("bound", [None, 8])
def test_a_union_has_as_many_positions_and_as_long_messages_whatever_is_common(parties: int, bound: int | None) -> None:
    names = [f"p{number}" for number in range(parties)]
    apart = {name: [f"{name} {k}" for k in range(6)] for name in names}
    alike = {name: [f"person {k}" for k in range(6)] for name in names}
    seen = []
    for ids in (apart, alike):
        frames: list[Frame] = []
        found = run(ids, RowAlignment("p0", "union", bound=bound), frames)
        assert found["p0"].rows is not None
        sizes = sorted((f.sender, f.receiver, f.lane, f.seq, len(f.body)) for f in frames)
        seen.append((len(found["p0"].rows), sizes))
    assert seen[0][0] == seen[1][0]
    assert seen[0][1] == seen[1][1]


def test_of_a_cardinality_only_the_number_is_opened() -> None:
    task = RowAlignment("a", "cardinality")
    sizes, line = openings(task, ("a", "b", "c"))
    assert sizes.label == "size classes"
    assert (line.label, line.recipients, line.maximum) == ("cardinality", {"a", "b", "c"}, 1)
    assert not any("which of their own rows" in told.exact for told in learned(task, ("a", "b", "c")))
    assert any("which of their own rows" in told.exact for told in learned(RowAlignment("a"), ("a", "b", "c")))


def test_more_rows_than_the_bound_and_repeated_ids_are_refused() -> None:
    with fails("E104"):
        run({"a": [str(number) for number in range(65)], "b": ["1"]}, RowAlignment("a", bound=2))
    with fails("E101"):
        run({"a": ["1", "1"], "b": ["1"]}, RowAlignment("a"))


def test_a_column_of_ids_that_is_called_position_keeps_its_name() -> None:
    columns = {"position": ["x", "y"], "_position": ["7", "8"]}
    kept = positions_of(table_from_arrow(pa.table(columns), list(columns), "the test"), np.array([-1, 1, 0]))
    assert kept.to_pydict() == {"position": ["y", "x"], "_position": ["8", "7"], "__position": [1, 2]}
