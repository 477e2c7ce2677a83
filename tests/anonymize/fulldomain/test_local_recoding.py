from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.fulldomain.local_recoding import local_recode
from anonymize.fulldomain.optimal import optimal
from anonymize.models import DistinctDiversity, EntropyDiversity, KAnonymity, Requirements
from link.errors import ConfigurationError
from tests.anonymize.fulldomain.cases import adult, brute_force_nodes, check_published, problems, requirements, toy
from tests.examples import slowly

pytestmark = pytest.mark.turn(3)


@settings(max_examples=100)
@given(problems(), requirements(), st.sampled_from([0.0, 0.1, 0.34]))
def test_classes_stay_valid_and_little_is_suppressed(problem, required, share) -> None:
    table, hierarchies = problem
    allowed = int(share * table.n_rows)
    try:
        release = local_recode(table, hierarchies, required, max_suppression=share)
    except ConfigurationError:
        assert not brute_force_nodes(table, hierarchies, required, allowed)
        return
    check_published(release, table, hierarchies, required)
    assert len(release.suppressed) <= allowed
    assert release.node is None
    assert sum(records for _, records in release.details["rounds"]) == len(release.rows)


def test_the_toy_table_needs_a_second_node() -> None:
    table, hierarchies = toy()
    two = Requirements((KAnonymity(2),))
    release = local_recode(table, hierarchies, two)
    assert len(release.details["rounds"]) > 1
    assert release.cell_loss.mean() < optimal(table, hierarchies, two).cell_loss.mean()
    check_published(release, table, hierarchies, two)


@pytest.mark.data
@pytest.mark.parametrize(
    "model",
    slowly(
        [None, DistinctDiversity(3, "occupation"), EntropyDiversity(3, "occupation")],
        now=[0],
        ids=["k", "l", "entropy"],
    ),
)
def test_adult_loses_less_than_at_one_node(shared_data, model) -> None:
    table, hierarchies = adult(shared_data)
    required = Requirements((KAnonymity(5),) if model is None else (KAnonymity(5), model))
    release = local_recode(table, hierarchies, required)
    assert len(release.suppressed) == 0
    assert release.class_sizes.min() >= 5
    assert release.n_classes > 500
    # The loss of the best node is .1690 with 2,848 records suppressed, .6250 with none.
    assert release.cell_loss.mean() < 0.1690
