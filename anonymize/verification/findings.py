"""What a verification found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

SCHEMA = "comine.anonymization-verification/1"


@dataclass(frozen=True)
class Finding:
    """One claim, and what was found of it.

    Attributes:
        check: What was checked.
        expected: What the certificate claims.
        found: What was recomputed.
        ok: Whether the two agree; None where it could not be checked, with the reason in `found`.
    """

    check: str
    expected: str
    found: str
    ok: bool | None


@dataclass(frozen=True)
class Verification:
    """All findings about one release.

    Attributes:
        findings: In the order in which they were checked.
    """

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing was found that contradicts the certificate."""
        return all(finding.ok is not False for finding in self.findings)

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that contradict the certificate."""
        return tuple(finding for finding in self.findings if finding.ok is False)

    @property
    def unchecked(self) -> tuple[Finding, ...]:
        """What could not be checked."""
        return tuple(finding for finding in self.findings if finding.ok is None)

    def document(self) -> dict[str, Any]:
        """The findings as JSON values."""
        return {"schema": SCHEMA, "ok": self.ok, "findings": [asdict(finding) for finding in self.findings]}
