"""`labels.json`: which original values each published label stands for. It is not for publication.

A label such as "white collar" does not say what it covers, and only who knows that can tell whether it is true of an
original row. The file names values of the input, those of suppressed rows too. So it stays with the original, and the
certificate holds its salted SHA-256 only.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, Literal

import pydantic
from pydantic import BaseModel, ConfigDict, Field

from link.errors import InputDataError

SCHEMA: Final = "comine.anonymization-labels/1"


class Labels(BaseModel):
    """The whole of `labels.json`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_: Literal["comine.anonymization-labels/1"] = Field(default=SCHEMA, alias="schema")
    salt: str = Field(description="Random: without it, a guess of the values could be held against the file's SHA-256.")
    columns: dict[str, dict[str, list[str]]] = Field(
        description="By quasi-identifier and published label, the values of the input that the label stands for."
    )

    def write(self, path: Path) -> None:
        """Writes the document."""
        contents = self.model_dump(mode="json", by_alias=True)
        path.write_text(json.dumps(contents, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Labels:
        """Reads a document.

        Raises:
            InputDataError: There is no such file, or it is no document of this version.
        """
        try:
            return cls.model_validate_json(path.read_bytes())
        except OSError as error:
            raise InputDataError(f"The labels {path} cannot be read: {error.strerror}.") from error
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "the whole document"
            raise InputDataError(f"{path} holds no labels of {SCHEMA}: {place}: {first['msg']}.") from error
