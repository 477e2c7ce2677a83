"""Jobs that anonymise columns of several parties: their folder, statement and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import comine
from anonymize.verifier import verify
from jobs.statement import statement
from tests.errors import fails
from tests.mining.joint.anonymisation.anonymisation_jobs_world import certified
from tests.mining.joint.anonymisation.anonymisation_world import PARTIES, people
from tests.mining.joint.anonymisation.vertical_anonymisation_world import COLUMNS, columns_of, job

pytestmark = pytest.mark.turn(3)

CELLS = people(60, 3)
TWO = dict(zip(COLUMNS, ("north", "south", "north", "south", "north"), strict=True))
THREE = dict(zip(COLUMNS, ("north", "south", "north", "east", "south"), strict=True))


@pytest.mark.parametrize(
    ("parties", "changes"),
    [
        (2, {"max_suppression": "0.1", "algorithm": "samarati"}),
        (3, {"model": {"k": 3, "p": 2, "t": {"value": "0.4", "column": "ill"}}, "max_suppression": "0.1"}),
    ],
    ids=["samarati", "models"],
)
def test_the_folder_of_a_release_passes_the_independent_verifier(
    tmp_path: Path, parties: int, changes: dict[str, Any]
) -> None:
    spec = job(PARTIES[:parties], **changes)
    holders = TWO if parties == 2 else THREE
    comine.simulate(spec, columns_of(CELLS, holders, PARTIES[:parties])).save(tmp_path / "out")
    verified = verify(tmp_path / "out")
    assert verified.ok, verified.failures
    assert not verified.unchecked


def test_the_certificate_tells_the_loss_of_the_joined_table(tmp_path: Path) -> None:
    spec = job(PARTIES[:2], max_suppression="0.1")
    comine.simulate(spec, columns_of(CELLS, TWO, PARTIES[:2])).save(tmp_path / "out")
    certified(tmp_path / "out", spec, CELLS)


def test_the_statement_names_all_that_is_opened_and_what_follows() -> None:
    found = statement(job(PARTIES[:2]))
    assert {line.label for line in found.declared} == {
        *("size classes", "intersection", "columns", "local verdicts", "open levels", "losses"),
        *("verdicts", "classes", "joined rows", "release", "steps_kept"),
    }
    suppressing = statement(job(PARTIES[:2], max_suppression="0.1"))
    added = {line.label for line in suppressing.declared} - {line.label for line in found.declared}
    assert added == {"improvements", "bounds", "released rows"}
    told = " ".join(found.exact_prose())
    assert "no count of any class" in told
    assert "whose own published columns tell them apart" in told
    three = " ".join(statement(job(PARTIES[:3])).exact_prose())
    assert "which together read all parties' published parts of all common rows" in three


@pytest.mark.parametrize(
    "changes",
    [
        {"algorithm": "mondrian"},
        {"insider_k": 2},
        {"origin": "shown", "k_site": 2},
        {"align": {"mode": "union"}},
    ],
)
def test_what_means_nothing_for_columns_is_refused(changes: dict[str, Any]) -> None:
    with fails("E100"):
        job(PARTIES[:2], **changes)


def test_a_column_at_two_parties_is_refused() -> None:
    tables = columns_of(CELLS, TWO, PARTIES[:2])
    all_, nothing = (columns_of(CELLS, dict.fromkeys(COLUMNS, who), PARTIES[:2])["south"] for who in ("south", "north"))
    with fails("E100"):
        comine.simulate(job(PARTIES[:2]), {**tables, "south": all_})
    with fails("E100"):
        comine.simulate(job(PARTIES[:2]), {**tables, "south": nothing})
