"""Joint releases of rows in blocks: the same release, and the same messages, as of rows in memory."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from anonymize.models import DistinctDiversity, TCloseness
from jobs.kinds.kind import NO_RESOURCES
from jobs.kinds.registry import kind_of
from jobs.kinds.release.checks import check_persons
from link.errors import InputDataError
from mining.data.table_rows import TableRows
from mining.data.tables import Table
from mining.joint.anonymisation.anonymise import anonymise
from mining.joint.anonymisation.coding import Coding
from mining.joint.anonymisation.disclosure import openings
from mining.joint.anonymisation.parameters import JointAnonymisation
from mining.joint.anonymisation.rows import Counter as RowCounter
from mining.joint.anonymisation.rows import ReleasedRows
from mining.partitioned.tables.rows import PartitionedTable
from protos.v1.link_pb2 import Frame
from tests.errors import fails
from tests.examples import slowly
from tests.mining.joint.anonymisation.anonymisation_jobs_world import job
from tests.mining.joint.anonymisation.anonymisation_world import PARTIES, parted, people, table, task
from tests.mining.joint.models.models_world import run
from tests.mining.partitioned.tables_world import partitioned
from tests.mining.partitioned.world import PARTITIONS, evenly, ragged

pytestmark = pytest.mark.turn(3)

MODELS = ((), (DistinctDiversity(2, "ill"),), (TCloseness("0.7", "ill"),))


def outcomes(
    tables: Mapping[str, TableRows], wanted: JointAnonymisation
) -> tuple[Any, Counter[tuple[str, bytes, int]]]:
    """What every party gets, or the error, and the messages that are sent."""
    sent: list[Frame] = []
    found = run(
        dict(tables), lambda session, own: anonymise(session, own, wanted), openings(wanted, tuple(tables)), frames=sent
    )
    said = {
        party: (
            each.n_rows,
            each.node,
            dict(each.statistics),
            None if each.rows is None else (each.rows.cells.tolist(), dict(each.rows.carried)),
            each.totals,
            None if each.boxes is None else (each.boxes.low.tolist(), each.boxes.high.tolist()),
        )
        for party, each in found.items()
    }
    sealed = "/task/assembly/rows"  # to a key that is drawn anew
    return said, Counter((each.lane, b"" if each.lane == sealed else each.body, len(each.body)) for each in sent)


def in_blocks(own: Table, cuts: Sequence[int], folder: Path) -> PartitionedTable:
    folder.mkdir()
    return partitioned(own, cuts, folder)


@pytest.mark.parametrize("algorithm", slowly(["optimal", "mondrian"], now=[0]))
def test_the_release_and_the_messages_are_those_of_memory(tmp_path: Path, algorithm: str) -> None:
    cells, owners = people(40, 3), np.random.default_rng(1).integers(0, 2, 40)
    wanted = task(PARTIES[:2], k=2, models=(DistinctDiversity(2, "ill"),), algorithm=algorithm)
    tables = parted(cells, owners, PARTIES[:2])
    blocks = {
        party: in_blocks(own, evenly(own.n_rows, parts), tmp_path / party)
        for (party, own), parts in zip(tables.items(), (3, 17), strict=True)
    }
    assert outcomes(blocks, wanted) == outcomes(tables, wanted)


@given(seed=st.integers(0, 1 << 16), n_rows=st.integers(0, 60), data=st.data())
def test_counts_and_released_rows_are_those_of_memory(
    tmp_path_factory: pytest.TempPathFactory, seed: int, n_rows: int, data: st.DataObject
) -> None:
    wanted = task(PARTIES[:2], models=data.draw(st.sampled_from(MODELS)))
    own = table(people(n_rows, seed))
    cuts = data.draw(ragged(n_rows) | st.sampled_from([evenly(n_rows, parts) for parts in PARTITIONS]))
    blocks = partitioned(own, cuts, tmp_path_factory.mktemp("blocks"))
    found = []
    for rows in (own, blocks):
        coding = Coding.of(rows, wanted, "north")
        counter = RowCounter.counted(rows, coding, wanted)
        node = {0: seed % 4, 1: seed % 3, 2: seed % 2}
        tuples = np.arange(len(counter.weights))
        packed = ReleasedRows.of(rows, coding, counter, np.where(tuples % 3 > 0, tuples, -1), 1).all()
        counts = [counter.counts(node), *(counter.histogram(node, name) for name in counter.values)]
        arrays: list[NDArray[Any]] = [counter.tuples, *counter.occurring(), *counts, packed]
        found.append([each.tolist() for each in arrays])
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("column", "cell"), [("age", ""), ("age", "x"), ("town", "D"), ("ill", "x"), ("note", "long" * 9)]
)
def test_wrong_cells_are_refused_in_the_same_words(tmp_path: Path, column: str, cell: str) -> None:
    cells = people(30, 2)
    cells[column][17] = cell
    own = table(cells)
    said = []
    for rows in (own, in_blocks(own, evenly(30, 3), tmp_path / "blocks")):
        with pytest.raises(InputDataError) as refused:
            Coding.of(rows, task(PARTIES[:2]), "north")
        said.append(refused.value.message)
    assert said[0] == said[1]


def test_a_job_over_blocks_gives_the_release_of_memory(tmp_path: Path) -> None:
    own = parted(people(60, 3), np.random.default_rng(1).integers(0, 3, 60), PARTIES[:3])
    blocks = {party: in_blocks(each, evenly(each.n_rows, 3), tmp_path / party) for party, each in own.items()}
    spec = job(max_suppression="0.1")
    kind = kind_of(spec)
    found = [
        run(tables, lambda session, data: kind.run(session, spec, data, NO_RESOURCES), kind.disclosure(spec).declared)
        for tables in (own, blocks)
    ]
    for party, outcome in found[0].items():
        assert outcome.n_rows == found[1][party].n_rows
        assert outcome.finding.release.table.equals(found[1][party].finding.release.table)


@pytest.mark.parametrize(("ids", "wrong"), [(40, False), (39, True)])
def test_rows_of_one_id_are_found_in_blocks(tmp_path: Path, ids: int, wrong: bool) -> None:
    cells = {"id": [f"p{min(row, ids - 1)}" for row in range(40)], "note": ["x"] * 40}
    columns = [pa.chunked_array([pa.array(values, pa.string())]) for values in cells.values()]
    rows = in_blocks(Table.of(tuple(cells), columns, ("id",), "the test"), evenly(40, 3), tmp_path / "blocks")
    with fails("E101") if wrong else nullcontext():
        check_persons(rows, "north")


class Pickled:
    """Rows whose kernels travel, as they do to processes."""

    def __init__(self, whole: TableRows) -> None:
        self._whole = whole

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)

    def only(self, columns: Sequence[str], *, ids: bool = False) -> Pickled:
        return Pickled(self._whole.only(columns, ids=ids))

    def parts(self, kernel: Callable[[Table, int], Any]) -> Iterator[Any]:
        return self._whole.parts(pickle.loads(pickle.dumps(kernel)))


def test_kernels_can_be_pickled() -> None:
    wanted, own = task(("north", "south"), k=2), table(people(40, 5))
    coding = Coding.of(own, wanted, "north")
    counter = RowCounter.counted(own, coding, wanted)
    travelled = RowCounter.counted(Pickled(own), coding, wanted)
    assert (counter.tuples == travelled.tuples).all()
    cells = np.where(np.arange(len(counter.weights)) % 3 > 0, np.arange(len(counter.weights)), -1)
    packed = ReleasedRows.of(own, coding, counter, cells, 1).all()
    assert (packed == ReleasedRows.of(Pickled(own), coding, counter, cells, 1).all()).all()
    assert len(packed) == int(counter.weights[cells >= 0].sum())
