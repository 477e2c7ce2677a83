"""A release beside the table it was made of, for those who have both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from anonymize.certificate import Certificate
from anonymize.verification.findings import Finding
from anonymize.verification.rows import Key, distinct, key_of
from anonymize.verification.truthfulness import LabelledValues, truthful_rows


def truthfulness(
    certificate: Certificate,
    release: pa.Table,
    blanked: pa.Table | None,
    original: pa.Table,
    labels: LabelledValues | None,
) -> Iterator[Finding]:
    """Whether published rows are true: each covers an original row of its own, and counts are the original's.

    Args:
        certificate: What is claimed.
        release: The published rows that are not blanked, as text.
        blanked: Those that are; None where there are none.
        original: The input as text.
        labels: By quasi-identifier and label, the values that it covers; None where that is not known.
    """
    if (lacking := _lacking(certificate, original)) is not None:
        yield lacking
        return
    original = complete(certificate, original)
    same = original.num_rows == certificate.rows
    yield Finding("rows of the original", str(certificate.rows), str(original.num_rows), same)
    yield from _counts(certificate, original)
    yield from unchanged(certificate, release, original)
    if blanked is not None:
        everything = pa.concat_tables([release, blanked])
        yield from unchanged(certificate, everything, original, ("insensitive",), "insensitive cells, blanked rows too")
    if certificate.classes is not None:
        yield from truthful_rows(certificate, release, original, labels)


def _lacking(certificate: Certificate, original: pa.Table) -> Finding | None:
    own = [name for name, column in certificate.columns.items() if not column.added]
    lacking = [name for name in own if name not in original.column_names]
    if not lacking:
        return None
    return Finding("columns of the original", ", ".join(own), f"lacks {', '.join(lacking)}", False)


def _counts(certificate: Certificate, original: pa.Table) -> Iterator[Finding]:
    for name, counts in certificate.sensitive_counts.items():
        if counts is None:
            continue
        kind = certificate.columns[name].kind
        claimed = {key_of(value, kind): n for value, n in counts.items() if n}
        found = _counted(original, {name: kind})
        agree = found == Counter({(value,): n for value, n in claimed.items()})
        yield Finding(f"sensitive counts of {name}", "those of the original", "the same" if agree else "others", agree)


def unchanged(
    certificate: Certificate,
    release: pa.Table,
    original: pa.Table,
    roles: Sequence[str] = ("sensitive", "insensitive"),
    check: str = "sensitive and insensitive cells",
) -> Iterator[Finding]:
    """Whether the cells that no algorithm changes are, row by row, those of original rows, and of each only once."""
    kinds = {
        name: column.kind
        for name, column in certificate.columns.items()
        if column.role in roles and not column.added and name in release.column_names
    }
    if not kinds or not kinds.keys() <= set(original.column_names):
        return
    foreign = (_counted(release, kinds) - _counted(original, kinds)).total()
    yield Finding(
        check,
        "each row's are those of one row of the original",
        "they are" if not foreign else f"{foreign} rows have cells that no original row has together",
        not foreign,
    )


def complete(certificate: Certificate, original: pa.Table) -> pa.Table:
    """The rows that were anonymised: where there are fewer, those that lack values were left out before."""
    if original.num_rows <= certificate.rows:
        return original
    for name, column in certificate.columns.items():
        if column.role in ("quasi_identifiers", "sensitive") and name in original.column_names:
            original = original.filter(pc.not_equal(original.column(name), ""))
    return original


def with_counts(certificate: Certificate, original: pa.Table) -> Certificate:
    """The certificate with the sensitive counts that it withholds, taken from the original."""
    original = complete(certificate, original)
    if original.num_rows != certificate.rows:
        return certificate
    counts = {
        name: counts
        if counts is not None or name not in original.column_names
        else {value: rows for (value,), rows in distinct(original, [name])}
        for name, counts in certificate.sensitive_counts.items()
    }
    return certificate.model_copy(update={"sensitive_counts": counts})


def _counted(table: pa.Table, kinds: Mapping[str, str]) -> Counter[tuple[Key, ...]]:
    counted: Counter[tuple[Key, ...]] = Counter()
    for cells, rows in distinct(table, list(kinds)):
        counted[tuple(map(key_of, cells, kinds.values()))] += rows
    return counted
