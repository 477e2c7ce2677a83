"""Reads the result of a folder back, and holds it against the digests that the parties signed."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.audit.tables import packed_tables
from jobs.kinds.estimates_finding import FoundEstimates
from jobs.kinds.finding import Finding
from jobs.kinds.itemsets_finding import FoundItemsets
from jobs.kinds.models.document import MODEL_FILE, model_document, pack_model, read_model
from jobs.kinds.packed_itemsets import digest
from jobs.kinds.registry import kind_of
from jobs.results.destination import ESTIMATES_FILE, JOINT_RELEASE, RELEASE_PARQUET
from jobs.spec.job import JobSpec
from link.files.json_text import read_json
from mining.joint.estimated import unpack_estimates
from protos.v1.control_pb2 import Release


@dataclass(slots=True)
class SignedResult:
    """What is in a folder, as far as the parties signed it.

    Attributes:
        folder: The result folder.
        spec: The job.
        signed: Whether any party signed the digest of a result.
        finding: The itemsets and rules, or the estimates, once a party was seen to have signed them.
        spoiled: Tables that were found to hold something else, or cannot be read.
    """

    folder: Path
    spec: JobSpec
    signed: bool = False
    finding: Finding | None = None
    spoiled: set[str] = field(default_factory=set)
    _packed: dict[tuple[str, int], bytes] = field(default_factory=dict)

    @property
    def is_known(self) -> bool:
        """Whether all is at hand that the tables, and their sizes, follow from."""
        return not (self.signed and kind_of(self.spec).finds == "itemsets") or self.finding is not None

    def problems(self, release: Release) -> Iterator[str]:
        """What differs from one party's release."""
        if not release.result_digest:
            return
        self.signed = True
        kind = kind_of(self.spec)
        match kind.finds:
            case "release":
                yield from self._joint_release(release)
            case "model":
                yield from self._model(release)
            case "itemsets" if kind.estimates:
                yield from self._estimates(release)
            case "itemsets":
                yield from self._tables(release)

    def _model(self, release: Release) -> Iterator[str]:
        path = self.folder / MODEL_FILE
        try:
            model = read_model(path.read_bytes())
            written = read_json(path.read_bytes()) == model_document(model)
        except (OSError, ValueError) as error:
            yield f"{MODEL_FILE} cannot be read ({error}), and {release.party} signed what is in it"
            return
        if not written or digest(pack_model(model)) != release.result_digest:
            yield f"{MODEL_FILE} does not hold the model that {release.party} signed"

    def _joint_release(self, release: Release) -> Iterator[str]:
        from anonymize.verifier import verify as verify_release  # with what other results do without
        from jobs.kinds.release.release import Anonymized

        try:
            packed = (self.folder / JOINT_RELEASE).read_bytes()
            signed = Anonymized.unpack(packed)
            rows = pq.read_table(self.folder / RELEASE_PARQUET)
        except (OSError, ValueError, OverflowError, pa.ArrowException) as error:
            yield f"{JOINT_RELEASE} or {RELEASE_PARQUET} cannot be read ({type(error).__name__})"
            return
        if digest(packed) != release.result_digest:
            yield f"{JOINT_RELEASE} does not hold the release that {release.party} signed"
        if not rows.equals(signed.table):
            yield f"{RELEASE_PARQUET} does not hold the rows that {release.party} signed"
        for finding in verify_release(self.folder).failures:
            yield f"the release does not hold what its certificate claims: {finding.check}"

    def _estimates(self, release: Release) -> Iterator[str]:
        try:
            packed = (self.folder / ESTIMATES_FILE).read_bytes()
            estimated = unpack_estimates(packed)
        except (OSError, ValueError) as error:
            yield f"{ESTIMATES_FILE} cannot be read ({error}), and {release.party} signed what is in it"
            return
        if digest(packed) != release.result_digest:
            yield f"{ESTIMATES_FILE} does not hold the estimates that {release.party} signed"
            return
        self.finding = FoundEstimates(estimated)

    def _tables(self, release: Release) -> Iterator[str]:
        rules = self.spec.itemsets.disclose == "frequent" and self.spec.rules is not None
        for ending in ("csv", "parquet"):
            names = [f"itemsets.{ending}", *([f"rules.{ending}"] if rules else [])]
            try:
                packed = self._read(ending, release.n_rows, rules=rules)
            except (OSError, KeyError, ValueError, TypeError, OverflowError, csv.Error, pa.ArrowException) as error:
                self.spoiled.update(names)
                what = f"cannot be read ({type(error).__name__}), and {release.party} signed what is in it"
                yield f"{' and '.join(names)} {what}"
                continue
            if digest(packed) != release.result_digest:
                self.spoiled.update(names)
                what = "do not hold the itemsets and rules" if rules else "does not hold the itemsets"
                yield f"{' and '.join(names)} {what} that {release.party} signed"
            elif self.finding is None:
                self.finding = FoundItemsets.unpack(packed)

    def _read(self, ending: str, n_rows: int, *, rules: bool) -> bytes:
        """The tables in the form that is signed; read once for all parties."""
        if (ending, n_rows) not in self._packed:
            counted = self.spec.itemsets.disclose != "frequent"
            self._packed[ending, n_rows] = packed_tables(self.folder, ending, n_rows, counted=counted, rules=rules)
        return self._packed[ending, n_rows]
