"""One anonymised release of the rows, or columns, of several parties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.data import Data
from jobs.kinds.alignment.unions import of_alignment
from jobs.kinds.key import Key
from jobs.kinds.kind import ALL, EXACT, Disclosure, Facet, Kind, Resources, Unions
from jobs.kinds.release.anonymising import anonymise_rows, collusion, learned, openings, worst
from jobs.kinds.release.finding import FoundRelease
from jobs.kinds.release.parameters import check_partition, joint_anonymisation
from jobs.kinds.release.plan import estimate_anonymization
from jobs.kinds.release.table import INSIDER_K
from jobs.kinds.release.template import template
from jobs.kinds.words import watched
from jobs.plan.answer import Answer
from jobs.plan.plan import Plan
from jobs.privacy_account import Charge
from jobs.results.outcome import Outcome
from jobs.spec.job import JobSpec
from link.errors import ConfigurationError, InputDataError
from link.session import Session

_COMBINED: Final = (
    "what this release reveals together with other releases of the same rows: they combine, and a value that each of "
    "them hides may follow from all. Each party counts the releases of its rows (rule max_releases), and says in "
    "its plan and its inbox which one this is"
)
_PERSONS: Final = (
    "how many rows a person has: what the model asks of classes is asked of rows, and who has rows at several "
    "parties, or several at one, is hidden among fewer persons than k"
)


class Release(Kind):
    """One anonymised release of the rows, or columns, of several parties."""

    data = "table"
    in_blocks = True
    finding = FoundRelease

    def template(self, key: Key, parties: tuple[str, ...]) -> str:
        return template(key)

    def tables(self, spec: JobSpec) -> Mapping[str, frozenset[str]]:
        own = {"anonymize": ALL, "trust": frozenset({"compute"})}
        if spec.is_vertical:
            return own | {"align": ALL, "plan": ALL}
        return own | {"union": ALL, "plan": frozenset({"bandwidth"})}

    def takes_blocks(self, spec: JobSpec) -> bool:
        return not spec.is_vertical

    def check(self, spec: JobSpec) -> None:
        if spec.anonymize is None:
            raise ConfigurationError('task = "anonymize" needs an [anonymize] table; the table is missing')
        try:
            check_partition(spec)
            joint_anonymisation(spec)
        except (ConfigurationError, InputDataError) as error:
            raise ConfigurationError(f"[anonymize] {error.message}") from None

    async def run(self, session: Session, spec: JobSpec, data: Data, resources: Resources) -> Outcome:
        n_rows, anonymized = await anonymise_rows(session, spec, data, resources)
        finding = None if anonymized is None else FoundRelease(anonymized)
        return Outcome(n_rows, spec.anonymization.algorithm, finding)

    def disclosure(self, spec: JobSpec) -> Disclosure:
        return Disclosure(
            "the release: its rows, its node and its classes, and the number of rows that it is made from",
            watched(spec, "the number of rows", "which reveal how many nodes are examined"),
            openings(spec),
            learned(spec),
            collusion(spec),
            worst(spec),
            (_COMBINED,) if spec.is_vertical else (_COMBINED, _PERSONS),
        )

    def estimate(
        self, spec: JobSpec, answers: Mapping[str, Answer], latency_s: float, *others: str, compare: bool
    ) -> Plan:
        return estimate_anonymization(spec, answers, latency_s, *others)

    def charge(self, spec: JobSpec) -> Charge:
        return EXACT

    def facets(self, spec: JobSpec) -> frozenset[Facet]:
        return frozenset({"release"})

    def shares(self, spec: JobSpec) -> bool:
        return True

    def unions(self, spec: JobSpec) -> Unions:
        """A release over rows unites the classes of one large node after the other, which reveals only these."""
        if spec.is_vertical:
            return of_alignment(spec)
        return Unions(spec.anonymization.keys == "union", 0, bound=spec.union.bound, encrypted=False)

    def refusals(self, spec: JobSpec) -> frozenset[str]:
        found = {"leaves", "values", "ids" if spec.is_vertical else "persons"}
        section = spec.anonymization
        if set(section.insensitive) - set(section.allow_unique):
            found.add("unique")
        return frozenset(found)

    def default_ids(self, spec: JobSpec) -> tuple[str, ...]:
        return ("id",) if spec.is_vertical else ()

    def engine(self, spec: JobSpec) -> str | None:
        return "ot" if spec.is_vertical else None

    def lead(self, spec: JobSpec) -> tuple[str, str]:
        return "Anonymised rows", "anonymised together; no row left its owner but in the release"

    def asks(self, spec: JobSpec) -> list[tuple[str, str]]:
        section = spec.anonymization
        insider_k = [] if spec.is_vertical else [("insider k", str(section.insider_k or INSIDER_K))]
        return [("k", str(section.model.k)), *insider_k]

    def facts(self, spec: JobSpec, strategy: str) -> list[tuple[str, str]]:
        section = spec.anonymization
        found: list[tuple[str, str]] = [("algorithm", section.algorithm)]
        if not spec.is_vertical:
            found.append(("insiders", f"up to {section.insiders} together" if section.insiders > 1 else "each alone"))
        return found


KIND: Final = Release()
