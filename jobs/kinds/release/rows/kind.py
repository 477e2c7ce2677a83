"""One anonymised release of the rows of several parties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.kinds.key import Key
from jobs.kinds.kind import ALL, Disclosure, Unions
from jobs.kinds.release.parameters import joint_anonymisation
from jobs.kinds.release.release_kind import ReleaseKind, disclosed
from jobs.kinds.release.rows.plan import estimate_anonymization
from jobs.kinds.release.table import INSIDER_K
from jobs.kinds.release.template import TABLES
from jobs.plan.answer import Answer
from jobs.plan.plan import Plan
from jobs.spec.job import JobSpec
from mining.joint.anonymisation.disclosure import collusion, learned, openings, worst

_PERSONS: Final = (
    "how many rows a person has: what the model asks of classes is asked of rows, and who has rows at several "
    "parties, or several at one, is hidden among fewer persons than k"
)
_OF_ROWS: Final = """\
# algorithm = "optimal"         # or "samarati", "mondrian"
# insider_k = 2                 # of each class, the others of a party hold no rows or so many
"""


class ReleaseOfRows(ReleaseKind):
    """One anonymised release of the rows of several parties."""

    computation = "jobs.kinds.release.rows.run"
    in_blocks = True

    def template(self, key: Key, parties: tuple[str, ...]) -> str:
        return TABLES.format(more=_OF_ROWS)

    def tables(self, spec: JobSpec) -> Mapping[str, frozenset[str]]:
        return {
            "anonymize": ALL,
            "trust": frozenset({"compute"}),
            "union": ALL,
            "plan": frozenset({"bandwidth"}),
        }

    def check_section(self, spec: JobSpec) -> None:
        """All of it means something."""

    def disclosure(self, spec: JobSpec) -> Disclosure:
        task, parties = joint_anonymisation(spec), spec.job.parties
        return disclosed(
            spec,
            openings(task, parties),
            learned(task, parties),
            collusion(task, parties),
            worst(task, parties),
            _PERSONS,
        )

    def estimate(
        self, spec: JobSpec, answers: Mapping[str, Answer], latency_s: float, *others: str, compare: bool
    ) -> Plan:
        return estimate_anonymization(spec, answers, latency_s, *others)

    def unions(self, spec: JobSpec) -> Unions:
        """It unites the classes of one large node after the other, which reveals only these."""
        return Unions(spec.anonymization.keys == "union", bound=spec.union.bound, squared=False)

    def refusals(self, spec: JobSpec) -> frozenset[str]:
        return super().refusals(spec) | {"persons"}

    def default_ids(self, spec: JobSpec) -> tuple[str, ...]:
        return ()

    def asks(self, spec: JobSpec) -> list[tuple[str, str]]:
        return [*super().asks(spec), ("insider k", str(spec.anonymization.insider_k or INSIDER_K))]

    def facts(self, spec: JobSpec, strategy: str) -> list[tuple[str, str]]:
        insiders = spec.anonymization.insiders
        together = f"up to {insiders} together" if insiders > 1 else "each alone"
        return [*super().facts(spec, strategy), ("insiders", together)]


KIND: Final = ReleaseOfRows()
