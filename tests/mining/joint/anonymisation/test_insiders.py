"""Joint anonymisation withstands coalitions of insiders: parties that put their rows together."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import comine
from anonymize.verifier import verify
from jobs.statement import statement
from tests.errors import fails
from tests.examples import examples
from tests.mining.joint.anonymisation.anonymisation_jobs_world import job
from tests.mining.joint.anonymisation.anonymisation_world import (
    PARTIES,
    divided,
    exhaustive,
    joint,
    others_fit,
    parted,
    people,
    task,
)
from tests.mining.joint.anonymisation.test_anonymisation import SHARES, Split, check_least_loss
from tests.mining.joint.anonymisation.test_mondrian import check
from tests.mining.joint.anonymisation.vertical_anonymisation_world import job as vertical_job

pytestmark = pytest.mark.turn(6)


def coalitions_of(split: Split, insiders: int) -> int:
    """As many insiders as leave somebody else."""
    return min(insiders, len(split[2]) - 1)


@given(divided(10), SHARES, st.integers(2, 4), st.integers(2, 4))
@examples(1, 3)
def test_the_node_is_that_of_the_pooled_rows_under_the_rule(
    split: Split, share: str, insider_k: int, insiders: int
) -> None:
    changes: dict[str, Any] = {"insider_k": insider_k, "insiders": coalitions_of(split, insiders)}
    check_least_loss(split, task(split[2], k=3, max_suppression=Decimal(share), **changes))


@given(divided(8, 40), st.integers(2, 3), st.integers(2, 4))
@examples(1, 3)
def test_the_regions_are_those_of_the_pooled_rows_under_the_rule(split: Split, insider_k: int, insiders: int) -> None:
    wanted = task(split[2], k=3, algorithm="mondrian", insider_k=insider_k, insiders=coalitions_of(split, insiders))
    check(split, wanted)


@given(divided(12, 40), st.sampled_from(("0.1", "0.3")), st.integers(2, 3))
@examples(1, 3)
def test_no_coalition_reads_single_rows_off_the_release(split: Split, share: str, insiders: int) -> None:
    """Counted in the released rows themselves, whose origin the test knows by their notes."""
    cells, owners, parties = split
    cells = {**cells, "note": [f"r{row}" for row in range(len(owners))]}
    wanted = task(parties, k=3, insider_k=2, insiders=coalitions_of(split, insiders), max_suppression=Decimal(share))
    if not exhaustive(cells, owners, wanted):
        return
    rows = joint(cells, owners, parties, wanted)[parties[0]].rows
    assert rows is not None
    parts = np.zeros((int(rows.cells.max(initial=0)) + 1, len(PARTIES)), np.int64)
    origins = owners[[int(note[1:]) for note in rows.carried["note"]]]
    np.add.at(parts, (rows.cells, origins), 1)
    assert others_fit(parts, wanted).all()


def test_two_insiders_as_worked_by_hand() -> None:
    """Of age 1 five rows are north's and south's, and one east's; of age 7 three are of each party.

    Without north's own rows the first class leaves three, without south's four: one insider is no danger. Without both
    parties' rows one is left.
    """
    cells = {
        "age": ["1"] * 6 + ["7"] * 9,
        "town": ["A"] * 15,
        "sex": ["f"] * 15,
        "ill": ["flu"] * 15,
        "note": [""] * 15,
    }
    owners = np.array([0, 0, 0, 1, 1, 2] + [0, 1, 2] * 3)
    for insiders, level in ((1, 0), (2, 3)):
        wanted = task(PARTIES[:3], k=3, insider_k=2, insiders=insiders)
        found = joint(cells, owners, PARTIES[:3], wanted)["east"]
        assert found.node == (level, 0, 0)


def test_the_certificate_and_the_statement_say_it(tmp_path: Path) -> None:
    cells = people(60, 3)
    owners = np.random.default_rng(1).integers(0, 3, 60)
    spec = job(insider_k=2, insiders=2, max_suppression="0.2")
    comine.simulate(spec, parted(cells, owners, PARTIES[:3])).save(tmp_path / "out")
    assert verify(tmp_path / "out").ok
    told = json.loads((tmp_path / "out" / "certificate.json").read_text())
    assert "Without the rows of up to 2 parties that put theirs together the others have none" in told["statement"]
    assert told["parameters"]["insiders"] == 2
    prose = " ".join(statement(spec).exact_prose())
    assert "without the rows of up to 2 parties" in prose
    assert "up to 2 parties that put their rows together find classes in which the others have 2 rows" in prose
    alone = " ".join(statement(job(insider_k=2)).exact_prose())
    assert "two parties that put their rows together may find others' single rows" in alone


@pytest.mark.parametrize(
    ("parties", "changes"),
    [
        (3, {"insiders": 3, "insider_k": 2}),
        (2, {"insiders": 2, "insider_k": 2}),
        (3, {"insiders": 2, "insider_k": 1}),
        (3, {"insiders": 0}),
        (12, {"insiders": 2, "insider_k": 2}),
    ],
)
def test_coalitions_that_are_refused(parties: int, changes: dict[str, Any]) -> None:
    names = [f"party{number}" for number in range(parties)]
    with fails("E100"):
        job(names, **changes)


def test_columns_of_several_parties_have_no_insiders() -> None:
    with fails("E100"):
        vertical_job(PARTIES[:2], insiders=2)
