"""The folder of a release: the rows, the certificate, the page and a manifest, written whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from anonymize.certificate import Certificate
from anonymize.certifying import publish_folder
from anonymize.release import Release
from anonymize.verifier import CERTIFICATE, LABELS, MOMENTS, RELEASE_CSV, RELEASE_PARQUET
from jobs.anonymization.inputs import Inputs, sources_of
from jobs.anonymization.page import report
from jobs.results.destination import MANIFEST
from jobs.results.folder import write_whole
from jobs.results.manifest import seal

REPORT: Final = "report.html"
FILES: Final = frozenset({RELEASE_CSV, RELEASE_PARQUET, CERTIFICATE, REPORT, MOMENTS, LABELS, MANIFEST})


def holds_earlier(folder: Path) -> bool:
    """Whether a folder holds an earlier release and nothing else."""
    present = {path.name for path in folder.iterdir()}
    return CERTIFICATE in present and present <= FILES


def write_folder(out: Path, inputs: Inputs, release: Release) -> Certificate:
    """Writes `release.csv`, `release.parquet`, `certificate.json`, `report.html`; where needed the two private files.

    These are `moments.json` of condensation, and `labels.json` where labels need an explanation. The manifest that
    lists all of them is signed by nobody.

    Returns:
        The certificate.

    Raises:
        ConfigurationError: `out` is a file, or holds something other than an earlier release.
        ResourceError: The disk is full, or the folder cannot be written.
    """
    certificates = []

    def fill(draft: Path) -> None:
        certificate = publish_folder(
            draft,
            release,
            inputs.table,
            inputs.requirements,
            hierarchies=inputs.hierarchies,
            sources=sources_of(inputs),
        )
        (draft / REPORT).write_text(report(inputs, release, certificate), encoding="utf-8")
        seal(draft, None)
        certificates.append(certificate)

    write_whole(out, fill, holds_earlier)
    return certificates[0]
