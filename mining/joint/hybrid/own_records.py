"""A party's own records, and their reports: perturbed in this process, or by those that hold the blocks they lie in.

A stream of randomness perturbs the records of one phase, and in blocks those of one phase and block: the node draws a
key for each phase, from which a worker derives its block's own stream. A block that is perturbed again, since its
worker was lost, has the same reports.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.estimate import Estimate
from ldp.reports import Reports
from ldp.sets.baskets import Baskets
from ldp.sets.plan import MiningPlan, SetReporter
from link.randomness import RandomStream
from mining.data.rows import Rows
from mining.data.transactions import Transactions
from mining.joint.hybrid import groups
from mining.partitioned.noise_key import NoiseKey
from mining.partitioned.random_groups import RandomGroups

if TYPE_CHECKING:
    from ldp.mechanism import Mechanism

TALLIED: Final = 1 << 16
"""Reports that are added up at once, between which other work gets its turn."""

Packed = NDArray[np.uint8]
"""The bytes of reports, or of sums."""


class OwnRecords(Protocol):
    """A party's records, each of which answers in one phase or in all."""

    @property
    def sizes(self) -> list[int]:
        """By phase, how many answer."""

    def reports(self, number: int, mechanism: SetReporter, key: bytes) -> Iterator[Reports]:
        """The reports of a phase, piece by piece, by the records' order.

        Args:
            number: Of the phase.
            mechanism: By which they report.
            key: Secret, of this phase alone.
        """

    def sums(self, number: int, mechanism: SetReporter, key: bytes) -> Iterator[Aggregator[Estimate]]:
        """The sums over the reports of a phase, piece by piece; arguments as of `reports`."""


def own_records(data: Rows, catalogue: tuple[str, ...], plan: MiningPlan, random: RandomStream) -> OwnRecords:
    """The party's records, with chance alone saying which answers when.

    Args:
        data: The rows. Items that the catalogue does not name are left out: to say so would reveal a record.
        catalogue: The items that may be asked about.
        plan: Whose phases these are.
        random: The source of randomness.
    """
    known = data.onto(catalogue)
    if isinstance(known, Transactions):
        return _InMemory(_baskets(known), groups.drawn(known.n_rows, plan, random))
    if not plan.divides_users:
        return RecordsInBlocks(known, [known.n_rows] * len(plan.shares), None)
    sizes = groups.drawn_sizes(known.n_rows, plan, random)
    return RecordsInBlocks(known, sizes, RandomGroups.drawn(sizes, random))


@dataclass(frozen=True, eq=False, slots=True)
class _InMemory:
    """Records in memory: their sets, and by phase the numbers of those that answer."""

    data: Baskets
    mine: list[groups.Rows]

    @property
    def sizes(self) -> list[int]:
        return [len(each) for each in self.mine]

    def reports(self, number: int, mechanism: SetReporter, key: bytes) -> Iterator[Reports]:
        yield mechanism.privatise(self.data[self.mine[number]], Randomness.from_key(key))

    def sums(self, number: int, mechanism: SetReporter, key: bytes) -> Iterator[Aggregator[Estimate]]:
        for reports in self.reports(number, mechanism, key):
            for start in range(0, len(reports), TALLIED):
                yield _summed(reports[start : start + TALLIED], mechanism)


@dataclass(frozen=True, eq=False, slots=True)
class RecordsInBlocks:
    """Records in blocks; without groups all answer in all phases."""

    data: Rows
    sizes: list[int]
    groups: RandomGroups | None

    def reports(self, number: int, mechanism: SetReporter, key: bytes) -> Iterator[Reports]:
        """As of `OwnRecords`."""
        kernel = PerturbedRows(mechanism, self.groups, number, NoiseKey(key))
        for packed in self.data.parts(kernel):
            yield Reports.from_bytes(packed.tobytes(), mechanism.fingerprint, mechanism.layout)

    def sums(self, number: int, mechanism: SetReporter, key: bytes) -> Iterator[Aggregator[Estimate]]:
        """As of `OwnRecords`."""
        kernel = SummedReports(PerturbedRows(mechanism, self.groups, number, NoiseKey(key)))
        for packed in self.data.parts(kernel):
            yield Aggregator.from_bytes(packed.tobytes(), _summing(mechanism))


@dataclass(frozen=True, eq=False, slots=True)
class PerturbedRows:
    """The reports of those rows of a block that answer in a phase, packed: what comes from a cluster is but numbers.

    Attributes:
        mechanism: By which they report.
        groups: Which row answers when; None where all do.
        number: Of the phase.
        key: Secret; each block's stream is derived from it.
    """

    mechanism: SetReporter
    groups: RandomGroups | None
    number: int
    key: NoiseKey = field(repr=False)

    def __call__(self, rows: Transactions, first: int) -> Packed:
        """The reports of a block."""
        return np.frombuffer(self.reports(rows, first).to_bytes(), np.uint8)

    def reports(self, rows: Transactions, first: int) -> Reports:
        """The same, before they are packed."""
        asked = _baskets(rows)
        if self.groups is not None:
            asked = asked[self.groups.of(first, rows.n_rows) == self.number]
        return self.mechanism.privatise(asked, self.key.stream("block", first, rows.n_rows))


@dataclass(frozen=True, eq=False, slots=True)
class SummedReports:
    """The sums over the reports of a block, where their analyst holds it: they are added up where they are made.

    Attributes:
        perturbed: What makes them.
    """

    perturbed: PerturbedRows

    def __call__(self, rows: Transactions, first: int) -> Packed:
        """The sums of a block."""
        sums = _summed(self.perturbed.reports(rows, first), self.perturbed.mechanism)
        return np.frombuffer(sums.to_bytes(), np.uint8)


def _summed(reports: Reports, mechanism: SetReporter) -> Aggregator[Estimate]:
    return Aggregator(_summing(mechanism)).add(reports)


def _summing(mechanism: SetReporter) -> Mechanism[Estimate]:
    return cast("Mechanism[Estimate]", mechanism)


def _baskets(rows: Transactions) -> Baskets:
    return Baskets(rows.offsets, rows.indices.astype(np.int64), rows.n_items)
