"""From a job specification to the public parameters of mining over rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.kinds.itemsets_parameters import decided_rules
from jobs.spec.job import AUTO_HELPER, JobSpec
from mining.joint.parameters import HorizontalMining, Universe
from mining.joint.usual_network import BYTES_PER_S

if TYPE_CHECKING:
    from mining.joint.horizontal.computing import ComputingChoice


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
        strategy="level-wise" if spec.is_verified and given.strategy == "auto" else given.strategy,
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
    """The party that computes beside the two computing parties; None where these are by themselves."""
    if spec.trust.helper != AUTO_HELPER:
        return None if spec.trust.helper == "none" else spec.trust.helper
    choice = computing_choice(spec)
    return choice.helper if choice is not None and (spec.is_verified or choice.takes_three) else None


def computing_choice(spec: JobSpec) -> ComputingChoice | None:
    """Whether three computing parties come cheaper than two; None where the job leaves nothing to choose."""
    parties, given = spec.job.parties, spec.itemsets
    if spec.trust.helper != AUTO_HELPER or len(parties) == 2 or given.disclose == "candidates":
        return None
    from mining.joint.horizontal.computing import choose_computing  # brings the protocols that it compares

    return choose_computing(
        parties,
        spec.compute,
        given.min_support,
        spec.plan.bytes_per_s or BYTES_PER_S,
        agrees_anyway=_universe(spec) != "catalogue",
    )


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
