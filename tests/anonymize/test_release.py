from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymize.fulldomain.local_recoding import local_recode
from anonymize.models import DeltaDisclosure, KAnonymity, Requirements
from anonymize.multidimensional.mondrian import mondrian
from anonymize.release import (
    MASKED,
    Release,
    allowed_suppression,
    check_shown_classes,
    publish,
    recode,
    recoded_cells,
)
from anonymize.roles import Roles
from anonymize.tables import Table
from link.errors import ConfigurationError
from tests.anonymize.fulldomain.cases import check_published, problems, toy
from tests.errors import fails


@given(st.integers(0, 1000), st.integers(1, 10**6))
def test_maximal_suppression(thousandths: int, rows: int) -> None:
    share = thousandths / 1000
    assert allowed_suppression(share, rows) == thousandths * rows // 1000
    assert allowed_suppression(str(share), rows) == thousandths * rows // 1000


def test_maximal_suppression_of_known_tables() -> None:
    assert allowed_suppression(0.02, 30_162) == 603
    for share in (-0.1, 1.01, "2"):
        with fails("E100"):
            allowed_suppression(share, 10)


def test_recoding_at_a_node() -> None:
    table, hierarchies = toy()
    keep = np.ones(8, bool)
    keep[3] = False
    recoded = recode(table, hierarchies, (1, 0), keep)
    assert recoded["age"].to_pylist() == ["20s", "20s", "20s", "30s", "40s", "30s", "50s"]
    assert recoded["zip"].to_pylist() == [code for row, code in enumerate(table.data["zip"].to_pylist()) if row != 3]
    assert recoded["disease"].to_pylist()[:3] == ["HIV", "HIV", "Flu"]


def test_cells_of_levels_of_their_own() -> None:
    table, hierarchies = toy()
    levels = np.array([[0, 1], [MASKED, 0], [2, MASKED]], np.int8)
    cells = recoded_cells(table, hierarchies, levels, np.array([0, 4, 7]))
    assert cells.columns["age"].to_pylist() == ["21", "*", "40-59"]
    assert cells.columns["zip"].to_pylist() == ["114***", "115012", "*"]
    assert cells.loss.tolist() == [[0, 1 / 7], [1, 0], [2 / 7, 1]]
    assert cells.classes(np.array([True, False, True])).tolist() == [0, -1, 1]


def test_published_columns() -> None:
    data = {"id": [1, 2, 3], "q": ["a", "b", "a"], "s": ["x", "y", "z"], "note": ["", None, "n"]}
    table = Table.of(data, Roles(("id",), ("q",), ("s",), ("note",)))
    whole = publish(table, {"q": table.data["q"]}, np.arange(3))
    assert whole.to_pydict() == {"q": ["a", "b", "a"], "s": ["x", "y", "z"], "note": ["", None, "n"]}
    some = publish(table, {"q": table.data["q"].slice(0, 2)}, np.array([2, 1]), np.array([False, True]))
    assert some.to_pydict() == {"q": ["a", "b"], "s": ["z", None], "note": ["n", None]}


def test_sizes_of_classes_leave_blanked_rows_out() -> None:
    table, _ = toy()
    made = Release("any", table.data, np.arange(4), np.array([0, -1, 1, 1]), np.array([1]))
    assert made.n_classes == 2
    assert made.class_sizes.tolist() == [1, 2]
    none = Release("any", table.data, None, None, np.zeros(0, np.int64))
    assert none.n_classes == 0
    assert none.class_sizes.tolist() == []


def test_classes_that_look_alike_are_checked_for_models_that_merging_may_break() -> None:
    table = Table.of({"q": ["a"] * 8, "s": list("xxxxyyyx")}, Roles((), ("q",), ("s",), ()))
    required = Requirements((KAnonymity(1), DeltaDisclosure(0.5, "s"))).fitted(table)
    rows = np.arange(8)
    check_shown_classes(table, required, rows, np.zeros(8, np.int64))
    with fails("E100"):
        check_shown_classes(table, required, rows, np.array([0, 0, 0, 0, 1, 1, 1, 1]))


@given(problems(), st.sampled_from([0.4, 0.7, 1.0]), st.sampled_from(["relaxed", "strict", "local"]))
def test_no_release_fails_a_model_that_is_not_monotone(problem, delta, how) -> None:
    table, hierarchies = problem
    required = Requirements((KAnonymity(2), DeltaDisclosure(delta, "s")))
    try:
        if how == "local":
            release = local_recode(table, hierarchies, required)
        else:
            release = mondrian(table, required, mode=how, hierarchies=hierarchies)
    except ConfigurationError:
        return
    check_published(release, table, hierarchies, required)
