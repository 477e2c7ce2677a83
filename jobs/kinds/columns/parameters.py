"""From a job specification to the public parameters of mining over columns of common rows."""

from __future__ import annotations

from jobs.kinds.alignment.groups import column_groups
from jobs.kinds.alignment.parameters import id_normalisation
from jobs.kinds.itemsets_parameters import decided_rules
from jobs.spec.job import AUTO_HELPER, JobSpec
from link.errors import ConfigurationError
from mining.data.items.item_columns import Itemisation
from mining.joint.vertical.engines.names import AUTO
from mining.joint.vertical.engines.registry import engine_named
from mining.joint.vertical.parameters import Expectation, VerticalMining


def mines(spec: JobSpec) -> bool:
    """Whether a job over columns mines them, and does not only align them for something else."""
    return spec.itemsets_ is not None


def vertical_mining(spec: JobSpec) -> VerticalMining:
    """The public parameters of joint mining over columns of common rows, as the specification gives them.

    Raises:
        ConfigurationError: They do not fit each other.
    """
    given, align = spec.itemsets, spec.alignment
    assert align.mode != "cardinality"  # which the specification refuses
    return VerticalMining(
        min_support=given.min_support,
        learners=spec.learners,
        compute=spec.compute,
        merger=spec.job.parties[0],
        mode=align.mode,
        normalisation=id_normalisation(spec),
        itemisation=itemisation(spec),
        disclose=given.disclose,
        max_length=given.max_length,
        max_candidates=given.max_candidates,
        engine=given.engine,
        helper=_helper(spec),
        bound=align.bound,
        rules=decided_rules(spec),
        expectation=_expectation(spec),
        groups=column_groups(spec),
        security=spec.trust.security,
    )


def check_quantiles(spec: JobSpec) -> None:
    """Refuses quantiles where a column may have several owners.

    Raises:
        ConfigurationError: The job has both.
    """
    if spec.groups and spec.itemsets.quantiles:
        raise ConfigurationError(
            "[itemsets] quantiles cut where the owner of a column finds them, and with [groups] a column may have "
            "several owners; give cuts"
        )


def itemisation(spec: JobSpec) -> Itemisation:
    """How a vertical job turns cells into items."""
    given = spec.itemsets
    return Itemisation(given.cuts, given.quantiles, given.exclude)


def _helper(spec: JobSpec) -> str | None:
    """Who may help: whom the job names, or where it leaves that open the first party that does not compute.

    Where nobody is named, or two parties leave it open, who usually helps with the engine that the job names.
    """
    if spec.trust.helper not in ("none", AUTO_HELPER):
        return spec.trust.helper
    if spec.trust.helper == AUTO_HELPER and len(spec.job.parties) > 2:
        return third_party(spec)
    return None if spec.itemsets.engine == AUTO else engine_named(spec.itemsets.engine).usual_helper(spec.job.parties)


def third_party(spec: JobSpec) -> str:
    """The first party that does not compute, of three or more."""
    return next(party for party in spec.job.parties if party not in spec.compute)


def _expectation(spec: JobSpec) -> Expectation:
    """What the job says of sizes beforehand; else what is usual, and of rows what its bound allows."""
    given, usual = spec.plan, Expectation()
    return Expectation(
        parties=len(spec.job.parties),
        rows=given.rows or spec.alignment.bound or usual.rows,
        items=given.items or usual.items,
        density=float(given.density or usual.density),
        bytes_per_s=given.bytes_per_s or usual.bytes_per_s,
    )
