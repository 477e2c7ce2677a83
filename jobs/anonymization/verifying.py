"""What `comine anonymize verify` checks: what the certificate claims, and that each byte of the folder is as it was."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from anonymize.verification.findings import Finding, Verification
from anonymize.verifier import verify as verify_release
from jobs.audit.checks.finding import printable
from jobs.results.destination import MANIFEST
from jobs.results.manifest import check

_EXPECTED: Final = f"as {MANIFEST} lists it"


def verify(folder: Path, original: Path | None = None, separator: str = ",") -> Verification:
    """Checks the folder of a release.

    Args:
        folder: With `certificate.json` and the release. Of a folder that is handed on, the manifest and the files that
            are not for publication are missing: then only the release and its certificate are checked.
        original: The file that was anonymised, where the verifier may see it.
        separator: Of the original's cells, if it is CSV.
    """
    return Verification((*verify_release(folder, original, separator).findings, *_listed(folder)))


def _listed(folder: Path) -> Iterator[Finding]:
    if not os.path.lexists(folder / MANIFEST):
        found = f"there is no {MANIFEST}: nothing but the release and its certificate was checked"
        yield Finding("every file of the folder", _EXPECTED, found, None)
        return
    listed = check(folder, None)
    for path, what in listed.problems:
        yield Finding(printable(f"file {os.path.relpath(path, folder)}"), _EXPECTED, what, False)
    if not listed.problems:
        yield Finding("every file of the folder", _EXPECTED, f"{listed.files} files, each byte as listed", True)
