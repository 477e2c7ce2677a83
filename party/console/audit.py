"""The audit log: its entries, the newest first, and whether it holds."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from console.lists import PART, number_of
from console.site import Page, Shown, Visit
from jobs.audit.checks.verification import verification
from jobs.audit.place import of_party, trust_in
from jobs.audit.reading import LogLines, job_of

PATH: Final = "/audit"


def pages(party_toml: Path) -> tuple[Page, ...]:
    """The pages of a node's file."""
    return (
        Page(PATH, partial(_list, party_toml), title="Audit log"),
        Page(f"{PATH}/verification", partial(_verify, party_toml), acts=True),
    )


def _list(party_toml: Path, visit: Visit) -> Shown:
    job = visit.query.get("job", "").strip().lower()
    lines = LogLines(of_party(party_toml)[0], job or None)
    number, parts = number_of(len(lines), visit.query)
    document = lines.part((number - 1) * PART, PART)
    entries = [(entry, job_of(entry)) for entry in reversed(document.entries)]
    return Shown(
        "audit.html.j2", {"entries": entries, "number": number, "parts": parts, "total": len(lines), "job": job}
    )


def _verify(party_toml: Path, _: Visit) -> Shown:
    """What `comine audit verify` finds; by a form alone, since it reads the whole log and checks every signature."""
    log, ca, crl = of_party(party_toml)
    return Shown("verification.html.j2", {"found": verification([log], [], trust_in(ca, crl))})
