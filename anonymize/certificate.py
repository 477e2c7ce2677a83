"""`certificate.json`: what is claimed about a release, in a form that a program can check (`anonymize.verification`).

The document is versioned, and its JSON Schema is published by `json_schema`. It holds counts of sensitive values, as
t-closeness needs them; it holds no row of the input, and of the quasi-identifiers no value that is not published or
declared as one of an ordinal column. The sums of condensed groups are a file of their own (`verification.moments`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, Self, get_args

import pydantic
from pydantic import BaseModel, ConfigDict, Field

from link.errors import InputDataError

SCHEMA: Final = "comine.anonymization-certificate/1"

_HEX_DIGEST = r"^[0-9a-f]{64}$"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


Written = int | float | Annotated[str, Field(pattern=r"^[0-9]+/[1-9][0-9]*$")]
"""A parameter as the decimal that was written; as the text of a fraction, 1/3, where no decimal writes it."""


class DiversityClaim(_Part):
    """ℓ-diversity of one sensitive column."""

    kind: Literal["distinct", "entropy", "recursive"]
    value: int | float = Field(gt=0, description="ℓ.")
    column: str
    c: Written | None = Field(default=None, description="Of recursive (c, ℓ)-diversity.")


class ClosenessClaim(_Part):
    """t-closeness of one sensitive column to the input's counts."""

    distance: Literal["variational", "equal", "kl", "ordered", "hierarchical"]
    value: Written = Field(description="t.")
    column: str
    order: list[str] | None = Field(default=None, description="Of the ordered distance: all values, lowest first.")
    positions: list[float] | None = Field(
        default=None, description="The positions of the values of `order`; null: their ranks are their positions."
    )
    paths: dict[str, list[str]] | None = Field(
        default=None, description="Of the hierarchical distance: by value, its labels from level 0 to the top."
    )


class SensitivityClaim(_Part):
    """p-sensitivity: distinct values in each class."""

    value: int = Field(ge=1, description="p.")
    columns: list[str]


class ShareClaim(_Part):
    """(α, k): the largest share of a value in each class."""

    value: Written = Field(description="α.")
    column: str
    values: list[str] | None = Field(default=None, description="The values that are bounded; null: all.")


class LevelsClaim(_Part):
    """(H, p, k): distinct sensitive levels in each class."""

    value: int = Field(ge=1, description="H.")
    column: str
    levels: list[list[str]] = Field(description="The values of each level, lowest level first.")
    weights: list[float] | None = Field(description="Of the levels, in their order.")


class LikenessClaim(_Part):
    """β-likeness: how much a value's share in a class may exceed that of the input."""

    value: Written = Field(description="β.")
    column: str
    enhanced: bool = Field(description="Whether the limit of a value of share q is min(β, −ln q).")


class DisclosureClaim(_Part):
    """δ-disclosure: the logarithm below which a value's share in a class differs from that of the input."""

    value: Written = Field(description="δ.")
    column: str


class Claims(_Part):
    """The privacy model: every condition that each class meets. Lists are empty where nothing is claimed."""

    k: int | None = Field(
        ge=1, description="Rows of each class at least; without classes, records of each group; null: not claimed."
    )
    l: list[DiversityClaim] = []  # noqa: E741 - the model's own name
    t: list[ClosenessClaim] = []
    p: list[SensitivityClaim] = []
    alpha: list[ShareClaim] = []
    levels: list[LevelsClaim] = Field(default=[], alias="H")
    beta: list[LikenessClaim] = []
    delta: list[DisclosureClaim] = []

    # Claims of models that other packages bring are extra fields; the published schema knows none.
    model_config = ConfigDict(extra="allow", json_schema_extra={"additionalProperties": False})
    __pydantic_extra__: dict[str, list[dict[str, Any]]] = Field(init=False)

    @property
    def outside(self) -> dict[str, list[dict[str, Any]]]:
        """By key, claims of models that comine does not have itself."""
        return dict(self.__pydantic_extra__)

    @property
    def lists(self) -> dict[str, Sequence[object]]:
        """By key, all claims beside k; keys without one are left out."""
        own = {
            (field.alias or name): getattr(self, name) for name, field in type(self).model_fields.items() if name != "k"
        }
        return {key: claimed for key, claimed in (own | self.outside).items() if claimed}


class CertifiedColumn(_Part):
    """What a column is."""

    role: Literal["identifiers", "quasi_identifiers", "sensitive", "insensitive"]
    kind: Literal["numeric", "ordinal", "tree", "boolean", "date", "code"]
    added: bool = Field(default=False, description="Not in the input: what the algorithm says of each record.")


class Scale(_Part):
    """How the loss of a quasi-identifier's cells is measured; what the loss of a column can be recomputed from.

    An interval [a, b] has lost (b − a)/span, a set (values − 1)/(total − 1), a label (leaves − 1)/(total − 1), `*` and
    a suppressed row 1, anything else 0.
    """

    span: float | None = Field(default=None, description="Largest less smallest value of the input.")
    order: list[str] | None = Field(default=None, description="All values of an ordinal column; the span is of ranks.")
    total: int | None = Field(default=None, description="Values of the column, or leaves of its hierarchy.")
    labels: dict[str, int] = Field(default={}, description="Published labels of more than one leaf: their leaves.")


class Groups(_Part):
    """Condensed groups (Aggarwal and Yu 2004): what the published records were drawn from."""

    columns: list[str] = Field(description="The condensed columns, in the order of the sums.")
    sizes: list[int] = Field(description="Records of each group.")
    factor: int = Field(ge=1, description="Published records for each record of a group.")
    moments: str = Field(
        pattern=_HEX_DIGEST,
        description="SHA-256 of moments.json, which holds the sums of the groups, and is not for publication.",
    )


class Replacement(_Part):
    """Identity replacement: what every published record has in common with its original."""

    ranges: dict[str, float] = Field(description="By column, how far a value may move at most; 0: it stays.")
    alpha_min: float = Field(description="Least similarity of identity that is accepted.")
    alpha_max: float = Field(description="Greatest similarity of identity that is accepted.")
    ch_max: float = Field(description="Greatest |1 − β| that is accepted.")
    beta: Literal["projection", "symmetric"] = Field(description="The reading of the similarity of characteristics.")
    scales: dict[str, float] = Field(default={}, description="What a value of 0 is compared with; the range if absent.")
    influences: dict[str, float] = Field(default={}, description="ζ by column; 1 if absent.")
    weights: dict[str, float] = Field(default={}, description="By numeric column, its weight in β; 1 if absent.")
    omitted: list[int] | None = Field(
        default=[],
        description="Positions of input rows that are not published, ascending; null where the published rows are "
        "sorted, so that none is beside its original.",
    )
    unmet: int = Field(default=0, description="Published records that miss the thresholds, the best of their tries.")


class Hashes(_Part):
    """SHA-256 of files, in hexadecimal."""

    release: dict[str, str] = Field(description="By name of the file.")
    input: str | None = Field(
        default=None, pattern=_HEX_DIGEST, description="Null where the input was no file, or is not to be published."
    )
    hierarchies: dict[str, str] = Field(default={}, description="By column.")
    labels: str | None = Field(
        default=None,
        pattern=_HEX_DIGEST,
        description="Of labels.json, which holds the original values of each label and is not for publication; null "
        "where cells show by themselves what they cover.",
    )
    configuration: str | None = Field(default=None, pattern=_HEX_DIGEST)


class Software(_Part):
    """What made the release."""

    comine: str
    python: str
    numpy: str
    pyarrow: str


class Document(BaseModel):
    """A file of JSON beside a release; its first field is `schema_`.

    Attributes:
        WHAT: It is, or holds, in sentences.
        WRONG: Begins what is said of another file.
        INDENT: Of its JSON; None: all is in one line.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    WHAT: ClassVar[str]
    WRONG: ClassVar[str] = "holds no"
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
            (schema,) = get_args(cls.model_fields["schema_"].annotation)
            raise InputDataError(f"{path} {cls.WRONG} {cls.WHAT} of {schema}: {place}: {first['msg']}.") from error


class Certificate(Document):
    """The whole of `certificate.json`.

    Example:
        Of a table with the ages and illnesses of six people:

        >>> models = Requirements((KAnonymity(2),))
        >>> certificate = publish_folder("release", mondrian(table, models), table, models)
        >>> certificate.rows, certificate.suppressed, certificate.model.k
        (6, 0, 2)
    """

    WHAT: ClassVar = "certificate"
    WRONG: ClassVar = "is no"
    INDENT: ClassVar = 2

    schema_: Literal["comine.anonymization-certificate/1"] = Field(alias="schema")
    algorithm: str
    model: Claims
    columns: dict[str, CertifiedColumn] = Field(
        description="Every column of the input, identifiers included, and those that the algorithm added."
    )
    rows: int = Field(ge=0, description="Rows of the input that were anonymised.")
    published: int = Field(ge=0, description="Rows of the release.")
    suppressed: int = Field(ge=0, description="Input rows that are left out or blanked.")
    suppression: Literal["drop", "blank", "keep"] = Field(
        description="What became of suppressed rows: left out; published without quasi-identifiers and sensitive "
        "values; published without quasi-identifiers."
    )
    classes: int | None = Field(
        description="Distinct published tuples of quasi-identifiers, blanked rows left out. Null: no equivalence "
        "classes."
    )
    statement: str = Field(description="What holds of this release, in words.")
    node: dict[str, int] | None = Field(default=None, description="By quasi-identifier, the level of the whole column.")
    heights: dict[str, int] | None = Field(
        default=None, description="By quasi-identifier, the height of its hierarchy."
    )
    sensitive_counts: dict[str, dict[str, int] | None] = Field(
        default={},
        description="By sensitive column, rows of the input with each value; t-closeness is measured against them. "
        "Null where they would disclose the suppressed rows: these are what is left of the input without the release, "
        "and they do not meet the model as a class of their own. Empty where no sensitive values are published.",
    )
    scales: dict[str, Scale] | None = Field(
        default=None, description="By quasi-identifier, how GCP is recomputed from cells; null where it cannot be."
    )
    metrics: dict[str, int | float] = Field(default={})
    statistics: dict[str, int | float] = Field(default={}, description="The work that was done.")
    groups: Groups | None = None
    replacement: Replacement | None = None
    parameters: dict[str, Any] = Field(default={}, description="What the user asked for.")
    hashes: Hashes
    software: Software
    digest: str = Field(
        default="",
        description="SHA-256 of this document in canonical form without this field. It shows accidents; as everybody "
        "can compute it, it proves nothing about who wrote the document.",
    )

    def sealed(self) -> Certificate:
        """The same certificate with its digest."""
        return self.model_copy(update={"digest": self.computed_digest()})

    def computed_digest(self) -> str:
        """SHA-256 of the document without its digest: keys sorted, no blanks, UTF-8."""
        contents = self.model_dump(mode="json", by_alias=True, exclude={"digest"})
        canonical = json.dumps(contents, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(canonical.encode()).hexdigest()


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of `certificate.json`."""
    return Certificate.model_json_schema(by_alias=True)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal.

    Raises:
        InputDataError: The file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputDataError(f"{path} cannot be read: {error.strerror}.") from error
