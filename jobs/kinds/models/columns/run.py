"""One party's part in learning a model from columns of the same rows at several parties."""

from __future__ import annotations

from typing import Any, assert_never

from crypto.protocols.comparison.two_party import pairs_of
from jobs.data import Data
from jobs.kinds.alignment.groups import column_groups
from jobs.kinds.alignment.parameters import row_alignment
from jobs.kinds.data import table_rows_of
from jobs.kinds.kind import Resources
from jobs.kinds.models.outcome import found_model
from jobs.kinds.models.parameters import columns_of, model_parameters
from jobs.results.outcome import Outcome
from jobs.spec.job import JobSpec
from link.session import Session
from mining.joint import align
from mining.joint.models import decision_tree, kmeans, naive_bayes, shared_kmeans
from mining.joint.models.aligned import AlignedAttributes, held_attributes
from mining.joint.models.totals import Learnt
from mining.models.decision_tree import TreeParameters
from mining.models.kmeans import KMeansParameters
from mining.models.naive_bayes import NaiveBayesParameters


async def run(session: Session, spec: JobSpec, data: Data, resources: Resources) -> Outcome:
    """As `jobs.kinds.kind.Kind.run`."""
    table = table_rows_of(spec, data, session.me)
    task, common = await session.compute(model_parameters, spec), row_alignment(spec)
    held = await session.compute(held_attributes, table, columns_of(task))
    pairs = pairs_of(session.lane("pairs"))
    placed = (await align.align(session, pairs, table, common, resources.list_limits)).rows
    assert placed is not None  # which only a cardinality does not reveal
    everywhere = common.mode == "intersection"
    aligned = await session.compute(AlignedAttributes.of, table, held, placed, everywhere=everywhere)
    session, groups = session.lane("model"), column_groups(spec)
    found: Learnt[Any]
    match task:
        case NaiveBayesParameters():
            found = await naive_bayes.learn_vertical(session, pairs, aligned, task, spec.learners, groups)
        case TreeParameters():
            found = await decision_tree.learn_vertical(session, pairs, aligned, task, groups)
        case KMeansParameters() if not everywhere:
            found = await shared_kmeans.cluster(session, pairs, aligned, task, spec.compute, groups)
        case KMeansParameters():
            found = await kmeans.cluster_vertical(session, aligned, task, spec.learners, spec.compute)
        case _:
            assert_never(task)
    return found_model(spec, session.me, task, found, strategy_of(spec))


def strategy_of(spec: JobSpec) -> str:
    """What the numbers are made of, in a word."""
    return "distances" if spec.k_means is not None else "products"
