"""A file that whoever makes a release keeps, and of which the certificate holds a salted SHA-256 only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar, Self

import pydantic
from pydantic import BaseModel, ConfigDict

from link.errors import InputDataError


class SecretDocument(BaseModel):
    """The whole of such a file; its first field is `schema_`.

    Attributes:
        WHAT: It holds, in sentences.
        INDENT: Of its JSON; None: all is in one line.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    WHAT: ClassVar[str]
    INDENT: ClassVar[int | None] = None

    def write(self, path: Path) -> None:
        """Writes the document."""
        contents = self.model_dump(mode="json", by_alias=True)
        path.write_text(json.dumps(contents, indent=self.INDENT, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads a document.

        Raises:
            InputDataError: There is no such file, or it is no document of this version.
        """
        try:
            return cls.model_validate_json(path.read_bytes())
        except OSError as error:
            raise InputDataError(f"The {cls.WHAT} {path} cannot be read: {error.strerror}.") from error
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "the whole document"
            schema = cls.model_fields["schema_"].default
            raise InputDataError(f"{path} holds no {cls.WHAT} of {schema}: {place}: {first['msg']}.") from error
