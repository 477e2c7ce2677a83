"""Items from noisy counts of trusted parties and perturbed records of the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.kinds.blended.parameters import blended_mining
from jobs.kinds.blended.plan import estimate_blended
from jobs.kinds.blended.template import template
from jobs.kinds.itemsets_kind import (
    CATALOGUE,
    ITEMSETS,
    ROWS,
    EstimatesKind,
    check_itemsets,
)
from jobs.kinds.key import Key
from jobs.kinds.kind import Disclosure
from jobs.kinds.words import excluded, watched
from jobs.plan.answer import Answer
from jobs.plan.plan import Plan
from jobs.privacy_account import Charge, PrivacyTerms
from jobs.spec.job import JobSpec
from mining.joint.blended import disclosure


class Blended(EstimatesKind):
    """Items from noisy counts of trusted parties and perturbed records of the others."""

    computation = "jobs.kinds.blended.run"
    in_blocks = True
    perturbs = True

    def template(self, key: Key, parties: tuple[str, ...]) -> str:
        return template(key, parties)

    def tables(self, spec: JobSpec) -> Mapping[str, frozenset[str]]:
        budget = {"model", "epsilon", "delta", "analyst", "opted_in"}
        return ROWS | {"itemsets": ITEMSETS | CATALOGUE, "privacy": frozenset(budget)}

    def check(self, spec: JobSpec) -> None:
        check_itemsets(spec)
        blended_mining(spec)

    def disclosure(self, spec: JobSpec) -> Disclosure:
        task, parties = blended_mining(spec), spec.job.parties
        seen = "which reveal the number of items that are asked about, and follow from what is opened with noise"
        return Disclosure(
            "the items that seem most frequent with estimated supports, and N",
            watched(spec, "N", seen),
            disclosure.openings(task, parties),
            (*disclosure.learned(task, parties), *excluded(spec)),
            disclosure.collusion(task),
            disclosure.worst(task),
        )

    def estimate(
        self, spec: JobSpec, answers: Mapping[str, Answer], latency_s: float, *others: str, compare: bool
    ) -> Plan:
        return estimate_blended(spec, answers, latency_s, *others)

    def charge(self, spec: JobSpec) -> Charge:
        return self.charge_written(spec.privacy)

    def charge_written(self, privacy: PrivacyTerms) -> Charge:
        """A record either is perturbed or counts at its trusted party; both are charged, the same at all parties."""
        return Charge("blended", privacy.epsilon, privacy.epsilon, privacy.delta)


KIND: Final = Blended()
