"""From a job specification to the public parameters of mining over rows."""

from __future__ import annotations

from jobs.kinds.itemsets_parameters import decided_rules
from jobs.spec.job import JobSpec
from mining.joint.parameters import HorizontalMining, Universe


def horizontal_mining(spec: JobSpec) -> HorizontalMining:
    """The public parameters of joint mining, as the specification gives them.

    Raises:
        ConfigurationError: The job has a budget that nothing would keep to.
    """
    given = spec.itemsets
    return HorizontalMining(
        min_support=given.min_support,
        learners=spec.learners,
        merger=spec.job.parties[0],
        compute=spec.compute,
        helper=helper_of(spec),
        security=spec.trust.security,
        max_length=given.max_length,
        disclose=given.disclose,
        strategy="level-wise" if spec.is_verified else given.strategy,
        prefer=given.prefer,
        thin=given.thin,
        universe=_universe(spec),
        catalogue=given.catalogue,
        union=given.union,
        lambda_=given.lambda_,
        max_candidates=given.max_candidates,
        bound=spec.union.bound,
        max_item_bytes=spec.union.max_item_bytes,
        rules=decided_rules(spec),
    )


def helper_of(spec: JobSpec) -> str | None:
    """The party that computes beside the two computing parties; None where the job names none."""
    return None if spec.trust.helper == "none" else spec.trust.helper


def _universe(spec: JobSpec) -> Universe:
    if spec.itemsets.catalogue is not None:
        return "catalogue"
    match spec.itemsets.universe:
        case "all-items" | "frequent-items" as chosen:
            return chosen
        case "hidden" | "hidden-all":
            return "hidden"
        case _:
            return "hidden" if spec.itemsets.prefer == "disclosure" else "frequent-items"
