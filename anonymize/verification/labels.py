"""`labels.json`: which original values each published label stands for. It is not for publication.

A label such as "white collar" does not say what it covers, and only who knows that can tell whether it is true of an
original row. The file names values of the input, those of suppressed rows too. So it stays with the original, and the
certificate holds its salted SHA-256 only.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from pydantic import Field

from anonymize.verification.secret_document import SecretDocument

SCHEMA: Final = "comine.anonymization-labels/1"


class Labels(SecretDocument):
    """The whole of `labels.json`."""

    WHAT: ClassVar = "labels"
    INDENT: ClassVar = 2

    schema_: Literal["comine.anonymization-labels/1"] = Field(default=SCHEMA, alias="schema")
    salt: str = Field(description="Random: without it, a guess of the values could be held against the file's SHA-256.")
    columns: dict[str, dict[str, list[str]]] = Field(
        description="By quasi-identifier and published label, the values of the input that the label stands for."
    )
