"""A tally that holds against parties that deviate: one of the computing parties, and any that do not compute.

Every party deals its number of rows first, and for each batch of candidates its counts, none above that number. The
three find the sums, and which reach c, by circuits of which every AND is checked; then these are opened. The sums of
what is frequent are kept as shares and opened later: they are the very sums that were compared. The three check unions,
too.

Adversary:  malicious with abort, as of `verified_sums` and `verified_union`: what a party may still do is to choose its
            counts, batch by batch, and what it brings to unions, and to end the job.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from crypto.primitives.shares.xor import words_of
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.replicated.verified_or import verified_or
from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.union.verified_union import verified_union
from link.journal import Known
from link.session import Session
from link.steps import step
from link.tasks import together
from mining.joint.horizontal.checked_sums import CheckedSums, checked_sums
from mining.joint.horizontal.tally import HorizontalTally
from mining.joint.parameters import HorizontalMining
from mining.joint.tally import Addends, Counts, Mask, no_sum


def bits_of(n_rows: int) -> int:
    """The width of sums of counts."""
    return max(2, n_rows.bit_length())


@dataclass(frozen=True, slots=True)
class VerifiedTally(HorizontalTally):
    """The parties' common means to decide on candidates, some of whom may deviate.

    Attributes:
        sums: How sums are decided.
        limits: At a computing party, shares of each party's number of rows; None at others.
        unopened: By batch, how many candidates are frequent and, at a computing party, shares of their sums.
    """

    sums: CheckedSums
    limits: Any
    unopened: list[tuple[int, Any]]

    @classmethod
    async def open(
        cls,
        session: Session,
        secrets: PairwiseSecrets,
        two_party: TwoParty | None,
        pairs: Mapping[str, TwoParty],
        task: HorizontalMining,
        rows: int,
        least_count: int,
    ) -> VerifiedTally:
        """As of `HorizontalTally`."""
        limits: Any = None
        sums = checked_sums(session.lane("keys of bits"), secrets, task, rows)

        async def count() -> Known:
            nonlocal limits
            total, limits = await sums.total(session.lane("rows"), rows)
            return Known(total)

        n_rows = int((await step(session, "number of rows", count)).public)
        least, threshold = cls.thresholds(session, task, rows, n_rows, least_count)
        return cls(session, secrets, two_party, task, n_rows, least, threshold, pairs, sums, limits, [])

    async def all_agree(self, name: str, agreed: bool) -> bool:
        """The AND over all parties of one bit each."""
        lane, bit = self.session.lane(name), np.array([not agreed], np.uint8)
        refused = await verified_or(lane, self.secrets, bit, self.task.three, label="enumeration_bounded")
        return not refused[0]

    async def union(self, name: str, elements: Collection[bytes], label: str, max_element_bytes: int) -> list[bytes]:
        """As of `HorizontalTally`; the three check every step of it."""
        return await verified_union(
            self.session.lane(name),
            self.secrets,
            self.task.three,
            elements,
            bound=self.task.bound,
            label=label,
            max_element_bytes=max_element_bytes,
        )

    async def decide(
        self, name: str, counts: Addends, *, supports: bool = True, most: int | None = None
    ) -> tuple[Mask, Counts | None]:
        """As of `Tally`; the sums of what is frequent are kept for `supports`."""
        lane, number = self.session.lane(name), len(counts)
        if not number:
            return np.zeros(0, bool), await self.supports(f"{name}/supports", counts) if supports else None
        found = await self.sums.decided(
            lane.lane("decision"), counts.astype(np.uint64), self.limits, self.min_count, bits_of(self.n_rows)
        )
        planes = await self.sums.opened(
            lane,
            None if found is None else found.reached,
            label="frequent",
            number=number,
            width=1,
            to=lane.parties,
        )
        if planes is None:
            raise AssertionError("which candidates are frequent is opened to all")
        frequent: Mask = words_of(planes, number) != 0
        self.unopened.append((int(frequent.sum()), None if found is None else found.sums.words(frequent)))
        return frequent, await self.supports(f"{name}/supports", counts[frequent], most) if supports else None

    async def supports(self, name: str, counts: Addends, most: int | None = None) -> Counts | None:
        """Opens the sums of all that has been found frequent since the last call, where the job discloses them.

        Args:
            name: Of the lane, unused so far.
            counts: As many as were found frequent.
            most: What no sum is above, as all parties know; by default the number of transactions.

        Returns:
            Their supports, where this party learns them.

        Raises:
            ProtocolViolation: Holders contradict each other, or a sum is none that the parties' counts can have.
        """
        batches = [(number, share) for number, share in self.unopened if number]
        self.unopened.clear()
        if self.task.disclose == "frequent":
            return None
        if sum(number for number, _ in batches) != len(counts):
            raise AssertionError("supports are asked for of what was found frequent")
        lane, width = self.session.lane(name), bits_of(self.n_rows)
        found = await together(
            self.sums.opened_sums(
                lane.lane(f"batch {place}"),
                share,
                self.min_count,
                label="supports",
                number=number,
                width=width,
                to=self.task.learners,
            )
            for place, (number, share) in enumerate(batches)
        )
        if self.session.me not in self.task.learners:
            return None
        totals = [each.astype(np.int64) for each in found if each is not None]
        supports = np.concatenate([np.empty(0, np.int64), *totals])
        if most is not None and (supports > most).any():
            raise no_sum(self.session)
        return supports
