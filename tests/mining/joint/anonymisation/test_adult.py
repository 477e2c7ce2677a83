"""The Adult table, 30,162 rows, divided by rows or by columns: the node and the loss of the table in one place."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest

from mining.data.formats.table_readers import table_from_arrow
from mining.joint.anonymisation.parameters import Carried, QuasiIdentifier
from tests.anonymize.fulldomain.cases import ADULT, adult_hierarchy
from tests.examples import in_turn
from tests.mining.joint.anonymisation.anonymisation_world import PARTIES, adult, joint, task
from tests.mining.joint.anonymisation.vertical_anonymisation_world import joint as joint_columns

Node = tuple[int, ...]


def by_rows(folder: pathlib.Path, node: Node, released_rows: int, **changes: Any) -> None:
    cells, owners, wanted = adult(folder, **changes)
    found = joint(cells, owners, PARTIES[:3], wanted)["north"]
    assert found.node == node
    assert found.rows is not None
    assert len(found.rows.cells) == released_rows
    if "insider_k" in changes:
        assert found.statistics["left_out"] == 0


def by_columns(folder: pathlib.Path) -> None:
    """Of two parties, k = 5, nothing suppressed: a loss of 0.6250."""
    rows = arrow_csv.read_csv(folder / "adult" / "adult.csv", parse_options=arrow_csv.ParseOptions(delimiter=";"))
    names = (*ADULT, "occupation")
    texts = {name: rows.column(name).cast(pa.string()) for name in names}
    ids = pa.array([str(row) for row in range(rows.num_rows)])
    held = {"north": names[:4], "south": names[4:]}
    tables = {
        party: table_from_arrow(pa.table({"id": ids, **{name: texts[name] for name in own}}), ("id",), "the test")
        for party, own in held.items()
    }
    quasi = tuple(QuasiIdentifier(name, "tree", adult_hierarchy(folder / "adult", name)) for name in ADULT)
    wanted = replace(
        task(PARTIES[:2], k=5),
        quasi_identifiers=quasi,
        carried=(Carried("occupation", "sensitive", "tree", None, 20),),
    )
    found = joint_columns({}, {}, PARTIES[:2], wanted, tables=tables)
    for release in found.values():
        assert release.node == (0, 4, 1, 2, 3, 2, 0, 0)
        assert release.rows is not None
        assert len(release.rows.cells) == 30_162
        left, lost = release.rows.cells, 0.0
        for each, level in reversed(list(zip(quasi, release.node, strict=True))):
            left, labels = np.divmod(left, len(each.hierarchy.labels[level]))
            lost += float(each.hierarchy.loss(level)[labels].mean()) / len(quasi)
        assert lost == pytest.approx(0.6250, abs=5e-5)


CASES: dict[str, Callable[[pathlib.Path], None]] = {
    "columns": by_columns,
    "the node alone": partial(
        by_rows,
        node=(0, 3, 0, 2, 2, 1, 1, 0),
        released_rows=29_656,
        max_suppression=Decimal("0.02"),
        disclose="node",
    ),
    "each verdict": partial(by_rows, node=(0, 4, 1, 2, 3, 2, 0, 0), released_rows=30_162, insider_k=2),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", in_turn(CASES, 3))
def test_the_node_is_that_of_the_whole_table(shared_data: pathlib.Path, case: str) -> None:
    CASES[case](shared_data)
