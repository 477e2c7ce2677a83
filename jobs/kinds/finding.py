"""What a job has found, at those who learn it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from jobs.spec.job import JobSpec
from mining.joint.spent import Spent
from protos.v1.control_pb2 import Release


@dataclass(slots=True)
class SavedFinding:
    """A finding in a result folder, as far as it was seen to be what parties signed.

    Attributes:
        folder: The result folder.
        spec: The job.
        finding: It, once a party was seen to have signed it.
        spoiled: Tables that were found to hold something else, or cannot be read.
        packed: By kind of file and number of rows what was read from tables, once for all parties.
    """

    folder: Path
    spec: JobSpec
    finding: Finding | None = None
    spoiled: set[str] = field(default_factory=set)
    packed: dict[tuple[str, int], bytes] = field(default_factory=dict)


class Finding(ABC):
    """What a job has found: in one form that is signed, in files, and in words.

    Attributes:
        name: What people call it.
        signed_as: What parties sign of it, in a word.
    """

    name: ClassVar[str]
    signed_as: ClassVar[str]

    @classmethod
    @abstractmethod
    def unpack(cls, packed: bytes) -> Finding:
        """What `pack` made.

        Raises:
            ValueError: It is something else.
        """

    @classmethod
    @abstractmethod
    def files(cls, spec: JobSpec) -> frozenset[str]:
        """The files of a result folder that hold it, tables among them."""

    @classmethod
    @abstractmethod
    def differences(cls, saved: SavedFinding, release: Release) -> Iterator[str]:
        """What a folder holds otherwise than a party signed; sets what is the same, or spoiled, in `saved`.

        Args:
            saved: In the folder; handed on from party to party.
            release: What one party signed: the digest of its finding.
        """

    @property
    @abstractmethod
    def value(self) -> Any:
        """It in the library's own terms: itemsets, a model or a release."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Rows that it was found in."""

    @property
    def spent(self) -> Spent | None:
        """What each record has spent of its privacy; None where nothing is perturbed."""
        return None

    @abstractmethod
    def pack(self) -> bytes:
        """The canonical bytes: equal for equal findings."""

    @abstractmethod
    def canonical(self) -> Finding:
        """The same in the order in which everybody has it."""

    @abstractmethod
    def fits(self, spec: JobSpec) -> bool:
        """Whether it is what a job asks for."""

    def tables(self, spec: JobSpec) -> dict[str, pa.Table]:
        """The tables that are written as CSV and Parquet, by name."""
        return {}

    def compared(self, spec: JobSpec) -> dict[str, pa.Table]:
        """The tables by which two results are compared: columns of lists of texts name a row, others are figures."""
        return self.tables(spec)

    def write(self, folder: Path, spec: JobSpec) -> None:
        """Writes its other files into a folder, which exists."""

    def account(self, spec: JobSpec) -> dict[str, Any]:
        """What `result.json` says of it, by key of `ResultDocument`."""
        return {}

    def figures(self, spec: JobSpec) -> list[tuple[str, int]]:
        """The key figures of a report: what they count, and the number."""
        return []

    def facts(self, spec: JobSpec) -> list[tuple[str, str]]:
        """What else a report says of it, in its list of facts."""
        return []

    def sections(self, spec: JobSpec) -> dict[str, Any]:
        """What the templates of a report show of it, by the name of the section."""
        return {}

    def page_data(self, spec: JobSpec) -> dict[str, Any] | None:
        """What the scripts of a report show of it; None where none is to run."""
        return None

    def printed(self) -> dict[str, Any]:
        """What standard output gets of it beside its tables, as JSON, by key of `ResultDocument`."""
        return {}

    def text(self) -> str:
        """What standard output gets of it where it has no tables."""
        return ""

    def lines(self) -> Iterator[str]:
        """It in words, for a terminal; nothing where its tables say it."""
        yield from ()

    def methods(self, spec: JobSpec) -> tuple[tuple[str, ...], str]:
        """The methods of a result in Python that give it, and what these are good for, as the end of a sentence."""
        return (), ""

    @abstractmethod
    def summary(self, spec: JobSpec) -> str:
        """It in a few words."""
