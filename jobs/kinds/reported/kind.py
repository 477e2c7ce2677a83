"""Itemsets from perturbed records that are reported to an analyst."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from jobs.kinds.finding import Finding
from jobs.kinds.itemsets_kind import (
    CATALOGUE,
    ITEMSETS,
    ROWS,
    EstimatesKind,
    check_colluding,
    check_itemsets,
)
from jobs.kinds.key import Key
from jobs.kinds.kind import Disclosure
from jobs.kinds.reported.parameters import hybrid_mining
from jobs.kinds.reported.plan import estimate_reported
from jobs.kinds.reported.template import template
from jobs.kinds.words import estimated_result, excluded, watched
from jobs.plan.answer import Answer
from jobs.plan.plan import Plan
from jobs.privacy_account import LARGEST_LOCAL, Charge, PrivacyTerms
from jobs.spec.job import JobSpec
from link.errors import ConfigurationError
from mining.joint.hybrid import disclosure
from mining.joint.hybrid.parameters import SET_LENGTH


class Reported(EstimatesKind):
    """Itemsets from perturbed records that are reported to an analyst, under local privacy or through shufflers."""

    computation = "jobs.kinds.reported.run"
    in_blocks = True
    perturbs = True

    def template(self, key: Key, parties: tuple[str, ...]) -> str:
        return template(key, parties)

    def tables(self, spec: JobSpec) -> Mapping[str, frozenset[str]]:
        budget = {"model", "epsilon", "analyst", "search"}
        if spec.privacy.model == "shuffle":
            budget |= {"delta", "local_epsilon", "shufflers", "colluding"}
        return ROWS | {"itemsets": ITEMSETS | CATALOGUE, "privacy": frozenset(budget)}

    def check(self, spec: JobSpec) -> None:
        check_itemsets(spec)
        check_colluding(spec)
        if spec.privacy.model == "shuffle" and spec.analyst in spec.shufflers:
            raise ConfigurationError(
                f"[privacy] '{spec.analyst}' is analyst and shuffler, so it would see whose report is whose"
            )
        hybrid_mining(spec)

    def disclosure(self, spec: JobSpec) -> Disclosure:
        task, parties = hybrid_mining(spec), spec.job.parties
        seen = "which reveal the parties' numbers of records and the number of candidates"
        return Disclosure(
            estimated_result(spec, "the itemsets that seem most frequent with estimated supports", "N"),
            watched(spec, "N", seen, how="search"),
            disclosure.openings(task, parties),
            (*disclosure.learned(task, parties), *excluded(spec)),
            disclosure.collusion(task),
            disclosure.worst(task),
        )

    def estimate(
        self, spec: JobSpec, answers: Mapping[str, Answer], latency_s: float, *others: str, compare: bool
    ) -> Plan:
        return estimate_reported(spec, answers, latency_s, *others)

    def charge(self, spec: JobSpec) -> Charge:
        return self.charge_written(spec.privacy)

    def charge_written(self, privacy: PrivacyTerms) -> Charge:
        if privacy.model == "shuffle":
            return Charge("shuffle", privacy.local_epsilon or LARGEST_LOCAL, privacy.epsilon, privacy.delta)
        return Charge("local", privacy.epsilon, privacy.epsilon, Decimal(0))

    def shufflers(self, spec: JobSpec) -> tuple[str, ...]:
        return spec.shufflers if spec.privacy.model == "shuffle" else ()

    def cautions(self, spec: JobSpec, strategy: str, finding: Finding) -> list[str]:
        if strategy not in ("privset", "wheel"):
            return []
        return [
            f"{strategy} cuts rows to {SET_LENGTH} items: where many are longer, supports are too low by more than "
            "their intervals cover; take svim then"
        ]


KIND: Final = Reported()
