"""A release that several parties made together, as what their job has found."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from anonymize.certifying import write_cells
from anonymize.release import plain
from anonymize.verifier import CERTIFICATE, RELEASE_CSV, verify
from jobs.kinds.compared import numbers
from jobs.kinds.finding import Finding, SavedFinding
from jobs.kinds.packed_itemsets import digest
from jobs.kinds.release.certifying import publish
from jobs.kinds.release.figures import class_sizes, metrics, scales
from jobs.kinds.release.parameters import joint_anonymisation
from jobs.kinds.release.release import Anonymized
from jobs.report import text
from jobs.results.destination import JOINT_RELEASE, RELEASE_PARQUET
from jobs.spec.job import JobSpec
from protos.v1.control_pb2 import Release


@dataclass(frozen=True)
class FoundRelease(Finding):
    """A release that several parties made together, as what their job has found.

    Attributes:
        release: The release.
    """

    release: Anonymized

    name = signed_as = "release"

    @classmethod
    def files(cls, spec: JobSpec) -> frozenset[str]:  # noqa: ARG003 - the same for all jobs
        return frozenset({RELEASE_CSV, RELEASE_PARQUET, JOINT_RELEASE, CERTIFICATE})

    @classmethod
    def differences(cls, saved: SavedFinding, release: Release) -> Iterator[str]:
        try:
            packed = (saved.folder / JOINT_RELEASE).read_bytes()
            found = cls.unpack(packed)
            rows = pq.read_table(saved.folder / RELEASE_PARQUET)
        except (OSError, ValueError, OverflowError, pa.ArrowException) as error:
            yield f"{JOINT_RELEASE} or {RELEASE_PARQUET} cannot be read ({type(error).__name__})"
            return
        if digest(packed) != release.result_digest:
            yield f"{JOINT_RELEASE} does not hold the release that {release.party} signed"
        else:
            saved.finding = found
        if not rows.equals(found.release.table):
            yield f"{RELEASE_PARQUET} does not hold the rows that {release.party} signed"
        for claim in verify(saved.folder).failures:
            yield f"the release does not hold what its certificate claims: {claim.check}"

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

    def compared(self, spec: JobSpec) -> dict[str, pa.Table]:
        task = joint_anonymisation(spec)
        sizes = class_sizes(self.release, task)
        found = metrics(self.release, task, sizes, scales(self.release, task), task.k)
        if smallest := found.get("smallest_class"):
            found["highest_prosecutor_risk"] = 1 / smallest
        published = self.release.table.num_rows
        counts = {"released rows": published, "left out": self.release.n_rows - published, "classes": len(sizes)}
        levels = {f"level of {name}": level for name, level in self.release.node.items()}
        return numbers({**counts, **levels, **found})

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
