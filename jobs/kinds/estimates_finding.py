"""Itemsets and rules that a job has estimated, with intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from jobs.kinds.finding import Finding, SavedFinding
from jobs.kinds.itemsets_finding import sections, sizes, table_files, table_names
from jobs.kinds.packed_itemsets import digest
from jobs.report.tables import page_data
from jobs.results.destination import ESTIMATES_FILE
from jobs.spec.job import JobSpec
from mining.itemsets import Itemsets
from mining.joint.estimated import Estimated, pack_estimates, unpack_estimates
from mining.joint.spent import Spent
from protos.v1.control_pb2 import Release


@dataclass(frozen=True)
class FoundEstimates(Finding):
    """Itemsets and rules that a job has estimated, with intervals.

    Attributes:
        estimated: They, with what each record has spent.
    """

    estimated: Estimated

    name = "itemsets"
    signed_as = "estimates"

    @classmethod
    def files(cls, spec: JobSpec) -> frozenset[str]:
        return table_files(spec) | {ESTIMATES_FILE}

    @classmethod
    def differences(cls, saved: SavedFinding, release: Release) -> Iterator[str]:
        try:
            packed = (saved.folder / ESTIMATES_FILE).read_bytes()
            found = cls.unpack(packed)
        except (OSError, ValueError) as error:
            yield f"{ESTIMATES_FILE} cannot be read ({error}), and {release.party} signed what is in it"
            return
        if digest(packed) != release.result_digest:
            yield f"{ESTIMATES_FILE} does not hold the estimates that {release.party} signed"
            return
        saved.finding = found

    @classmethod
    def unpack(cls, packed: bytes) -> FoundEstimates:
        """What `pack` made.

        Raises:
            ValueError: It is something else.
        """
        return cls(unpack_estimates(packed))

    @cached_property
    def itemsets(self) -> Itemsets:
        """The itemsets with whole counts."""
        return self.estimated.itemsets.rounded()

    @property
    def value(self) -> Estimated:
        return self.estimated

    @property
    def n_rows(self) -> int:
        return self.itemsets.n_rows

    @property
    def spent(self) -> Spent:
        return self.estimated.spent

    def pack(self) -> bytes:
        return pack_estimates(self.estimated)

    def canonical(self) -> FoundEstimates:
        return self.unpack(self.pack())

    def fits(self, spec: JobSpec) -> bool:
        rules = self.estimated.rules is not None
        return self.estimated.spent.model == spec.privacy.model and rules == (spec.rules is not None)

    def tables(self, spec: JobSpec) -> dict[str, pa.Table]:
        found = {"itemsets": self.estimated.itemsets.to_arrow()}
        if spec.rules is not None and self.estimated.rules is not None:
            found["rules"] = self.estimated.rules.to_arrow(spec.rules.measures)
        return found

    def write(self, folder: Path, spec: JobSpec) -> None:
        (folder / ESTIMATES_FILE).write_bytes(self.pack())

    def account(self, spec: JobSpec) -> dict[str, Any]:
        how = {"counted": True, "estimated": True, "privacy": asdict(self.estimated.spent)}
        return sizes(self.tables(spec)) | how

    def facts(self, spec: JobSpec) -> list[tuple[str, str]]:
        return _cost(self.estimated.spent)

    def figures(self, spec: JobSpec) -> list[tuple[str, int]]:
        names = {"itemsets": "itemsets, estimated"}
        return [(names.get(name, name), len(table)) for name, table in self.tables(spec).items()]

    def sections(self, spec: JobSpec) -> dict[str, Any]:
        return sections(self.tables(spec), counted=True, estimated=True)

    def page_data(self, spec: JobSpec) -> dict[str, Any]:
        return page_data(self.tables(spec), self.itemsets.items, counted=True, estimated=True)

    def methods(self, spec: JobSpec) -> tuple[tuple[str, ...], str]:
        return table_names(spec), "give tables"

    def summary(self, spec: JobSpec) -> str:
        found = f"{len(self.itemsets):,} itemsets"
        if spec.rules is not None and self.estimated.rules is not None:
            found += f" and {len(self.estimated.rules.rules):,} rules"
        return f"{found}, estimated with 95 % intervals,"


def _cost(spent: Spent) -> list[tuple[str, str]]:
    """What the job has cost each record."""
    delta = f" and δ = {spent.delta:g}" if spent.delta else ""
    facts = [("privacy of a record", f"ε = {spent.epsilon:.4g}{delta} towards anyone who sees the result")]
    if spent.local_epsilon is not None and spent.n is not None:
        facts.append(
            (
                "of its report alone",
                f"ε = {spent.local_epsilon:.4g} at most; hidden among {spent.n:,} others' reports at least",
            )
        )
    return [*facts, ("holds by", spent.bound)]
