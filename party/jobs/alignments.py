"""The alignments that this party keeps for its own use: which of its rows has which position."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from party.jobs.endings.tables import write_whole

FOLDER: Final = "alignments"  # in the state folder


@dataclass(frozen=True, slots=True)
class Alignments:
    """Parquet files in a folder, one a job, readable by their owner alone and kept until somebody removes them.

    Attributes:
        folder: Theirs; it exists.
    """

    folder: Path

    def find(self, job_id: bytes) -> Path | None:
        """Where a job's alignment is; None where there is none."""
        path = self._path(job_id)
        return path if path.exists() else None

    def write(self, job_id: bytes, alignment: pa.Table) -> None:
        """Keeps a job's alignment; it is on disk, whole, when this returns.

        Args:
            job_id: The job.
            alignment: As `mining.joint.align.positions_of` makes it.

        Raises:
            ResourceError: The disk refuses it; nothing is left behind.
        """
        sink = pa.BufferOutputStream()
        pq.write_table(alignment, sink, compression="zstd")
        write_whole(self._path(job_id), sink.getvalue())

    def _path(self, job_id: bytes) -> Path:
        return self.folder / f"{job_id.hex()}.parquet"
