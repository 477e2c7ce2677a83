"""What a result folder holds of a job's finding, held against the digests that the parties signed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jobs.kinds.finding import SavedFinding
from jobs.kinds.registry import kind_of
from protos.v1.control_pb2 import Release


@dataclass(slots=True)
class SignedResult(SavedFinding):
    """What is in a folder, as far as the parties signed it.

    Attributes:
        signed: Whether any party signed the digest of a finding.
    """

    signed: bool = False

    @property
    def is_known(self) -> bool:
        """Whether all is at hand that the tables, and their sizes, follow from."""
        return not self.signed or kind_of(self.spec).finding is None or self.finding is not None

    def problems(self, release: Release) -> Iterator[str]:
        """What differs from one party's release."""
        if not release.result_digest:
            return
        self.signed = True
        finding = kind_of(self.spec).finding
        if finding is not None:
            yield from finding.differences(self, release)
