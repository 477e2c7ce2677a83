"""From a job specification to the public parameters of the algorithm that runs it.

Each kind of job loads what it takes: the protocols over columns would cost a job over rows a tenth of a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jobs.kinds.reported.parameters import check_given
from jobs.spec import JobSpec
from link.errors import ConfigurationError
from mining.joint.parameters import HorizontalMining, RuleParameters, Universe

if TYPE_CHECKING:
    from mining.item_columns import Itemisation
    from mining.joint.align import RowAlignment
    from mining.joint.vertical.parameters import ChosenEngine, Expectation, VerticalMining
    from mining.row_ids import IdNormalisation


MEANINGLESS: Final = {
    "privacy_": (
        "epsilon",
        "delta",
        "local_epsilon",
        "analyst",
        "shufflers",
        "colluding",
        "noise",
        "contributions",
        "search",
        "opted_in",
    )
}
"""What means nothing without noise: a budget least of all, which nothing would keep to."""


def horizontal_mining(spec: JobSpec) -> HorizontalMining:
    """The public parameters of joint mining, as the specification gives them.

    Raises:
        ConfigurationError: The task is not one that mines, or the job has a budget that nothing would keep to.
    """
    _check_mines(spec)
    if spec.privacy.model == "exact":
        check_given(spec, MEANINGLESS)
    given = spec.itemsets
    return HorizontalMining(
        min_support=given.min_support,
        learners=spec.learners,
        merger=spec.job.parties[0],
        compute=spec.compute,
        max_length=given.max_length,
        disclose=given.disclose,
        strategy=given.strategy,
        prefer=given.prefer,
        thin=given.thin,
        universe=_universe(spec),
        catalogue=given.catalogue,
        union=given.union,
        lambda_=given.lambda_,
        max_candidates=given.max_candidates,
        bound=spec.union.bound,
        max_item_bytes=spec.union.max_item_bytes,
        rules=_rules(spec),
    )


def vertical_mining(spec: JobSpec) -> VerticalMining:
    """The public parameters of joint mining over columns of common rows, as the specification gives them.

    Raises:
        ConfigurationError: The task is not one that mines.
    """
    from mining.joint.vertical.parameters import VerticalMining

    _check_mines(spec)
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
        rules=_rules(spec),
        expectation=_expectation(spec),
    )


def row_alignment(spec: JobSpec) -> RowAlignment:
    """The public parameters of the task `align`, as the specification gives them."""
    from mining.joint.align import RowAlignment

    align = spec.alignment
    return RowAlignment(spec.job.parties[0], align.mode, id_normalisation(spec), align.bound)


def coordinator_deals(spec: JobSpec) -> bool:
    """Whether the coordinator deals randomness to the two parties of a vertical job."""
    if not (spec.is_vertical and spec.mines):
        return False
    from mining.joint.vertical.parameters import is_dealt

    return is_dealt(vertical_mining(spec), spec.job.parties)


def engine_of(spec: JobSpec) -> ChosenEngine | None:
    """How a vertical job multiplies what lies at several parties; None where it has nothing to multiply."""
    if spec.is_vertical and (spec.naive_bayes is not None or spec.decision_tree is not None or spec.anonymizes):
        return "ot"
    if not (spec.is_vertical and spec.mines):
        return None
    from mining.joint.vertical.parameters import chosen_engine

    return chosen_engine(vertical_mining(spec))


def engine_reason(spec: JobSpec) -> str | None:
    """Why a vertical job that mines takes its engine, in a sentence; None for other jobs."""
    if not (spec.is_vertical and spec.mines):
        return None
    if spec.itemsets.engine != "auto":
        return f'The job names engine = "{spec.itemsets.engine}".'
    from mining.joint.vertical.choice import choose_engine

    return choose_engine(vertical_mining(spec)).reason


def helper_of(spec: JobSpec) -> str | None:
    """Who helps the two computing parties: the coordinator as dealer, or the party that holds shares beside them.

    None where nobody does.
    """
    if engine_of(spec) != "replicated":
        return None
    from mining.joint.vertical.parameters import COORDINATOR, holders_of

    return COORDINATOR if coordinator_deals(spec) else holders_of(vertical_mining(spec), spec.job.parties)[2]


def id_normalisation(spec: JobSpec) -> IdNormalisation:
    """What a vertical job has done to ids before they are compared."""
    from mining.row_ids import IdNormalisation

    align = spec.alignment
    return IdNormalisation(align.trim, align.case, align.unicode)


def itemisation(spec: JobSpec) -> Itemisation:
    """How a vertical job turns cells into items."""
    from mining.item_columns import Itemisation

    given = spec.itemsets
    return Itemisation(given.cuts, given.quantiles, given.exclude)


def _check_mines(spec: JobSpec) -> None:
    if not spec.mines:
        raise ConfigurationError(f'[job] task: "{spec.job.task}" is not available in this version')


def _helper(spec: JobSpec) -> str | None:
    """Two parties cannot replicate shares among three, so `replicated` means the coordinator where nobody is named."""
    if spec.trust.helper != "none":
        return spec.trust.helper
    return "coordinator" if spec.itemsets.engine == "replicated" and len(spec.job.parties) == 2 else None


def _expectation(spec: JobSpec) -> Expectation:
    """What the job says of sizes beforehand; else what is usual, and of rows what its bound allows."""
    from mining.joint.vertical.parameters import Expectation

    given, usual = spec.plan, Expectation()
    return Expectation(
        parties=len(spec.job.parties),
        rows=given.rows or spec.alignment.bound or usual.rows,
        items=given.items or usual.items,
        density=float(given.density or usual.density),
        bytes_per_s=given.bytes_per_s or usual.bytes_per_s,
    )


def _rules(spec: JobSpec) -> RuleParameters | None:
    """Where no support is opened, rules cannot follow from the result and are decided on shares."""
    if spec.rules is None or spec.itemsets.disclose != "frequent":
        return None
    return RuleParameters(spec.rules.min_confidence, spec.rules.consequent)


def _universe(spec: JobSpec) -> Universe:
    if spec.itemsets.catalogue is not None:
        return "catalogue"
    match spec.itemsets.universe:
        case "hidden" | "hidden-all" | "all-items" | "frequent-items" as chosen:
            return chosen
        case _:
            return "hidden-all" if spec.itemsets.prefer == "disclosure" else "frequent-items"
