"""Models: naive Bayes, decision trees and k-means, over rows that parties hold for themselves."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from jobs.kinds.key import Key
from jobs.kinds.kind import ALL, Disclosure, Unions
from jobs.kinds.models.models_kind import (
    ModelsKind,
    check_model,
    check_table,
    disclosed,
    model_learned,
    model_openings,
)
from jobs.kinds.models.parameters import columns_of, model_parameters
from jobs.kinds.models.rows.plan import estimate_model
from jobs.kinds.models.tables import MODEL_TABLES
from jobs.kinds.models.template import template
from jobs.plan.answer import Answer
from jobs.plan.plan import Plan
from jobs.spec.job import JobSpec
from link.errors import InputDataError
from mining.joint.collusion import collusion, worst


class ModelsOfRows(ModelsKind):
    """Models over rows that parties hold for themselves."""

    computation = "jobs.kinds.models.rows.run"
    over = "all rows"

    def template(self, key: Key, parties: tuple[str, ...]) -> str:
        return template(key.task)

    def tables(self, spec: JobSpec) -> Mapping[str, frozenset[str]]:
        return {MODEL_TABLES[spec.job.task]: ALL, "columns": ALL, "plan": frozenset({"bandwidth"})}

    def check(self, spec: JobSpec) -> None:
        check_table(spec)
        check_model(spec)

    def disclosure(self, spec: JobSpec) -> Disclosure:
        return disclosed(
            spec,
            model_openings(spec, vertical=False),
            model_learned(spec, vertical=False),
            collusion(spec.job.parties),
            worst(spec.job.parties, "part of every sum"),
        )

    def estimate(
        self, spec: JobSpec, answers: Mapping[str, Answer], latency_s: float, *others: str, compare: bool
    ) -> Plan:
        return estimate_model(spec, answers, latency_s, *others)

    def resumes(self, spec: JobSpec) -> bool:
        return True

    def shares(self, spec: JobSpec) -> bool:
        return False

    def unions(self, spec: JobSpec) -> Unions:
        return Unions(taken=False, bound=spec.union.bound)

    def refusals(self, spec: JobSpec) -> frozenset[str]:
        return frozenset({"domains"})

    def default_ids(self, spec: JobSpec) -> tuple[str, ...]:
        return ()

    def check_columns(self, spec: JobSpec, columns: Mapping[str, Collection[str]]) -> None:
        names = [attribute.name for attribute in columns_of(model_parameters(spec))]
        for party, held in columns.items():
            for name in names:
                if name not in held:
                    raise InputDataError(
                        f"the data of {party} have no column '{name}', which the job's model takes; check the spelling",
                        party=party,
                    )


KIND: Final = ModelsOfRows()
