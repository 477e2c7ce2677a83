"""The statement of jobs that mine perturbed records, for exactly what they are asked."""

from __future__ import annotations

import pytest

from jobs.statement import statement
from tests.mining.joint.hybrid.hybrid_world import PARTIES, job

SHUFFLE = {"model": "shuffle", "epsilon": "1", "delta": "1e-6", "shufflers": ["south", "east"], "colluding": 2}


def test_local() -> None:
    stated = statement(job(job={"recipients": ["coordinator"]}))
    prose = " ".join(stated.exact_prose())
    assert "north learns a report of every record of each party, perturbed at its party: ε = 4 of a record" in prose
    assert "Collusion: any number of parties: a report has ε = 4 by itself" in prose
    assert "coordinator learns the itemsets that seem most frequent with estimated supports, and N" in prose
    assert "each party's number of records" in prose
    assert "δ" not in prose


def test_shuffled() -> None:
    stated = statement(job(privacy=SHUFFLE))
    prose = " ".join(stated.exact_prose())
    assert "shuffled by south and east, and not whose it is: ε = 1 and δ = 1e-06 of a record" in prose
    assert "reports of the 2 largest parties count for nothing in ε" in prose
    assert "The analyst with all shufflers together sees each party's reports, of at most ε = 8 each" in prose
    assert "none can open one" in prose


@pytest.mark.parametrize("privacy", [{}, SHUFFLE])
def test_who_gets_what_is_declared(privacy: dict[str, object]) -> None:
    declared = {line.label: line for line in statement(job(privacy=privacy)).declared}
    assert declared["records"].recipients == frozenset(PARTIES)
    assert declared["reports"].recipients == {"north"}
    assert declared["candidates"].recipients == declared["estimates"].recipients == {"south", "east"}
    assert declared["estimates"].maximum == 3


def test_rules_and_patterns_are_told() -> None:
    spec = job(
        job={"task": "rules"},
        rules={"min_confidence": "0.5"},
        itemsets={"exclude": ["a*"], "top_k": 4},
        privacy=SHUFFLE,
    )
    prose = " ".join(statement(spec).exact_prose())
    assert "association rules with estimated confidences" in prose
    assert "nothing of items that match 'a*'" in prose
    assert "which reveal the parties' numbers of records" in prose
