"""What identifies rows or persons in spite of classes: rare values that leave as they are, repeated identifiers."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

import pyarrow as pa

from anonymize.certificate import Certificate
from anonymize.verification.findings import Finding
from anonymize.verification.rows import distinct, key_of

INSENSITIVE: Final = "insensitive column "
IDENTIFYING: Final = Fraction(1, 2)  # of the rows: above, a column must be said to be known to nobody


def identifying_columns(certificate: Certificate, release: pa.Table, source: pa.Table | None) -> Iterator[Finding]:
    """Checks columns that no model is about.

    Args:
        certificate: What is claimed.
        release: The published rows, as text.
        source: The original as text; None where the verifier does not have it.
    """
    given = certificate.parameters
    joint = "insider_k" in given  # then each party has looked at its own rows, for values of a single one
    least = 2 if joint else max(2, certificate.model.k or 2)
    configured = joint or "seeded" in given  # else nobody could say what is allowed
    open_ = [n for n, c in certificate.columns.items() if c.role == "insensitive" and not c.added]
    for names in ([name] for name in open_):
        yield from _rare(
            certificate, release, names, least, allowed=not configured or names[0] in given.get("allow_unique", ())
        )
    if len(open_) > 1:
        yield from _rare(certificate, release, open_, least, allowed=True)
    identifiers = [name for name, column in certificate.columns.items() if column.role == "identifiers"]
    for name in identifiers if source is not None else ():
        assert source is not None
        if name in source.column_names and name not in given.get("allow_repeated", ()):
            several = sum(rows > 1 for (value,), rows in distinct(source, [name]) if value)
            found = f"{several} values have several rows" if several else "one row of each value"
            yield Finding(f"persons by {name}", "one row of each, since k counts rows", found, not several)


def _rare(
    certificate: Certificate, release: pa.Table, names: list[str], least: int, *, allowed: bool
) -> Iterator[Finding]:
    counts: dict[tuple[object, ...], int] = {}
    for cells, rows in distinct(release, names):
        if any(cells):
            key = tuple(key_of(cell, certificate.columns[name].kind) for cell, name in zip(cells, names, strict=True))
            counts[key] = counts.get(key, 0) + rows
    few = sum(rows for rows in counts.values() if rows < least)
    if not few:
        return
    share = Fraction(few, release.num_rows)
    yield Finding(
        f"{INSENSITIVE}{' and '.join(names)}",
        f"values that at least {least} rows share, or nobody knows of a person",
        f"{100 * float(share):.3g} % of the rows have one that fewer share",
        share <= IDENTIFYING or allowed,
    )
