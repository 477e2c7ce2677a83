"""From a job specification to the public parameters of joint anonymisation."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import SensitiveLevels
from jobs.anonymization.inputs import requirements_of
from jobs.anonymization.spec import AnonymizeSection
from jobs.kinds.release.table import INSIDER_K, JointAnonymizeSection, JointColumnSection
from jobs.spec.job import JobSpec
from link.errors import ConfigurationError
from mining.joint.anonymisation.conditions.models import SensitiveTests, offered
from mining.joint.anonymisation.oblivious import check_candidates
from mining.joint.anonymisation.parameters import (
    MOST_NODES,
    NODE_CELLS,
    Carried,
    JointAnonymisation,
    QuasiIdentifier,
    Role,
)

MOST_COALITIONS: Final = 64
"""Of insiders: each takes two comparisons for every class that is examined."""


def joint_anonymisation(spec: JobSpec) -> JointAnonymisation:
    """The public parameters of a job that anonymises.

    Raises:
        ConfigurationError: A model is not offered for several parties, or looks at a column whose values are not named.
        InputDataError: A hierarchy is wrong.
    """
    section = spec.anonymization
    trees = {
        name: Hierarchy.of(name, section.hierarchies[name]) for name in section.sensitive if name in section.hierarchies
    }
    requirements = requirements_of(_pooled(section), trees)
    assert requirements is not None  # k at least
    carried = (
        *_carried(section, section.sensitive, "sensitive"),
        *_carried(section, section.insensitive, "insensitive"),
    )
    task = JointAnonymisation(
        quasi_identifiers=tuple(_quasi_identifier(section, name) for name in section.quasi_identifiers),
        carried=carried,
        requirements=requirements,
        max_suppression=section.max_suppression,
        algorithm=section.algorithm,
        insider_k=1 if spec.is_vertical else section.insider_k or INSIDER_K,
        k_site=section.k_site,
        origin=section.origin,
        compute=spec.compute,
        learners=spec.learners,
        bound=spec.union.bound,
        insiders=section.insiders,
        disclose=section.disclose,
        node_cells=section.node_cells or NODE_CELLS,
        keys=section.keys,
    )
    _check_values(task)
    _check_insiders(task, len(spec.job.parties))
    nodes = math.prod(task.shape)
    if task.algorithm != "mondrian" and nodes > MOST_NODES:
        raise ConfigurationError(
            f"the generalisation lattice has {nodes:,} nodes, and parties search at most {MOST_NODES:,} together; take "
            'fewer quasi-identifiers or levels, or algorithm = "mondrian"'
        )
    if task.disclose == "node":
        check_candidates(task)
    return task


def _quasi_identifier(section: JointAnonymizeSection, name: str) -> QuasiIdentifier:
    kind = section.columns.get(name, JointColumnSection()).kind
    return QuasiIdentifier(name, kind, Hierarchy.of(name, section.hierarchies[name]))


def _carried(section: JointAnonymizeSection, names: tuple[str, ...], role: Role) -> list[Carried]:
    found = []
    for name in names:
        column = section.columns.get(name, JointColumnSection())
        longest = max((len(value.encode()) for value in column.values or ()), default=column.most_bytes)
        found.append(Carried(name, role, column.kind, column.values, longest, name in section.allow_unique))
    return found


def _check_insiders(task: JointAnonymisation, parties: int) -> None:
    """Refuses coalitions that leave nobody, or that are too many."""
    if task.insiders == 1:
        return
    if task.insiders >= parties:
        raise ConfigurationError(
            f"insiders = {task.insiders} leaves none of the {parties} parties outside the coalition; at most "
            f"{parties - 1} can be insiders"
        )
    coalitions = sum(math.comb(parties, size) for size in range(1, task.insiders + 1))
    if coalitions > MOST_COALITIONS:
        raise ConfigurationError(
            f"up to {task.insiders} of {parties} parties are {coalitions:,} coalitions, and every class is held "
            f"against each; at most {MOST_COALITIONS} are: lower insiders"
        )


def _check_values(task: JointAnonymisation) -> None:
    """Refuses models of columns that do not suit them, or whose values nobody names, or names in part."""
    values = {each.name: each.values for each in task.carried if each.role == "sensitive"}
    for model in offered(task.requirements):
        if model.column not in values:
            raise ConfigurationError(f"the model looks at '{model.column}', which is not sensitive")
        named = values[model.column]
        if named is None:
            raise ConfigurationError(
                f"the model looks at '{model.column}'; name all its values in [anonymize.columns], since they must be "
                "public to be counted together"
            )
        if isinstance(model, SensitiveLevels):
            levels = {value for level in model.levels for value in level}
            if levels != set(named):
                raise ConfigurationError(
                    f"[anonymize.levels] and the values of '{model.column}' in [anonymize.columns] differ; name the "
                    "same"
                )
    totals = {name: np.ones(len(each), np.int64) for name, each in values.items() if each is not None}
    SensitiveTests.of(task, totals, max(map(len, totals.values()), default=1))  # what does not suit a column ends here


def _pooled(section: JointAnonymizeSection) -> AnonymizeSection:
    """The configuration by which the same rows would be anonymised in one place."""
    return AnonymizeSection(
        source="the parties",
        quasi_identifiers=section.quasi_identifiers,
        sensitive=section.sensitive,
        insensitive=section.insensitive,
        algorithm=section.algorithm,
        max_suppression=section.max_suppression,
        model=section.model,
        levels=section.levels,
    )
