"""Releases with equivalence classes: rows, classes, conditions, counts, metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from anonymize.certificate import Certificate
from anonymize.verification.conditions import conditions
from anonymize.verification.findings import Finding
from anonymize.verification.losses import metrics
from anonymize.verification.original import truthfulness
from anonymize.verification.rows import SUPPRESSED, EquivalenceClass, classes_of, key_of
from anonymize.verification.truthfulness import LabelledValues


def equivalence_classes(
    certificate: Certificate, text: pa.Table, source: pa.Table | None, labels: LabelledValues | None
) -> Iterator[Finding]:
    """Checks a release with classes.

    Args:
        certificate: What is claimed.
        text: The published rows.
        source: The original as text; None where the verifier does not have it.
        labels: What labels mean; None where that is not known.
    """
    quasi = [name for name, column in certificate.columns.items() if column.role == "quasi_identifiers"]
    kinds = {name: column.kind for name, column in certificate.columns.items() if column.role == "sensitive"}
    shown, hidden = text, None
    if certificate.suppression == "blank" and certificate.suppressed:
        blanked = pc.and_(_all_equal(text, quasi, SUPPRESSED), _all_equal(text, list(kinds), ""))
        shown, hidden = text.filter(pc.invert(blanked)), text.filter(blanked)
        found = text.num_rows - shown.num_rows
        yield Finding("blanked rows", str(certificate.suppressed), str(found), found == certificate.suppressed)
    classes = classes_of(shown, quasi, kinds)
    counted = classes
    if certificate.suppression == "keep" and certificate.suppressed:
        counted = [each for each in classes if set(each.cells) != {SUPPRESSED}]
        found = shown.num_rows - sum(each.size for each in counted)
        yield Finding("kept suppressed rows", str(certificate.suppressed), str(found), found == certificate.suppressed)
    expected = certificate.rows - certificate.suppressed
    found = sum(each.size for each in counted)
    yield Finding("rows that are not suppressed", str(expected), str(found), expected == found)
    yield Finding("classes", str(certificate.classes), str(len(classes)), certificate.classes == len(classes))
    yield from conditions(certificate, classes)
    yield from _no_more_than_the_input(certificate, classes)
    yield from metrics(certificate, text, counted)
    if source is not None:
        yield from truthfulness(certificate, shown, hidden, source, labels)


def _no_more_than_the_input(certificate: Certificate, classes: Sequence[EquivalenceClass]) -> Iterator[Finding]:
    """The release has no more rows with any sensitive value than the input."""
    for name, counts in certificate.sensitive_counts.items():
        if counts is None:
            continue
        kind = certificate.columns[name].kind
        left = Counter({key_of(value, kind): n for value, n in counts.items()})
        for each in classes:
            left.subtract(each.counts[name])
        beyond = sorted(str(value) for value, n in left.items() if n < 0)
        found = f"more rows with {', '.join(beyond[:3])}" if beyond else "no more rows of any value"
        yield Finding(f"published {name}", "no more rows of a value than the input has", found, not beyond)


def _all_equal(text: pa.Table, columns: Sequence[str], cell: str) -> pa.ChunkedArray:
    """Rows whose cells in some columns all are a given text."""
    equal = pa.chunked_array([pa.array([True] * text.num_rows, pa.bool_())])
    for name in columns:
        equal = pc.and_(equal, pc.equal(text.column(name), cell))
    return equal
