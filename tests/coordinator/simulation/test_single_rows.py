"""One row of one party, chosen by whoever proposes a job: others see nothing of it but what the statement says.

Whole jobs of each kind run twice, over rows that differ in one cell of one party. How each party ends, in which words,
of whom, and the sizes of all frames are the same; where they are not, the job's statement lists why.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.data import Data
from jobs.fitness import REASONS
from jobs.loading import job_of
from jobs.run import PartyRun
from jobs.spec.job import JobSpec
from jobs.statement import statement
from link.errors import ComineError, outward
from mining.data.formats.table_readers import table_from_arrow
from mining.data.tables import Table
from mining.data.transactions import Transactions
from protos.v1.link_pb2 import Frame
from tests.coordinator.simulation.still_time import InlineExecutor, run_still
from tests.coordinator.simulation.whole_job import run_job
from tests.examples import crossed

pytestmark = pytest.mark.turn(3)

PARTIES: Final = ("north", "south", "east")
ROWS: Final = 12
NOISY: Final = {"model": "distributed", "epsilon": "2", "delta": "0.00001"}
LONG: Final = "x" * 5000
SIGNED: Final = {"comine.v1.Hello", "comine.v1.SignedReceipt"}  # a signature's size varies by itself
Cells = dict[str, list[str]]


class Seen(NamedTuple):
    """What a run shows to others.

    Attributes:
        ends: By party, how its part ended, as others are told.
        frames: By sender, receiver, lane and type the sizes of the frames.
    """

    ends: dict[str, tuple[str, ...]]
    frames: dict[tuple[str, ...], list[int]]


def seen(spec: JobSpec, data: Mapping[str, Data]) -> Seen:
    frames = defaultdict[tuple[str, ...], list[int]](list)

    def observe(frame: Frame) -> None:
        size = 0 if frame.type in SIGNED else len(frame.body)
        frames[frame.sender, frame.receiver, frame.lane, frame.type].append(size)

    ends = run_still(run_job(spec, data, InlineExecutor(), observe=observe))
    return Seen({party: told(party, end) for party, end in ends.items()}, dict(frames))


def told(party: str, end: PartyRun | BaseException) -> tuple[str, ...]:
    if isinstance(end, PartyRun):
        return ("done",)
    assert isinstance(end, ComineError), end
    error = outward(end, party)
    return error.code, error.message, error.blamed(party)


def spec_of(contents: dict[str, Any]) -> JobSpec:
    named = {"name": "test", "parties": list(PARTIES), "dataset": "people", "deadline": "30m", **contents["job"]}
    return job_of({**contents, "job": named}, "the test", Path())


# -- rows of items ----------------------------------------------------------------------------------------------------
ITEMS: Final[dict[str, dict[str, Any]]] = {
    "union": {"strategy": "level-wise"},
    "one-shot": {"strategy": "one-shot"},
    "all items": {"strategy": "level-wise", "universe": "all-items"},
    "hidden": {"strategy": "level-wise", "universe": "hidden"},
    "catalogue": {"strategy": "level-wise", "universe": "items.txt", "catalogue": ["a", "b", "c"]},
    "noise": {"privacy": NOISY, "max_length": 1},
    "noise, catalogue": {"privacy": NOISY, "max_length": 1, "universe": "items.txt", "catalogue": ["a", "b", "c"]},
}


def items_job(kind: str) -> JobSpec:
    settings = dict(ITEMS[kind])
    privacy = {"privacy": settings.pop("privacy")} if "privacy" in settings else {}
    return spec_of({"job": {"task": "itemsets"}, "itemsets": {"min_support": "0.3", **settings}, **privacy})


def baskets(holder: str, row: int, more: str) -> dict[str, Data]:
    rows = {party: [["a", "b"], ["a", "c"], ["b"]] * (ROWS // 3) for party in PARTIES}
    if more:
        rows[holder][row] = [*rows[holder][row], more]
    return {party: Transactions.from_rows(each) for party, each in rows.items()}


@cache
def plain_items(kind: str) -> Seen:
    return seen(items_job(kind), baskets("north", 0, ""))


@pytest.mark.parametrize("kind", ["union", "one-shot", "catalogue", "noise, catalogue"])
@given(holder=st.sampled_from(PARTIES), row=st.integers(0, ROWS - 1), more=st.sampled_from(["rare", "d" * 100]))
@settings(max_examples=2)
def test_a_rare_item_shows_nowhere(kind: str, holder: str, row: int, more: str) -> None:
    assert seen(items_job(kind), baskets(holder, row, more)) == plain_items(kind)


@pytest.mark.parametrize("kind", ["all items", "hidden"])
def test_where_all_items_are_united_a_rare_one_does_not_show_whose_it_is(kind: str) -> None:
    by_holder = [seen(items_job(kind), baskets(holder, 5, "rare")) for holder in ("south", "east")]
    assert by_holder[0] == by_holder[1]


@pytest.mark.parametrize(("kind", "holder"), crossed(["catalogue", "noise", "noise, catalogue"], PARTIES))
def test_a_name_that_nobody_may_tell_shows_nowhere(kind: str, holder: str) -> None:
    assert seen(items_job(kind), baskets(holder, 3, LONG)) == plain_items(kind)


def test_a_name_over_a_limit_shows_and_not_whose_it_is() -> None:
    spec = items_job("all items")
    by_holder = [seen(spec, baskets(holder, row, LONG)) for holder, row in zip(PARTIES, (0, 5, 11), strict=True)]
    assert all(each.ends == by_holder[0].ends for each in by_holder)
    ends = set(by_holder[0].ends.values())
    assert {(code, blamed) for code, _, blamed in ends} == {("E104", "")}
    assert all(party not in sentence for _, sentence, _ in ends for party in PARTIES)
    assert "whether some party, and not which one, has more rows or items" in " ".join(statement(spec).exact_prose())


# -- tables -----------------------------------------------------------------------------------------------------------
COLUMNS: Final = {
    "town": {"values": ["A", "B"]},
    "age": {"cuts": ["40"]},
    "weight": {"low": "0", "high": "100", "steps": 10},
    "height": {"low": "0", "high": "200", "steps": 10},
}
MODELS: Final[dict[str, dict[str, Any]]] = {
    "naive-bayes": {"naive_bayes": {"target": "town", "attributes": ["age", "weight"]}},
    "decision-tree": {"decision_tree": {"target": "town", "attributes": ["age"], "max_depth": 1}},
    "k-means": {"k_means": {"attributes": ["weight", "height"], "k": 2, "max_iterations": 1}},
}


def model_job(task: str, partition: str) -> JobSpec:
    (section,) = MODELS[task].values()
    names = [*section["attributes"], *([section["target"]] if "target" in section else [])]
    contents = {"job": {"task": task, "partition": partition}, **MODELS[task]}
    return spec_of({**contents, "columns": {name: COLUMNS[name] for name in names}})


def cells() -> Cells:
    return {
        "id": [f"p{row}" for row in range(ROWS)],
        "town": [["A", "B"][row % 2] for row in range(ROWS)],
        "age": [str(20 + 5 * row) for row in range(ROWS)],
        "weight": [str(50 + row) for row in range(ROWS)],
        "height": [str(150 + row) for row in range(ROWS)],
        "note": [["x", "y", "z"][row % 3] for row in range(ROWS)],
    }


def table(rows: Cells, names: tuple[str, ...]) -> Table:
    return table_from_arrow(pa.table({name: rows[name] for name in ("id", *names)}), ["id"], "the test")


def rows_at_each(changed: Cells, holder: str) -> dict[str, Data]:
    """The same rows at all parties, with other ids; those of one are changed."""
    names = tuple(name for name in changed if name != "id")
    return {party: table(changed if party == holder else cells(), names) for party in PARTIES}


HELD: Final = {"north": ("town", "note"), "south": ("age", "height"), "east": ("weight",)}


def columns_at_each(changed: Cells) -> dict[str, Data]:
    return {party: table(changed, names) for party, names in HELD.items()}


def with_cell(name: str, row: int, text: str) -> Cells:
    rows = cells()
    rows[name][row] = text
    return rows


def test_a_cell_that_is_no_number_shows_as_an_empty_one() -> None:
    itemsets = {"min_support": "0.3", "max_length": 2, "cuts": {"age": [40], "height": [155]}}
    spec = spec_of({"job": {"task": "itemsets", "partition": "vertical"}, "itemsets": itemsets})
    empty = seen(spec, columns_at_each(with_cell("age", 4, "")))
    assert set(empty.ends.values()) == {("done",)}
    for text in ("?", "forty", "9,5"):
        assert seen(spec, columns_at_each(with_cell("age", 4, text))) == empty


# -- what shows, and is declared --------------------------------------------------------------------------------------
def release(**changes: Any) -> JobSpec:
    contents = {
        "quasi_identifiers": ["age"],
        "sensitive": ["town"],
        "insensitive": ["note"],
        "insider_k": 1,
        "model": {"k": 2},
        "columns": {"town": {"values": ["A", "B"]}, "note": {"most_bytes": 6}},
        "hierarchies": {"age": [[str(20 + 5 * row), "*"] for row in range(ROWS)]},
        **changes,
    }
    return spec_of({"job": {"task": "anonymize"}, "anonymize": contents})


def alignment() -> JobSpec:
    return spec_of(
        {"job": {"task": "align", "partition": "vertical"}, "align": {"mode": "cardinality", "case": "fold"}}
    )


DECLARED: Final[dict[str, tuple[str, Callable[[], JobSpec], Cells]]] = {
    "leaves": ("leaves", release, with_cell("age", 4, "41")),
    "values": ("values", release, with_cell("town", 4, "C")),
    "persons": ("persons", release, with_cell("id", 4, "p5")),
    "ids": ("ids", alignment, with_cell("id", 4, "P5")),
    **{
        f"{task}, {text!r}": ("domains", partial(model_job, task, "horizontal"), with_cell(name, 4, text))
        for task, name in (("naive-bayes", "town"), ("decision-tree", "age"), ("k-means", "weight"))
        for text in ("none", "")
    },
}


def check_declared(spec: JobSpec, data: Mapping[str, Data], key: str, holder: str) -> None:
    """All are told that the holder cannot take part, and no more."""
    (reason,) = (reason for reason in REASONS if reason.key == key)
    assert reason.what in " ".join(statement(spec).exact_prose())
    sentence = f"{holder} cannot take part in this job with its data; the log of {holder} has the reason"
    assert set(seen(spec, data).ends.values()) == {("E101", sentence, holder)}


@pytest.mark.parametrize(("case", "holder"), crossed(DECLARED, PARTIES))
def test_what_shows_of_a_row_is_that_somebody_cannot_take_part(case: str, holder: str) -> None:
    key, make, changed = DECLARED[case]
    check_declared(make(), rows_at_each(changed, holder), key, holder)


@pytest.mark.parametrize(("task", "name"), [("naive-bayes", "town"), ("decision-tree", "age"), ("k-means", "weight")])
def test_of_a_cell_that_a_model_of_columns_does_not_know_no_more_shows_either(task: str, name: str) -> None:
    (holder,) = (party for party, names in HELD.items() if name in names)
    check_declared(model_job(task, "vertical"), columns_at_each(with_cell(name, 4, "none")), "domains", holder)
