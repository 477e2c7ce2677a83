"""Which candidates are frequent: the sums of all parties' counts, opened to the learners and compared with c.

Everything that decides on candidates passes through `Ballot.decide`, so how it decides can change and the strategies
need not know.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crypto.protocols.pairwise import PairwiseSecrets
from crypto.protocols.secure_sum import secure_sum, word_for
from crypto.protocols.set_union import set_union
from link.errors import InputDataError, MalformedMessage, PolicyDenied, ProtocolViolation
from link.session import Session
from mining.joint.parameters import HorizontalMining
from mining.thresholds import local_threshold, minimum_count

Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]

MAX_ROWS = 1 << 62  # of all parties: far from where signed 64-bit counts end


@dataclass(frozen=True, slots=True)
class Ballot:
    """The parties' common means to decide on candidates.

    Attributes:
        session: The lane of the mining run.
        secrets: Pairwise secrets of this session.
        task: The public parameters.
        n_rows: Transactions of all parties.
        min_count: c, the least support of a frequent itemset.
        threshold: τ, this party's local threshold: an itemset of support ≥ c reaches some party's.
    """

    session: Session
    secrets: PairwiseSecrets
    task: HorizontalMining
    n_rows: int
    min_count: int
    threshold: int

    @classmethod
    async def convene(
        cls, session: Session, secrets: PairwiseSecrets, task: HorizontalMining, rows: int, least_count: int
    ) -> Ballot:
        """Opens the number of all transactions and derives the thresholds from it.

        Args:
            session: The lane of the mining run.
            secrets: Pairwise secrets of this session.
            task: The public parameters.
            rows: Transactions of this party.
            least_count: This party's own floor for c.

        Raises:
            ConfigurationError: min_support is a count above the number of transactions.
            InputDataError: There are no transactions.
            PolicyDenied: c is below this party's floor.
            ProtocolViolation: The number is none that parties can have.
        """
        ours = np.array([rows], np.uint64)
        total = await secure_sum(session.lane("rows"), secrets, ours, label="rows")
        if total is None:
            raise AssertionError("the number of rows is opened to all")
        n_rows = int(total[0])
        if not rows <= n_rows <= MAX_ROWS:
            raise _no_sum(session)
        if n_rows == 0:
            raise InputDataError("no party has any transaction in this dataset, so there is nothing to mine")
        min_count = minimum_count(task.min_support, n_rows)
        if min_count < least_count:
            raise PolicyDenied(
                f"the policy of {session.me} asks for a count of at least {least_count} (rule min_count), and the "
                "job's min_support comes to fewer of all parties' transactions",
                party=session.me,
            )
        threshold = local_threshold(task.min_support, rows, min_count, len(session.parties), task.lambda_, n_rows)
        return cls(session, secrets, task, n_rows, min_count, threshold)

    async def decide(self, name: str, counts: Counts) -> tuple[Mask, Counts | None]:
        """Sums the candidates' local counts and compares with c.

        Args:
            name: Of the lane, unused so far.
            counts: Shape (m,), this party's counts of the public sequence of candidates.

        Returns:
            Which candidates are frequent, shape (m,), and the supports of those, where this party is a learner.

        Raises:
            ProtocolViolation: A sum is none that the parties' counts can have.
            MalformedMessage: The first learner told something else than bits.
        """
        lane, learners = self.session.lane(name), self.task.learners
        if not len(counts):
            return np.zeros(0, bool), counts if lane.me in learners else None
        words = counts.astype(word_for(self.n_rows))  # no sum of counts is above the number of rows
        totals = await secure_sum(lane, self.secrets, words, label="supports", to=learners)
        outsiders = [party for party in lane.parties if party not in learners]
        if totals is None:
            bits = await lane.receive_opened(learners[0], "frequent", np.uint8, (len(counts),))
            if (bits > 1).any():
                raise MalformedMessage(
                    f"{learners[0]} told something else than which candidates are frequent; check that node",
                    party=learners[0],
                )
            return bits != 0, None
        if (totals < words).any() or (totals > self.n_rows).any():
            raise _no_sum(lane)
        frequent = totals >= self.min_count
        if outsiders and lane.me == learners[0]:
            await lane.open("frequent", frequent.view(np.uint8), outsiders)
        return frequent, totals[frequent].astype(np.int64)

    async def all_agree(self, name: str, agreed: bool) -> bool:
        """The AND over all parties of one bit each: 1 adds 0, 0 adds a uniform non-zero word.

        The sum is 0 when all agreed; otherwise it is 0 by accident with probability below 2⁻⁶³. A party that takes its
        own word off the sum learns the AND over the *others*, also where it disagreed itself; with two parties that is
        the other's bit. Colluders likewise learn the AND over all but them, never a single bit of several.
        """
        lane = self.session.lane(name)
        word = 0 if agreed else 1 + lane.randomness("disagreement").below(2**64 - 1)
        total = await secure_sum(lane, self.secrets, np.array([word], np.uint64), label="enumeration_bounded")
        return total is not None and int(total[0]) == 0

    async def union(self, name: str, elements: Collection[bytes], label: str, max_element_bytes: int) -> list[bytes]:
        """The union of all parties' elements, in ascending order of bytes."""
        return await set_union(
            self.session.lane(name),
            self.secrets,
            elements,
            merger=self.task.merger,
            bound=self.task.bound,
            label=label,
            max_element_bytes=max_element_bytes,
        )


def _no_sum(session: Session) -> ProtocolViolation:
    return ProtocolViolation(
        "the parties' counts add up to what no counts can, so a node is faulty or has another version; check all nodes",
        party=session.others[0] if len(session.others) == 1 else None,
    )
