"""Runs the algorithm of a configuration, and holds the outcome against all that was asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from importlib import import_module

from anonymize.clustering.gpkc import gpkc
from anonymize.clustering.maa_slie import maa_slie
from anonymize.clustering.mdav import mdav
from anonymize.condensation.static import condense
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import Requirements
from anonymize.multidimensional.mondrian import mondrian
from anonymize.release import Release, allowed_suppression, sorted_rows
from anonymize.replacement.ppir import ppir
from anonymize.tables import Table
from anonymize.uncertain import publish_as_distributions
from anonymize.uniqueness import check_insensitive
from crypto.primitives.randomness import Randomness
from jobs.anonymization.full_domain import algorithm_of, check_suppression
from jobs.anonymization.inputs import Inputs
from jobs.anonymization.spec import FULL_DOMAIN, AnonymizeSection
from link.errors import ConfigurationError


def run(inputs: Inputs) -> Release:
    """The release of a configuration; every model that it names holds of each class.

    Raises:
        ConfigurationError: The requirements cannot be met, or a parameter does not suit; the sentence gives the reason.
        InputDataError: A hierarchy lacks values.
    """
    spec, table = inputs.spec, inputs.table
    allowed = allowed_suppression(spec.max_suppression, table.n_rows)
    reason = None if inputs.requirements is None else inputs.requirements.fitted(table).infeasible(table, allowed)
    if reason is not None:
        raise ConfigurationError(reason)
    release = _released(inputs)
    check_suppression(spec, len(release.suppressed), table.n_rows)
    if inputs.requirements is not None and release.classes is not None and spec.algorithm not in FULL_DOMAIN:
        _check(release, table, inputs.requirements, spec.algorithm)
    left = [name for name in spec.as_they_are if name in release.table.column_names]
    check_insensitive(release.table, left, spec.allow_unique, spec.least)  # some may be rare once others are left out
    return sorted_rows(release) if spec.row_order == "sorted" else release


def _released(inputs: Inputs) -> Release:
    spec = inputs.spec
    if spec.algorithm in FULL_DOMAIN:
        return _full_domain(inputs)
    if spec.algorithm == "mondrian":
        assert inputs.requirements is not None
        return mondrian(
            inputs.table,
            inputs.requirements,
            mode=spec.mondrian.mode,
            hierarchies=inputs.hierarchies,
            release=spec.mondrian.release,
        )
    return _perturbed(inputs)


def _full_domain(inputs: Inputs) -> Release:
    spec = inputs.spec
    module, name, more = algorithm_of(spec)
    search: Callable[..., Release] = getattr(import_module(f"anonymize.fulldomain.{module}"), name)
    release = search(
        inputs.table,
        inputs.hierarchies,
        inputs.requirements,
        max_suppression=spec.max_suppression,
        loss=spec.loss,
        suppressed=spec.suppressed,
        **more,
    )
    return replace(release, algorithm=spec.algorithm)


def _perturbed(inputs: Inputs) -> Release:
    """Algorithms that publish centres, synthetic records, records as distributions or virtual ones."""
    spec, table = inputs.spec, inputs.table
    rng = Randomness.from_os() if spec.seed is None else Randomness.from_seed(spec.seed)
    trees = inputs.hierarchies
    k = spec.model.k or 1
    match spec.algorithm:
        case "mdav":
            return mdav(table, k, scaling=spec.mdav.scaling)
        case "maa-slie":
            assert inputs.levels is not None
            own = spec.maa_slie
            first, second = own.psi_weights
            return maa_slie(
                table,
                k,
                _p(spec),
                inputs.levels,
                rng=rng,
                hierarchies=trees,
                psi_weights=(float(first), float(second)),
                term=own.term,
                leftover=own.leftover,
                base=float(own.base),
            )
        case "gpkc":
            column = None if inputs.levels is not None or len(spec.sensitive) == 1 else _p_column(spec)
            return gpkc(
                table,
                k,
                _p(spec),
                rng=rng,
                levels=inputs.levels,
                column=column,
                hierarchies=trees,
                loss=spec.gpkc.loss,
            )
        case "condensation":
            chosen = spec.condensation
            return condense(
                table,
                k,
                rng=rng,
                by=chosen.by,
                factor=chosen.factor,
                grouping=chosen.grouping,
                scaling=chosen.scaling,
            )
        case "distributions":
            return publish_as_distributions(table, k, rng=rng, scaling=spec.distributions.scaling)
        case _:
            return _replaced(spec, table, trees, rng)


def _replaced(spec: AnonymizeSection, table: Table, hierarchies: Mapping[str, Hierarchy], rng: Randomness) -> Release:
    own = spec.ppir
    assert own is not None
    return ppir(
        table,
        _floats(own.ranges),
        rng=rng,
        alpha=(float(own.alpha_min), float(own.alpha_max)),
        ch_max=float(own.ch_max),
        beta=own.beta,
        tries=own.tries,
        exhausted=own.exhausted,
        scales=_floats(own.scales),
        influences=_floats(own.influences),
        weights=_floats(own.weights),
        hierarchies=hierarchies,
    )


def _p(spec: AnonymizeSection) -> int:
    return max((each.value for each in spec.model.p), default=1)


def _p_column(spec: AnonymizeSection) -> str:
    """The sensitive column whose values classes are filled up by, where there are several."""
    named = [column for each in spec.model.p for column in each.columns]
    if not named:
        raise ConfigurationError(
            'algorithm = "gpkc" fills classes with the values of one sensitive column, and there are several; write '
            'p = { value = 2, columns = ["…"] }'
        )
    return named[0]


def _floats(numbers: Mapping[str, Decimal]) -> dict[str, float]:
    return {name: float(number) for name, number in numbers.items()}


def _check(release: Release, table: Table, requirements: Requirements, algorithm: str) -> None:
    """Refuses a release of an algorithm that does not look at all models, if its classes miss one.

    Raises:
        ConfigurationError: They do; the sentence names the models.
    """
    assert release.rows is not None
    assert release.classes is not None
    failed = []
    for model in requirements.fitted(table).models:
        one = Requirements((model,))
        columns = [replace(c, codes=c.codes[release.rows]) for c in map(table.column, one.columns)]
        if not one.check(release.classes, release.n_classes, columns).all():
            failed.append(str(model))
    if failed:
        raise ConfigurationError(
            f'algorithm = "{algorithm}" does not aim at {", ".join(failed)}, and its classes miss it; take optimal, '
            "incognito or mondrian, or weaken the model"
        )
