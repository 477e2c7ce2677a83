"""Itemsets from sums to which the parties add noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.kinds.estimates_finding import FoundEstimates
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
from jobs.kinds.noisy.cut_rows import cut_rows
from jobs.kinds.noisy.parameters import distributed_mining
from jobs.kinds.noisy.plan import estimate_noisy, exact_counterpart
from jobs.kinds.noisy.template import template
from jobs.kinds.words import estimated_result, excluded, watched
from jobs.plan.answer import Answer
from jobs.plan.plan import Plan
from jobs.privacy_account import Charge, PrivacyTerms
from jobs.spec.job import JobSpec
from mining.joint.distributed import disclosure
from mining.joint.parameters import HorizontalMining


class Noisy(EstimatesKind):
    """Itemsets from sums to which the parties add noise."""

    computation = "jobs.kinds.noisy.run"
    in_blocks = True
    noisy_rows = True

    def template(self, key: Key, parties: tuple[str, ...]) -> str:
        return template(key)

    def tables(self, spec: JobSpec) -> Mapping[str, frozenset[str]]:
        budget = {"model", "epsilon", "delta", "colluding", "noise", "contributions"}
        return ROWS | {"itemsets": ITEMSETS | CATALOGUE | {"max_candidates"}, "privacy": frozenset(budget)}

    def check(self, spec: JobSpec) -> None:
        check_itemsets(spec)
        check_colluding(spec)
        distributed_mining(spec)

    def disclosure(self, spec: JobSpec) -> Disclosure:
        task, parties = distributed_mining(spec), spec.job.parties
        seen = "which reveal the number of candidates; all of these follow from what is opened with noise"
        return Disclosure(
            estimated_result(spec, "the itemsets whose noisy supports are large enough, with these", "N with noise"),
            watched(spec, "N", seen),
            disclosure.openings(task, parties),
            (*disclosure.learned(task, parties), *excluded(spec)),
            disclosure.collusion(task, parties),
            disclosure.worst(task, parties),
        )

    def estimate(
        self, spec: JobSpec, answers: Mapping[str, Answer], latency_s: float, *others: str, compare: bool
    ) -> Plan:
        return estimate_noisy(spec, answers, latency_s, *others)

    def charge(self, spec: JobSpec) -> Charge:
        return self.charge_written(spec.privacy)

    def charge_written(self, privacy: PrivacyTerms) -> Charge:
        return Charge("distributed", None, privacy.epsilon, privacy.delta)

    def protects_from_parties(self, spec: JobSpec) -> bool:
        return spec.privacy.colluding > 0

    def mined_as(self, spec: JobSpec) -> HorizontalMining | None:
        return exact_counterpart(spec)

    def cautions(self, spec: JobSpec, strategy: str, finding: Finding) -> list[str]:
        return cut_rows(spec, finding.estimated.itemsets) if isinstance(finding, FoundEstimates) else []


KIND: Final = Noisy()
