"""`moments.json`: the sums of condensed groups, from which the published records were drawn. It is not for publication.

Few records of whole numbers follow from their sums and sums of products: of groups of five ages with years of schooling
often exactly. So the moments are no part of the certificate, which holds their salted SHA-256 only. Who makes a release
keeps the file, and shows it to a verifier whom the records may be shown to.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, Literal

import pydantic
from pydantic import BaseModel, ConfigDict, Field

from link.errors import InputDataError

SCHEMA: Final = "comine.anonymization-moments/1"


class GroupMoments(BaseModel):
    """The whole of `moments.json` (Aggarwal and Yu 2004)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_: Literal["comine.anonymization-moments/1"] = Field(default=SCHEMA, alias="schema")
    salt: str = Field(description="Random: without it, a guess of the sums could be held against the file's SHA-256.")
    origins: list[float] = Field(description="By column, what was taken from its numbers before they were summed.")
    units: list[float] = Field(description="By column, what its numbers were then divided by.")
    sums: list[list[float]] = Field(description="By group, Fs: the sum of each column.")
    products: list[list[list[float]]] = Field(description="By group, Sc: the sum of each product of two columns.")

    def write(self, path: Path) -> None:
        """Writes the document."""
        path.write_text(json.dumps(self.model_dump(mode="json", by_alias=True)) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> GroupMoments:
        """Reads a document.

        Raises:
            InputDataError: There is no such file, or it is no document of this version.
        """
        try:
            return cls.model_validate_json(path.read_bytes())
        except OSError as error:
            raise InputDataError(f"The moments {path} cannot be read: {error.strerror}.") from error
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "the whole document"
            raise InputDataError(f"{path} holds no moments of {SCHEMA}: {place}: {first['msg']}.") from error
