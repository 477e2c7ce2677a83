"""What jobs that make one anonymised release have in common, over rows as over columns."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from jobs.kinds.kind import EXACT, Disclosure, Facet, Kind
from jobs.kinds.release.finding import FoundRelease
from jobs.kinds.release.parameters import joint_anonymisation
from jobs.kinds.words import watched
from jobs.privacy_account import Charge
from jobs.spec.job import JobSpec
from link.disclosure import Declared, Learned
from link.errors import ConfigurationError, InputDataError

_COMBINED: Final = (
    "what this release reveals together with other releases of the same rows: they combine, and a value that each of "
    "them hides may follow from all. Each party counts the releases of its rows (rule max_releases), and says in "
    "its plan and its inbox which one this is"
)


class ReleaseKind(Kind):
    """A kind that makes one anonymised release."""

    data = "table"
    finding = FoundRelease

    def check(self, spec: JobSpec) -> None:
        if spec.anonymize is None:
            raise ConfigurationError('task = "anonymize" needs an [anonymize] table; the table is missing')
        try:
            self.check_section(spec)
            joint_anonymisation(spec)
        except (ConfigurationError, InputDataError) as error:
            raise ConfigurationError(f"[anonymize] {error.message}") from None

    @abstractmethod
    def check_section(self, spec: JobSpec) -> None:
        """Refuses what means nothing as the data are parted.

        Raises:
            ConfigurationError: With the reason.
        """

    def charge(self, spec: JobSpec) -> Charge:
        return EXACT

    def facets(self, spec: JobSpec) -> frozenset[Facet]:
        return frozenset({"release"})

    def shares(self, spec: JobSpec) -> bool:
        return True

    def resumes(self, spec: JobSpec) -> bool:
        return True

    def refusals(self, spec: JobSpec) -> frozenset[str]:
        section = spec.anonymization
        unique = {"unique"} if set(section.insensitive) - set(section.allow_unique) else set()
        return frozenset({"leaves", "values"} | unique)

    def lead(self, spec: JobSpec) -> tuple[str, str]:
        return "Anonymised rows", "anonymised together; no row left its owner but in the release"

    def asks(self, spec: JobSpec) -> list[tuple[str, str]]:
        return [("k", str(spec.anonymization.model.k))]

    def facts(self, spec: JobSpec, strategy: str) -> list[tuple[str, str]]:
        return [("algorithm", spec.anonymization.algorithm)]


def disclosed(
    spec: JobSpec,
    declared: tuple[Declared, ...],
    learned: tuple[Learned, ...],
    collusion: str,
    worst: str,
    *beyond: str,
) -> Disclosure:
    """What a job discloses whose parts are these."""
    return Disclosure(
        "the release: its rows, its node and its classes, and the number of rows that it is made from",
        watched(spec, "the number of rows", "which reveal how many nodes are examined"),
        declared,
        learned,
        collusion,
        worst,
        (_COMBINED, *beyond),
    )
