"""Queries of one dataset: right answers, decisions that tell nothing, and auditors that outlive their process."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mining.data.tables import Table
from party.config import DatasetSection
from party.data.shared_sources import check_sources
from party.node.logs import open_log
from party.services.queries import dataset as module
from party.services.queries.dataset import DatasetQueries, Outcome
from party.services.queries.kept import KeptAuditors
from party.services.queries.language import parse
from party.services.queries.log import QueryLog
from party.services.queries.policy import QueriesSection, check_query
from tests.errors import fails
from tests.examples import examples

pytestmark = pytest.mark.turn(3)

POLICY: dict[str, Any] = {
    "public": ("age", "city"),
    "columns": {"salary": ("sum", "max", "min"), "bonus": ("max", "min")},
    "min_size": 2,
}


def staff(salaries: list[Any], **more: list[Any] | None) -> Table:
    """The table; columns that are None are left out."""
    n = len(salaries)
    columns: dict[str, list[Any] | None] = {
        "id": [f"p{i}" for i in range(n)],
        "age": list(range(n)),
        "city": ["Bern", "Basel"] * (n // 2) + ["Bern"] * (n % 2),
        "salary": salaries,
        "bonus": [7 * i % 5 for i in range(n)],
        "ill": [int(i % 3 == 0) for i in range(n)],
    } | more
    texts = {name: list(map(str, each)) for name, each in columns.items() if each is not None}
    cells = (pa.chunked_array([pa.array(each, pa.string())]) for each in texts.values())
    return Table.of(list(texts), cells, ("id",) if "id" in texts else (), "staff")


SALARIES = [100, 250, 75, 310, 120, 99, 180, 260]


class Asked:
    """The queries of one dataset, as a node holds them between its start and its end."""

    def __init__(self, folder: Path, data: Table, **policy: Any) -> None:
        self.data, self.log = data, QueryLog.open(folder / "queries.db")
        self.kept = KeptAuditors(folder / "queries")
        section = QueriesSection(**(POLICY | policy))
        self.queries = DatasetQueries("staff", section, self.log, self.kept, open_log("north", io.StringIO()))

    def __call__(self, text: str) -> Outcome:
        return self.queries.ask(self.data, parse(text), text, "analyst")

    def decisions(self) -> list[tuple[Any, ...]]:
        return self.log.connection.execute("SELECT number, query, reason, value, rank FROM decisions").fetchall()


@contextmanager
def asking(folder: Path, data: Table | None = None, **policy: Any) -> Iterator[Asked]:
    """Opens what is in the folder, and closes it at the end."""
    asked = Asked(folder, staff(SALARIES) if data is None else data, **policy)
    try:
        yield asked
    finally:
        asked.log.close()


def test_answers_are_those_of_the_data(tmp_path: Path) -> None:
    with asking(tmp_path) as ask:
        assert ask("sum(salary) where age < 4").answer == 735
        assert ask("avg(salary) where city = 'Bern'").answer == 475 / 4
        assert ask("sum(salary)").answer == sum(SALARIES)
        assert ask("max(bonus)").answer == 4
        assert ask("max(bonus) where age >= 1").reason == "disclosure"  # an answer below 4 would tell the other
        assert [number for number, *_ in ask.decisions()] == [1, 2, 3, 4, 5]
        assert [rank for *_, rank in ask.decisions()] == [None, 1, 2, None, None]


def test_an_answer_hangs_on_the_sum_alone(tmp_path: Path) -> None:
    """Whoever sees how rounded cells add up sees more than their sum."""
    with asking(tmp_path, staff(["0.1", "0.2", "0.15", "0.15", "1e290", "-1e290", "3e-290"])) as ask:
        assert ask("sum(salary) where age < 2").answer == ask("sum(salary) where age in (2, 3)").answer == 0.3
        assert ask("sum(salary) where age > 3").answer == 3e-290
        assert ask("avg(salary) where age < 4").answer == 0.15


def test_what_would_tell_a_value_is_denied_with_the_reason(tmp_path: Path) -> None:
    with asking(tmp_path, max_queries=4) as ask:
        assert ask("sum(salary) where age < 3").answer == 425
        assert ask("sum(salary) where age < 2").reason == "disclosure"
        assert ask("sum(salary) where age = 5").reason == "size"
        assert ask("sum(salary) where age > 99").reason == "size"
        assert ask("max(salary)").reason == "class"
        assert ask("avg(salary) where age in (0, 1, 2)").answer == 425 / 3  # known already
        assert ask("sum(salary) where age < 5").answer == 855
        assert ask("sum(salary) where age in (3, 4)").answer == 430  # the difference, known too
        assert ask("sum(salary) where age in (3, 4)").reason == "too many"


def test_answers_take_no_more_of_the_disk_than_they_may(tmp_path: Path) -> None:
    """Without a limit on their number, the same query may be asked for ever, and each answer keeps its records."""
    text = "sum(salary) where age >= 3"
    with asking(tmp_path) as ask:
        assert ask(text).answer == sum(SALARIES[3:])
        size = ask.log.answers("staff").size
        ask.queries.policy = ask.queries.policy.model_copy(update={"max_disk": 3 * size})
        for _ in range(2):
            assert ask(text).reason is None
        assert [ask(each).reason for each in (text, "min(bonus) where age >= 3")] == ["too many"] * 2
        assert ask.log.answers("staff") == (3, 3 * size)
    with asking(tmp_path) as ask:  # after a start, with the limit that there is by default
        assert ask(text).reason is None
        ask.queries.policy = ask.queries.policy.model_copy(update={"max_disk": 4 * size})
        assert ask(text).reason == "too many"


def test_counts_are_bounded_by_size_and_overlap(tmp_path: Path) -> None:
    columns = {"ill": ("count",)}
    with asking(tmp_path, columns=columns, records=True, min_size=3, max_overlap=1) as ask:
        assert ask("count(*) where age < 3").answer == 3
        assert ask("count(*) where age < 2").reason == "size"
        assert ask("count(*) where age < 6").reason == "size"  # leaves out two
        assert ask("count(*) where age < 4").reason == "overlap"
        assert ask("count(ill) where age < 4").answer == 2
        assert ask("count(ill) where age between 2 and 5").reason == "overlap"
        assert ask("count(ill) where age between 3 and 6").answer == 2
        query = parse("sum(ill)")
        with fails("E300", party="north"):
            check_query(ask.queries.policy, query.function, query.column, query.named, "analyst", "north")


def test_cells_that_are_empty_are_in_no_set(tmp_path: Path) -> None:
    with asking(tmp_path, staff([100, "", 75, "", 120, 99, 180, 260])) as ask:
        assert ask("avg(salary) where age < 4").reason is None
        assert ask("sum(salary) where age < 2").reason == "size"
        assert ask("avg(salary) where age < 5").reason == "disclosure"


SETS = st.lists(st.sets(st.integers(0, 5), min_size=1), min_size=1, max_size=8)
VALUES = st.lists(st.integers(0, 9), min_size=6, max_size=6).filter(lambda values: len(set(values)) > 2)


def text_of(function: str, chosen: set[int]) -> str:
    return f"{function}(salary) where age in ({', '.join(map(str, sorted(chosen)))})"


@examples(10, 25)
@given(VALUES, VALUES, SETS, st.sampled_from(["sum", "max", "min"]), st.booleans())
def test_denials_tell_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[int],
    second: list[int],
    sets: list[set[int]],
    function: str,
    restart: bool,
) -> None:
    """As long as two databases have given the same answers, they decide the same, also when a node is started anew."""
    told: list[list[tuple[Any, Any]]] = []
    for values in (first, second):
        folder, outcomes = tmp_path_factory.mktemp("node"), []
        half = len(sets) // 2 if restart else len(sets)
        for part in (sets[:half], sets[half:]):
            with asking(folder, staff(values)) as ask:
                for chosen in part:
                    found = ask(text_of(function, chosen))
                    outcomes.append((found.reason, found.answer))
                    if found.reason is None:
                        exact = {"sum": sum, "max": max, "min": min}[function](values[i] for i in chosen)
                        assert found.answer == exact
        told.append(outcomes)
    for (reason, answer), (other_reason, other_answer) in zip(*told, strict=True):
        assert reason == other_reason
        if answer != other_answer:
            break


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sets(st.integers(0, 6), min_size=1), max_size=20), st.randoms(use_true_random=False))
def test_whoever_solves_for_values_finds_none(
    tmp_path_factory: pytest.TempPathFactory, sets: list[set[int]], random: Any
) -> None:
    """The adversary: exact elimination over all answers, of sums and averages alike."""
    rows: list[list[Fraction]] = []
    with asking(tmp_path_factory.mktemp("node"), staff(SALARIES[:7])) as ask:
        for chosen in sets:
            found = ask(text_of(random.choice(["sum", "avg"]), chosen))
            if found.reason is None:
                rows.append([Fraction(int(i in chosen)) for i in range(7)])
    assert all(sum(cell != 0 for cell in row) > 1 for row in reduced(rows))


def test_auditors_are_rebuilt_from_the_log_and_from_kept_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_RANK", 3)
    monkeypatch.setattr(module, "KEEP_EVERY", 2)
    rng, n = np.random.default_rng(5), 24
    data = staff(rng.integers(0, 1000, n).tolist())
    texts = [text_of("sum", set(np.flatnonzero(rng.random(n) < 0.4).tolist())) for _ in range(40)]
    with asking(tmp_path / "whole", data) as ask:
        expected = [ask(text) for text in texts]
    assert {outcome.reason for outcome in expected} == {None, "disclosure"}
    files = []
    for damage in ("none", "lost", "cut", "foreign"):
        folder, found = tmp_path / damage, []
        for start in range(0, 40, 8):
            with asking(folder, data) as ask:
                found += [ask(text) for text in texts[start : start + 8]]
            for file in (folder / "queries").iterdir():
                files.append(file.name)
                assert file.stat().st_mode & 0o077 == 0
                if damage == "lost":
                    file.unlink()
                elif damage == "cut":
                    file.write_bytes(file.read_bytes()[:-9])
                elif damage == "foreign":
                    file.write_bytes(bytes(16) + file.read_bytes()[16:])
        assert found == expected, damage
    assert set(files) == {"1.auditor"}


def test_a_log_from_a_copy_is_not_believed_to_know_what_the_file_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEPT_RANK", 1)
    monkeypatch.setattr(module, "KEEP_EVERY", 1)
    with asking(tmp_path) as ask:
        assert ask("sum(salary) where age < 3").reason is None
    with asking(tmp_path) as ask:
        ask.log.connection.execute("DELETE FROM decisions")
        assert ask("sum(salary) where age < 2").reason is None


def test_overlap_is_known_after_a_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_RANK", 1)
    monkeypatch.setattr(module, "KEEP_EVERY", 1)
    for text, reason in (
        ("sum(salary) where age < 3", None),
        ("sum(salary) where age between 1 and 3", "overlap"),
        ("sum(salary) where age between 2 and 4", None),
        ("sum(salary) where age in (0, 2, 3)", "overlap"),
    ):
        with asking(tmp_path, max_overlap=1, overlap_for="all", min_size=3) as ask:
            assert ask(text).reason == reason


def test_without_ids_changed_data_are_refused_and_new_rows_are_new_records(tmp_path: Path) -> None:
    with asking(tmp_path, staff(SALARIES, id=None)) as ask:
        assert ask("sum(salary) where age < 3").answer == 425
        ask.data = staff([*SALARIES, 500, 600], id=None)
        assert ask("sum(salary) where age in (2, 8)").answer == 575
        assert ask("sum(salary) where age in (2, 8, 9)").reason == "disclosure"
    for salaries, more in (
        (SALARIES, {}),
        ([*SALARIES[:3], 1, *SALARIES[4:], 500, 600], {}),
        ([*SALARIES, 600, 500], {}),
        ([*SALARIES, 500, 600], {"age": [*range(9), 99]}),
    ):
        with (
            asking(tmp_path, staff(salaries, id=None, **more)) as ask,
            fails("E100"),
        ):
            ask("sum(salary)")
    unasked = staff([*SALARIES, 500, 600], id=None, ill=[1] * 10)
    with asking(tmp_path, unasked) as ask:  # of columns that nobody may name, nothing was told
        assert ask("sum(salary) where age in (2, 8, 9)").reason == "disclosure"
        assert ask("max(bonus)").reason is None
    with asking(tmp_path, unasked, public=("age", "city", "ill"), columns={"salary": ("sum",)}) as ask:
        assert ask("sum(salary) where ill = 1 and age < 3").answer == 425
    other = staff([*SALARIES, 500, 600], id=None)
    with (
        asking(tmp_path, other, public=("age", "city", "ill")) as ask,
        fails("E100"),
    ):
        ask("sum(salary)")


def test_with_ids_changed_values_are_new_ones_and_others_are_known_again(tmp_path: Path) -> None:
    with asking(tmp_path) as ask:
        assert ask("sum(salary) where age < 3").answer == 425
    moved = staff(SALARIES[::-1], id=[f"p{i}" for i in range(8)][::-1], age=list(range(8))[::-1])
    with asking(tmp_path, moved) as ask:
        assert ask("sum(salary) where age < 2").reason == "disclosure"
        assert ask("sum(salary) where age < 3").answer == 425
    raised = staff([130, *SALARIES[1:]])
    with asking(tmp_path, raised) as ask:
        assert ask("sum(salary) where age < 3").answer == 455
        assert ask("sum(salary) where age in (1, 2)").reason == "disclosure"  # as the first value would follow
    gone = staff(SALARIES[1:], id=[f"p{i}" for i in range(1, 8)], age=list(range(1, 8)))
    with asking(tmp_path, gone) as ask:
        assert ask("sum(salary) where age < 3").reason == "disclosure"  # it would tell who has left
    again = staff([100.0, *SALARIES[1:]])
    with asking(tmp_path, again) as ask:
        assert ask("sum(salary) where age < 3").answer == 425
    with (
        asking(tmp_path, staff(SALARIES, id=None)) as ask,
        fails("E100"),
    ):
        ask("sum(salary)")
    with asking(tmp_path / "places", staff(SALARIES, id=None)) as ask:
        assert ask("sum(salary)").reason is None
    with asking(tmp_path / "places") as ask, fails("E100"):
        ask("sum(salary)")
    with (
        asking(tmp_path, staff(SALARIES, id=["p0"] * 8)) as ask,
        fails("E101"),
    ):
        ask("sum(salary)")


CHANGES = st.lists(
    st.tuples(
        st.sets(st.integers(0, 5), min_size=2),  # who is asked about
        st.none() | st.tuples(st.integers(0, 5), st.integers(0, 9)),  # whose value is another from now on
        st.sets(st.integers(0, 5), max_size=1),  # who is not there meanwhile
    ),
    min_size=1,
    max_size=14,
)


@settings(max_examples=40, deadline=None)
@given(CHANGES, st.booleans())
def test_no_value_of_any_time_follows_from_changing_data(
    tmp_path_factory: pytest.TempPathFactory, changes: list[Any], restart: bool
) -> None:
    """The adversary knows whose value has changed, and solves for the values that people have and have had."""
    folder, values = tmp_path_factory.mktemp("node"), [1, 2, 3, 4, 5, 6]
    met: dict[tuple[int, int], int] = {}
    rows: list[set[int]] = []
    with contextlib.ExitStack() as stack:
        ask = stack.enter_context(asking(folder))
        for chosen, change, absent in changes:
            if change is not None:
                values[change[0]] = change[1] + 10 * change[0]  # different people, different values
            there = [i for i in range(6) if i not in absent]
            ask.data = staff([values[i] for i in there], id=[f"p{i}" for i in there], age=there)
            if restart:
                stack.close()
                ask = stack.enter_context(asking(folder, ask.data))
            found = ask(text_of("sum", chosen))
            if found.reason is None:
                asked = [i for i in there if i in chosen]
                assert found.answer == sum(values[i] for i in asked)
                rows.append({met.setdefault((i, values[i]), len(met)) for i in asked})
    matrix = [[Fraction(int(i in row)) for i in range(len(met))] for row in rows]
    assert all(sum(cell != 0 for cell in row) > 1 for row in reduced(matrix))


@pytest.mark.parametrize("restart", [False, True])
def test_a_change_tells_no_maximum_and_no_count(tmp_path: Path, restart: bool) -> None:
    """Who knows that a value has changed knows that it is not the one from before."""
    policy: dict[str, Any] = {"columns": {"salary": ("max",), "ill": ("count",)}, "max_overlap": 1}
    bits = [0, 1, 0, 1, 0, 1, 0, 1]
    with contextlib.ExitStack() as stack:
        ask = stack.enter_context(asking(tmp_path, staff([9, 8, *SALARIES[2:]], ill=bits), **policy))
        assert ask("max(salary) where age < 2").answer == 9
        assert ask("count(ill) where age < 2").answer == 1
        changed = staff([8, 7, *SALARIES[2:]], ill=[1, *bits[1:]])
        if restart:
            stack.close()
            ask = stack.enter_context(asking(tmp_path, changed, **policy))
        ask.data = changed
        assert ask("max(salary) where age < 2").reason == "disclosure"
        assert ask("count(ill) where age < 2").reason == "overlap"
        assert ask("count(ill) where age in (0, 2)").answer == 1
        assert ask("max(salary) where age in (2, 3)").answer == 310


def reduced(rows: list[list[Fraction]]) -> list[list[Fraction]]:
    """The reduced row echelon form."""
    done: list[list[Fraction]] = []
    for column in range(len(rows[0]) if rows else 0):
        at = next((row for row in rows if row[column]), None)
        if at is not None:
            rows.remove(at)
            at = [cell / at[column] for cell in at]
            rows, done = ([_less(row, at, column) for row in part] for part in (rows, done))
            done.append(at)
    return done


def _less(row: list[Fraction], by: list[Fraction], column: int) -> list[Fraction]:
    return [a - row[column] * b for a, b in zip(row, by, strict=True)]


def test_a_fault_after_the_log_was_written_is_made_up_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer may have left or not: it counts as told."""
    with asking(tmp_path) as ask:
        with monkeypatch.context() as patch:
            patch.setattr(module.ColumnAuditor, "answer", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                ask("sum(salary) where age < 3")
        assert ask("sum(salary) where age < 2").reason == "disclosure"


def dataset(**queries: Any) -> DatasetSection:
    return DatasetSection.model_validate(
        {"name": "staff", "kind": "table", "source": "staff.csv", "format": "csv", "queries": POLICY | queries}
    )


@pytest.mark.parametrize(
    ("queries", "words"),
    [
        ({"min_size": 1}, "greater than or equal to 2"),
        ({"columns": {}}, "nothing may be asked"),
        ({"columns": {"age": ["sum"]}}, "'age' is public"),
        ({"columns": {"ill": ["count"]}}, "the column 'ill' may be counted: set max_overlap"),
        ({"records": True}, "records may be counted: set max_overlap"),
        ({"columns": {"ill": ["count", "sum"]}, "max_overlap": 1}, "zeros and ones"),
        ({"columns": {"salary": []}}, "names nothing"),
        ({"columns": {"salary": ["sum", "sum"]}}, "twice"),
        ({"columns": {"salary": ["median"]}}, "Input should be"),
        ({"max_overlap": 3}, "protect no value"),
        ({"known": 1}, "known and overlap_for mean nothing without max_overlap"),
        ({"overlap_for": "all"}, "known and overlap_for mean nothing without max_overlap"),
        ({"public": ["age", "age"]}, "twice"),
    ],
)
def test_rules_that_protect_nothing_are_refused(queries: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        dataset(**queries)


def test_the_policy_names_what_it_allows() -> None:
    found = dataset(coordinators=["analyst"]).queries
    assert found is not None
    for text, who in (
        ("sum(salary)", "hub"),
        ("sum(age)", "analyst"),
        ("sum(bonus)", "analyst"),
        ("sum(salary) where bonus = 1", "analyst"),
        ("count(*)", "analyst"),
    ):
        query = parse(text)
        with fails("E300"):
            check_query(found, query.function, query.column, query.named, who, "north")


def section(queries: dict[str, Any] | None, **more: Any) -> DatasetSection:
    named = {"name": "staff", "kind": "table", "source": "staff.csv", "format": "csv", "queries": queries}
    return DatasetSection.model_validate(named | more)


def test_no_two_datasets_tell_of_the_same_column_of_a_source() -> None:
    """Each has its own auditors, and both together would tell a value that neither does."""
    salaries, bonuses = ({"public": ["age"], "columns": {name: ["sum"]}, "min_size": 2} for name in ("salary", "bonus"))
    records = {"public": ["age"], "records": True, "min_size": 2, "max_overlap": 1}
    check_sources([section(name=f"staff{at}", queries=each) for at, each in enumerate((salaries, bonuses, records))])
    check_sources([section(queries=salaries), section(queries=salaries, source="others.csv")])
    check_sources([section(queries=salaries), section(queries=None)])
    for first, second in (
        (salaries, salaries),
        (bonuses, salaries | {"public": ["bonus"]}),
        (salaries | {"public": ["bonus"]}, bonuses),
        (records, records),
    ):
        with fails("E100"):
            check_sources([section(queries=first), section(name="again", queries=second, source="./staff.csv")])


def test_no_two_datasets_release_one_source() -> None:
    """Releases are counted by dataset, so two datasets would let twice as many leave."""
    rules = {"columns": {"age": ["quasi_identifiers"]}, "min_k": 3, "algorithms": ["mondrian"]}
    check_sources([section(None, anonymization=rules), section(None, anonymization=rules, source="others.csv")])
    check_sources([section(None, anonymization=rules), section(None)])
    with fails("E100"):
        check_sources([section(None, anonymization=rules), section(None, name="again", anonymization=rules)])


def test_one_database_is_one_source_however_its_path_is_written() -> None:
    rules = {"columns": {"age": ["quasi_identifiers"]}, "min_k": 3, "algorithms": ["mondrian"]}
    read = {"format": "sql", "query": "SELECT * FROM staff", "anonymization": rules}
    paths = ("sqlite:///staff.db", "sqlite:///./staff.db")
    with fails("E100"):
        check_sources([section(None, name=f"staff{at}", source=path, **read) for at, path in enumerate(paths)])
