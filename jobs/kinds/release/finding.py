"""A release that several parties made together, as what their job has found."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

from anonymize.certifying import write_cells
from anonymize.release import plain
from jobs.kinds.finding import Finding
from jobs.kinds.release.certifying import publish
from jobs.kinds.release.parameters import joint_anonymisation
from jobs.kinds.release.release import Anonymized
from jobs.report import text
from jobs.spec.job import JobSpec


@dataclass(frozen=True)
class FoundRelease(Finding):
    """A release that several parties made together, as what their job has found.

    Attributes:
        release: The release.
    """

    release: Anonymized

    name = "release"

    @classmethod
    def unpack(cls, packed: bytes) -> FoundRelease:
        """What `pack` made.

        Raises:
            ValueError: It is something else.
        """
        return cls(Anonymized.unpack(packed))

    @property
    def value(self) -> Anonymized:
        return self.release

    @property
    def n_rows(self) -> int:
        return self.release.n_rows

    def pack(self) -> bytes:
        return self.release.pack()

    def canonical(self) -> FoundRelease:
        return self

    def fits(self, spec: JobSpec) -> bool:
        return self.release.fits(joint_anonymisation(spec))

    def write(self, folder: Path, spec: JobSpec) -> None:
        publish(folder, self.release, spec)

    def facts(self, spec: JobSpec) -> list[tuple[str, str]]:
        published = self.release.table.num_rows
        node = ", ".join(f"{text.visible(name)} {level}" for name, level in self.release.node.items())
        return [
            ("released rows", text.number(published)),
            ("left out", text.number(self.release.n_rows - published)),
            ("levels", node or "one for each region"),
            ("files", "release.csv, release.parquet and certificate.json beside this page"),
        ]

    def text(self) -> str:
        written = io.StringIO(newline="")
        write_cells(written, plain(self.release.table))
        return written.getvalue()

    def summary(self, spec: JobSpec) -> str:
        published = self.release.table.num_rows
        return f"{published:,} are released and {self.release.n_rows - published:,} left out"
