"""`moments.json`: the sums of condensed groups, from which the published records were drawn. It is not for publication.

Few records of whole numbers follow from their sums and sums of products: of groups of five ages with years of schooling
often exactly. So the moments are no part of the certificate, which holds their salted SHA-256 only. Who makes a release
keeps the file, and shows it to a verifier whom the records may be shown to.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from pydantic import Field

from anonymize.certificate import Document

SCHEMA: Final = "comine.anonymization-moments/1"


class GroupMoments(Document):
    """The whole of `moments.json` (Aggarwal and Yu 2004)."""

    WHAT: ClassVar = "moments"

    schema_: Literal["comine.anonymization-moments/1"] = Field(default=SCHEMA, alias="schema")
    salt: str = Field(description="Random: without it, a guess of the sums could be held against the file's SHA-256.")
    origins: list[float] = Field(description="By column, what was taken from its numbers before they were summed.")
    units: list[float] = Field(description="By column, what its numbers were then divided by.")
    sums: list[list[float]] = Field(description="By group, Fs: the sum of each column.")
    products: list[list[list[float]]] = Field(description="By group, Sc: the sum of each product of two columns.")
