"""Audited queries as people use them: a node and `comine query` as processes, and nodes that are killed."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from tests.integration.processes import Organisations, Ran, comine, command
from tests.party.services.queries.staff import DATASET, STAFF


@pytest.fixture
def north(tmp_path: Path) -> Iterator[Organisations]:
    """A node with the table of the staff; not started."""
    organisations = Organisations.create(tmp_path, {"north": [["milk"]]})
    (tmp_path / "staff.csv").write_text(STAFF)
    file = tmp_path / "north.toml"
    file.write_text(file.read_text() + DATASET)
    try:
        yield organisations
    finally:
        organisations.stop()


def query(at: Organisations, *arguments: str) -> Ran:
    return command("query", *arguments, cwd=at.folder)


def decisions(at: Organisations) -> list[tuple[int, str, str]]:
    with closing(sqlite3.connect(at.folder / "state/north/queries.db")) as connection:
        return connection.execute("SELECT number, query, reason FROM decisions ORDER BY number").fetchall()


def test_queries_from_the_command_line(north: Organisations) -> None:
    north.start()
    ran = query(north)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "dataset\tcolumn\tmay be asked\tconditions on\trecords",
        "staff\tsalary\tsum, max\tage, city\tat least 2",
        "staff\till\tcount\tage, city\tat least 2, counts share at most 1",
    ]
    ran = comine("query", "avg(salary) where city = 'Bern'", "--node", "north", "--dataset", "staff", cwd=north.folder)
    assert (ran.code, ran.out, ran.err) == (0, "307.5\n", "")
    assert query(north, "sum(salary) where age < 30").out == "770\n"
    ran = query(north, "sum(salary) where age < 22")
    assert (ran.code, ran.out) == (30, "")
    assert ran.sentence == (
        "comine: north denies the query: it is about too few records, or a count of records leaves out too few "
        "(E300; comine explain E300)"
    )
    ran = query(north, "max(salary)", "--json")
    assert ran.code == 30
    assert json.loads(ran.out) == {
        "schema": "comine.query/1",
        "node": "north",
        "dataset": "staff",
        "query": "max(salary)",
        "number": 4,
        "answer": None,
        "denied": "class",
    }
    ran = query(north, "count(ill) where city = 'Basel'", "--json")
    assert (ran.code, json.loads(ran.out)["answer"], ran.err) == (0, 2.0, "")
    assert json.loads(query(north, "--json").out) == {
        "schema": "comine.queries/1",
        "node": "north",
        "datasets": [
            {
                "name": "staff",
                "public": ["age", "city"],
                "columns": {"ill": ["count"], "salary": ["sum", "max"]},
                "records": False,
                "min_size": 2,
                "max_overlap": 1,
                "overlap_for": "counts",
                "max_queries": None,
            }
        ],
    }
    for arguments, code, words in (
        (["sum(salary) order by age"], 2, "the query lacks where, or the end at character 13"),
        (["sum(id)"], 30, "lets only 'salary' and 'ill' be aggregated, not 'id' (rule columns)"),
        (["sum(salary)", "--dataset", "baskets"], 30, "lets 'hub' ask nothing of a dataset 'baskets'"),
        (["sum(salary)", "--node", "east"], 10, "the federation has no party 'east', only north"),
    ):
        ran = query(north, *arguments)
        assert ran.code == code
        assert words in ran.sentence


def test_no_answer_names_a_place_on_the_machine_of_a_node(north: Organisations) -> None:
    """Whatever is wrong with the file of a dataset: where it is, and what it is called, is nobody's business."""
    north.start()
    staff = north.folder / "staff.csv"
    for spoil in (
        staff.unlink,
        lambda: staff.write_bytes(b"id,age\xff\n"),
        lambda: staff.write_text(STAFF + "1,2\n"),
        lambda: staff.write_text("id\n1\n"),
        lambda: staff.write_text(""),
        lambda: staff.write_text(STAFF + '"'),
    ):
        spoil()
        ran = query(north, "max(salary)")
        assert (ran.code, ran.out) == (10, "")
        assert str(north.folder) not in ran.err
        assert "staff.csv" not in ran.err


@pytest.mark.slow
def test_what_was_answered_outlives_a_kill(north: Organisations) -> None:
    """Whatever an asker has seen is in the log of the next node, and its auditors go on from there."""
    rng, ages = np.random.default_rng(7), [line.split(",")[1] for line in STAFF.splitlines()[1:]]
    asked = [
        f"sum(salary) where age in ({', '.join(age for age in ages if rng.random() < 0.5) or '0'})" for _ in range(60)
    ]
    seen: dict[str, str] = {}

    def ask(texts: list[str]) -> None:
        for text in texts:
            ran = comine("query", text, "--json", cwd=north.folder)
            if ran.code not in (0, 30):
                return  # the node is gone
            told = json.loads(ran.out)
            seen[told["number"]] = told["query"]

    for start in (0, 20, 40):
        north.start()
        asker = Thread(target=ask, args=(asked[start : start + 20],))
        asker.start()
        before = len(seen)
        while asker.is_alive() and len(seen) < before + 2:
            asker.join(0.05)
        north.nodes["north"].send(signal.SIGKILL)
        asker.join()
        north.nodes["north"].kill()
    log = decisions(north)
    assert [number for number, *_ in log] == list(range(1, len(log) + 1))
    assert {number: text for number, text, _ in log if number in seen} == seen
    answered = [text for _, text, reason in log if not reason]
    assert answered
    north.start()
    for text in answered:
        assert query(north, text).code == 0  # known, as before
    assert query(north, answered[0].replace("sum", "max")).code == 30
    rows = np.array(
        [[f" {age}," in text.replace("(", " ").replace(")", ",") for age in ages] for text in answered], float
    )
    for record in np.eye(len(ages)):
        assert np.linalg.matrix_rank(np.vstack([rows, record])) > np.linalg.matrix_rank(rows)
