"""`labels.json`: which original values each published label covers. It is not for publication.

A label such as "white collar" does not say what it covers, and only who knows that can decide whether it is true of an
original row. The file names values of the input, those of suppressed rows too. So it stays with the original, and the
certificate holds its salted SHA-256 only.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import ClassVar, Final, Literal

from pydantic import Field

from anonymize.certificate import Certificate, Document
from anonymize.verification.findings import Finding

SCHEMA: Final = "comine.anonymization-labels/1"


class Labels(Document):
    """The whole of `labels.json`."""

    WHAT: ClassVar = "labels"
    INDENT: ClassVar = 2

    schema_: Literal["comine.anonymization-labels/1"] = Field(default=SCHEMA, alias="schema")
    salt: str = Field(description="Random: without it, a guess of the values could be held against the file's SHA-256.")
    columns: dict[str, dict[str, list[str]]] = Field(
        description="By quasi-identifier and published label, the values of the input that the label covers."
    )


def consistent(certificate: Certificate, labels: Labels) -> Iterator[Finding]:
    """Whether labels can be those of hierarchies: else who writes the file could make any row true.

    Of two labels of a tree one lies within the other, or they have no value in common; where a column has one level,
    they have none. No label covers more values than its hierarchy has leaves below it.

    Args:
        certificate: What is claimed.
        labels: What each label of the release covers.
    """
    for name, column in labels.columns.items():
        known = {label: set(values) for label, values in column.items()}
        one_level = certificate.node is not None and name in certificate.node
        torn = sum(
            bool(one & other) and (one_level or not (one <= other or other <= one))
            for one, other in combinations(known.values(), 2)
        )
        scale, kind = (certificate.scales or {}).get(name), certificate.columns[name].kind
        leaves = (
            scale.labels if scale is not None and kind not in ("numeric", "date") else {}
        )  # whose leaves may be bins
        wide = sum(len(known[label]) > number for label, number in leaves.items() if label in known)
        found = "they are"
        if torn or wide:
            found = f"{torn} pairs overlap, {wide} cover more values than they have leaves"
        yield Finding(f"labels of {name}", "those of a hierarchy", found, not torn and not wide)
