"""From a job specification to the public parameters of the algorithm that runs it."""

from __future__ import annotations

from typing import Literal

from jobs.spec import JobSpec
from mining.joint.parameters import HorizontalMining


def horizontal_mining(spec: JobSpec) -> HorizontalMining:
    """The public parameters of joint mining, as the specification gives them."""
    given = spec.itemsets
    return HorizontalMining(
        min_support=given.min_support,
        learners=spec.learners,
        merger=spec.job.parties[0],
        max_length=given.max_length,
        strategy=given.strategy,
        prefer=given.prefer,
        thin=given.thin,
        universe=_universe(spec),
        catalogue=given.catalogue,
        union=given.union,
        lambda_=given.lambda_,
        max_candidates=given.max_candidates,
        bound=spec.union.bound,
    )


def _universe(spec: JobSpec) -> Literal["frequent-items", "all-items", "catalogue"]:
    if spec.itemsets.catalogue is not None:
        return "catalogue"
    return "all-items" if spec.itemsets.universe == "all-items" else "frequent-items"
