"""Verifies a release folder: what its certificate claims against what its files hold.

The code shares nothing with the algorithms and models that made the release but the form of the certificate. It reads
`certificate.json` and `release.csv`, `release.parquet` or both, and recomputes from the published rows: hashes,
columns, rows, classes, every claimed privacy condition, sensitive counts and metrics. A condition that it does not know
fails. Where records were condensed there are no classes; then the groups' sizes are checked, and with `moments.json`
their moments. Where identities were replaced only the original shows what holds.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Final

import pyarrow as pa

from anonymize.certificate import Certificate, sha256_of
from anonymize.verification.classes import equivalence_classes
from anonymize.verification.condensed import condensed
from anonymize.verification.findings import Finding, Verification
from anonymize.verification.identifying import identifying_columns
from anonymize.verification.labels import Labels, consistent
from anonymize.verification.original import unchanged, with_counts
from anonymize.verification.replaced import replaced
from anonymize.verification.rows import equal_columns, read_csv, read_parquet, read_release, text_table
from anonymize.verification.truthfulness import LabelledValues
from link.errors import InputDataError

CERTIFICATE: Final = "certificate.json"
RELEASE_CSV: Final = "release.csv"
RELEASE_PARQUET: Final = "release.parquet"
MOMENTS: Final = "moments.json"
LABELS: Final = "labels.json"


def verify(folder: Path | str, original: Path | str | None = None, separator: str = ",") -> Verification:
    """Checks a release folder.

    Args:
        folder: With `certificate.json` and `release.csv`, `release.parquet` or both.
        original: The file that was anonymised, CSV or `.parquet`, where the verifier may see it.
        separator: Of the original's cells, if it is CSV.

    Returns:
        All findings. Files that cannot be read are findings as well.
    """
    return Verification(tuple(_findings(Path(folder), Path(original) if original else None, separator)))


def _findings(folder: Path, original: Path | None, separator: str) -> Iterator[Finding]:
    try:
        certificate = Certificate.read(folder / CERTIFICATE)
    except InputDataError as error:
        yield Finding("certificate", "a certificate of this version", error.message, False)
        return
    sealed = certificate.computed_digest()
    yield Finding("digest of the certificate", certificate.digest, sealed, certificate.digest == sealed)
    yield from _hashes(folder, certificate)
    try:
        release = _release(folder)
        agree = [formats_agree(*release)] if len(release) > 1 else []
        text = text_table(release[0])
    except InputDataError as error:
        yield Finding("release", "readable files", error.message, False)
        return
    yield from agree
    columns = list(_columns(certificate, text))
    yield from columns
    if not all(finding.ok for finding in columns):  # nothing else can be looked at
        return
    yield from _rows(certificate, text)
    source = None
    if original is not None:
        try:
            read = read_parquet(original) if original.suffix in (".parquet", ".pq") else read_csv(original, separator)
            source = text_table(read)
        except InputDataError as error:
            yield Finding("original", "a readable file", error.message, False)
        else:
            yield _same_original(certificate, original)
            certificate = with_counts(certificate, source)
    yield from identifying_columns(certificate, text, source)
    if certificate.classes is None:
        yield Finding("equivalence classes", "none", "no equivalence classes: k says nothing of published rows", True)
        yield _explained(certificate)
        yield from condensed(certificate, text, folder / MOMENTS)
        paired = certificate.replacement is not None and certificate.replacement.omitted is not None
        if source is not None and certificate.groups is None and not paired:
            yield from unchanged(certificate, text, source)
        yield from replaced(certificate, text, source)
        return
    labels = None
    if source is not None and certificate.hashes.labels is not None:
        labels = yield from _labels(certificate, folder / LABELS)
    yield from equivalence_classes(certificate, text, source, labels)


def _labels(certificate: Certificate, path: Path) -> Generator[Finding, None, LabelledValues | None]:
    """What the labels of a release mean; None where the file is not there."""
    if not path.exists():
        return None
    claimed, found = str(certificate.hashes.labels), sha256_of(path)
    yield Finding(f"SHA-256 of {path.name}", claimed, found, found == claimed)
    try:
        labels = Labels.read(path)
    except InputDataError as error:
        yield Finding("labels", "a readable file", error.message, False)
        return None
    yield from consistent(certificate, labels)
    return labels.columns


def _explained(certificate: Certificate) -> Finding:
    """Whether there is a reason for there being no classes, and no claim that only classes can meet."""
    model = certificate.model
    of_classes = list(model.lists)
    if model.k is not None and certificate.groups is None:
        of_classes.insert(0, "k")
    found = f"{', '.join(of_classes)} claimed, and no classes" if of_classes else "none"
    return Finding("claims about classes", "none without classes", found, not of_classes)


def _hashes(folder: Path, certificate: Certificate) -> Iterator[Finding]:
    if not certificate.hashes.release:
        yield Finding("SHA-256 of the release", "one file at least", "the certificate names none", False)
    for name, claimed in certificate.hashes.release.items():
        path = folder / name
        found = sha256_of(path) if path.name == name and path.is_file() else "there is no such file in the folder"
        yield Finding(f"SHA-256 of {name}", claimed, found, found == claimed)
    for name in (RELEASE_CSV, RELEASE_PARQUET):
        if (folder / name).exists() and name not in certificate.hashes.release:
            yield Finding(f"SHA-256 of {name}", "in the certificate", "the file is there, but no hash of it", False)


def _release(folder: Path) -> list[pa.Table]:
    readers = {RELEASE_CSV: read_release, RELEASE_PARQUET: read_parquet}
    found = [read(folder / name) for name, read in readers.items() if (folder / name).exists()]
    if not found:
        raise InputDataError(f"{folder} holds neither {RELEASE_CSV} nor {RELEASE_PARQUET}.")
    return found


def formats_agree(left: pa.Table, right: pa.Table) -> Finding:
    """Whether both files of a release say the same."""
    same = left.column_names == right.column_names and left.num_rows == right.num_rows
    same = same and all(equal_columns(left.column(name), right.column(name)) for name in left.column_names)
    check = f"{RELEASE_CSV} and {RELEASE_PARQUET}"
    return Finding(check, "the same rows", "the same rows" if same else "different rows", same)


def _columns(certificate: Certificate, text: pa.Table) -> Iterator[Finding]:
    expected = [name for name, column in certificate.columns.items() if column.role != "identifiers"]
    yield Finding("columns", ", ".join(expected), ", ".join(text.column_names), text.column_names == expected)
    if certificate.classes is None:
        return
    sensitive = [name for name, column in certificate.columns.items() if column.role == "sensitive"]
    counted = list(certificate.sensitive_counts)
    same = sorted(counted) == sorted(sensitive)
    yield Finding("sensitive columns with counts", ", ".join(sensitive), ", ".join(counted), same)
    model = certificate.model
    looked_at = {name for claim in model.p for name in claim.columns}
    for claims in (model.l, model.t, model.alpha, model.levels, model.beta, model.delta):
        looked_at |= {claim.column for claim in claims}
    known = looked_at <= set(sensitive)
    yield Finding("columns of the model", "sensitive ones", ", ".join(sorted(looked_at)) or "none", known)


def _rows(certificate: Certificate, text: pa.Table) -> Iterator[Finding]:
    same = certificate.published == text.num_rows
    yield Finding("published rows", str(certificate.published), str(text.num_rows), same)
    yield from _suppressed(certificate)
    for name, counts in certificate.sensitive_counts.items():
        if counts is None:
            fair = certificate.suppressed > 0 and certificate.suppression != "keep"
            why = "they would disclose suppressed rows" if fair else "no suppressed rows that they would disclose"
            yield Finding(f"counts of {name} withheld", "for the sake of suppressed rows", why, fair)
        else:
            total = sum(counts.values())
            yield Finding(f"input's rows by {name}", str(certificate.rows), str(total), certificate.rows == total)


def _suppressed(certificate: Certificate) -> Iterator[Finding]:
    """Whether no more rows were left out than the certificate allows, if it says so."""
    share = certificate.parameters.get("max_suppression")
    if share is None:
        return
    try:
        most = math.floor(Fraction(str(share)) * certificate.rows)
    except (ValueError, ZeroDivisionError):
        yield Finding("suppressed rows", "a share of rows as max_suppression", f"{share}, which is none", False)
        return
    allowed = certificate.suppressed <= most
    yield Finding("suppressed rows", f"{most} at most", str(certificate.suppressed), allowed)


def _same_original(certificate: Certificate, original: Path) -> Finding:
    claimed = certificate.hashes.input
    if claimed is None:
        return Finding(
            "SHA-256 of the original", "none in the certificate", "the certificate names no hash of the input", None
        )
    found = sha256_of(original)
    return Finding("SHA-256 of the original", claimed, found, found == claimed)
