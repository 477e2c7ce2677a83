"""A release beside the table it was made of, for those who have both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import pyarrow as pa

from anonymize.certificate import Certificate
from anonymize.verification.findings import Finding
from anonymize.verification.rows import Key, distinct, key_of


def truthfulness(certificate: Certificate, release: pa.Table, original: pa.Table) -> Iterator[Finding]:
    """Whether unchanged columns of the published rows are those of original rows, and counts those of the original.

    Args:
        certificate: What is claimed.
        release: The published rows that are not blanked, as text.
        original: The input as text.
    """
    own = {name: column for name, column in certificate.columns.items() if not column.added}
    lacking = [name for name in own if name not in original.column_names]
    if lacking:
        yield Finding("columns of the original", ", ".join(own), f"lacks {', '.join(lacking)}", False)
        return
    enough = original.num_rows >= certificate.rows
    yield Finding("rows of the original", f"{certificate.rows} or more", str(original.num_rows), enough)
    if original.num_rows == certificate.rows:
        for name, counts in certificate.sensitive_counts.items():
            if counts is None:
                continue
            kind = certificate.columns[name].kind
            claimed = {key_of(value, kind): n for value, n in counts.items() if n}
            found = _counted(original, {name: kind})
            agree = found == Counter({(value,): n for value, n in claimed.items()})
            yield Finding(
                f"sensitive counts of {name}", "those of the original", "the same" if agree else "others", agree
            )
    unchanged = {
        name: column.kind
        for name, column in own.items()
        if column.role in ("sensitive", "insensitive") and name in release.column_names
    }
    if unchanged:
        foreign = (_counted(release, unchanged) - _counted(original, unchanged)).total()
        yield Finding(
            "sensitive and insensitive cells",
            "each row's are those of one row of the original",
            "they are" if not foreign else f"{foreign} rows have cells that no original row has together",
            not foreign,
        )


def with_counts(certificate: Certificate, original: pa.Table) -> Certificate:
    """The certificate with the sensitive counts that it withholds, taken from the original."""
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
