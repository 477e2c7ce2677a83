"""Deciding which sums reach c, and opening sums: the parties' common means, whatever the sums are of.

With `disclose = "candidates"` the sums are opened to the learners, who compare them with c. Otherwise they stay shared
between two computing parties, which compare them with c under oblivious transfer, or among three, which compare them on
replicated shares. These open one bit a candidate; `supports` then opens the sums of the frequent ones, `frequent` opens
no sum at all.

Addends are counts, or shares modulo 2^64 of what is to be summed. Counts are capped at c before they are compared:
Σ min(x_i, c) ≥ c exactly where Σ x_i ≥ c. Sums of at most n·c need fewer bits than those of up to N, and a comparison
costs as much as it has bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.masks import Words
from crypto.primitives.shares.replicated import Holders3
from crypto.primitives.shares.xor import XorShare
from crypto.protocols.comparison.comparison import at_least
from crypto.protocols.comparison.shared_bits import open_bits
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.replicated.comparison import at_least as at_least_of_three
from crypto.protocols.replicated.comparison import masked_sum, sums_at_least
from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.sums.secure_sum import secure_sum, shared_sum, word_for
from link.errors import MalformedMessage, ProtocolViolation
from link.session import Session
from mining.joint.parameters import Disclose

Counts = NDArray[np.int64]
Addends = NDArray[np.int64] | NDArray[np.uint64]
Mask = NDArray[np.bool_]

_NONE = np.empty(0, np.int64)
MAX_ROWS = 1 << 61  # of all parties: far from where signed 64-bit counts end, with room to compare


class Tallying(Protocol):
    """What a tally needs to know of a job; see `HorizontalMining`."""

    @property
    def learners(self) -> tuple[str, ...]:
        """The parties that learn the sums that are opened."""

    @property
    def compute(self) -> tuple[str, str]:
        """The two computing parties."""

    @property
    def computing(self) -> tuple[str, str] | Holders3:
        """All who hold shares of sums that stay hidden."""

    @property
    def disclose(self) -> Disclose:
        """Which sums are opened."""


@dataclass(frozen=True, slots=True)
class SumRange:
    """In what words sums are held and compared with c.

    Attributes:
        word: The shortest that holds any of the sums, and the width.
        width: Bits of a comparison: any sum less c lies in −2^(width − 1) … 2^(width − 1) − 1.
    """

    word: np.dtype[np.unsignedinteger[Any]]
    width: int

    @classmethod
    def of(cls, min_count: int, largest: int) -> SumRange:
        """For sums of at most `largest`, which are compared with c, at most `largest` as well."""
        width = max(2, 1 + max((min_count - 1).bit_length(), (largest - min_count).bit_length()))
        return cls(word_for(max(largest, (1 << width) - 1)), width)

    @classmethod
    def capped(cls, min_count: int, n_parties: int, n_rows: int) -> SumRange:
        """For n parties' counts capped at c; their sum is not above N either."""
        return cls.of(min_count, min(n_parties * min_count, n_rows))


@dataclass(frozen=True, slots=True)
class Tally:
    """The parties' common means to decide on candidates.

    Attributes:
        session: The lane of the mining run.
        secrets: Pairwise secrets of this session.
        two_party: This party's half of what two computing parties agree upon; None at the others, and where no sum
            stays shared or three compute.
        task: The public parameters.
        n_rows: Transactions that any sum is of.
        min_count: c, the least support of a frequent itemset.
    """

    session: Session
    secrets: PairwiseSecrets
    two_party: TwoParty | None
    task: Tallying
    n_rows: int
    min_count: int

    async def decide(
        self, name: str, counts: Addends, *, supports: bool = True, most: int | None = None
    ) -> tuple[Mask, Counts | None]:
        """Sums the candidates' local counts and compares with c.

        Args:
            name: Of the lane, unused so far.
            counts: Shape (m,), this party's addends for the public sequence of candidates.
            supports: Whether the supports of the frequent ones are wanted.
            most: What no sum is above, as all parties know; by default the number of transactions.

        Returns:
            Which candidates are frequent, shape (m,), and the supports of those, where they are wanted and this party
            learns them.

        Raises:
            ProtocolViolation: A sum is none that the parties' counts can have.
            MalformedMessage: A peer sent something else than bits.
        """
        lane = self.session.lane(name)
        if not len(counts):
            return np.zeros(0, bool), _NONE if supports and self._learns_supports else None
        if self.task.disclose == "candidates":
            return await self._open_all(lane, counts, most)
        frequent = await self._compare(lane, counts)
        return frequent, await self.supports(f"{name}/supports", counts[frequent], most) if supports else None

    async def supports(self, name: str, counts: Addends, most: int | None = None) -> Counts | None:
        """Opens the sums of candidates that are known to be frequent, where the job discloses them.

        Args:
            name: Of the lane, unused so far.
            counts: Shape (m,), this party's addends for the public sequence of frequent candidates.
            most: What no sum is above, as all parties know; by default the number of transactions.

        Returns:
            Their supports, where this party learns them.

        Raises:
            ProtocolViolation: A sum is none that the parties' counts can have.
        """
        if self.task.disclose == "frequent":
            return None
        if not len(counts):
            return _NONE if self._learns_supports else None
        totals = await self._open_sums(self.session.lane(name), counts, most)
        if totals is None:
            return None
        if (totals < self.min_count).any():
            raise no_sum(self.session)
        return totals.astype(np.int64)

    async def _open_all(self, lane: Session, counts: Addends, most: int | None) -> tuple[Mask, Counts | None]:
        """The learners compare what is opened to them; the first opens to the others which candidates are frequent."""
        learners = self.task.learners
        outsiders = [party for party in lane.parties if party not in learners]
        totals = await self._open_sums(lane, counts, most)
        if totals is None:
            bits = await lane.receive_opened(learners[0], "frequent", np.uint8, (len(counts),))
            if (bits > 1).any():
                raise MalformedMessage(
                    f"{learners[0]} opened something else than which candidates are frequent; check that node",
                    party=learners[0],
                )
            return bits != 0, None
        frequent = totals >= self.min_count
        if outsiders and lane.me == learners[0]:
            await lane.open("frequent", frequent.view(np.uint8), outsiders)
        return frequent, totals[frequent].astype(np.int64)

    async def _open_sums(self, lane: Session, counts: Addends, most: int | None) -> Words | None:
        """The sums at a learner, in short words: there may be millions of them, of which few are frequent."""
        most = self.n_rows if most is None else most
        words = counts.astype(word_for(most))
        totals = await secure_sum(lane, self.secrets, words, label="supports", to=self.task.learners)
        if totals is None:
            return None
        below = counts.dtype == np.int64 and bool((totals < words).any())  # shares reveal nothing of the least sum
        if below or int(totals.max(initial=0)) > most:
            raise no_sum(lane)
        return totals

    async def _compare(self, lane: Session, addends: Addends) -> Mask:
        if addends.dtype == np.int64:
            sums = SumRange.capped(self.min_count, len(lane.parties), self.n_rows)
            words = np.empty(len(addends), sums.word)
            np.minimum(addends, self.min_count, out=words, casting="unsafe")  # no counts of 64 bits in between
        else:
            sums = SumRange.of(self.min_count, self.n_rows)
            words = addends.astype(sums.word)
        return await self.reaches(lane, words, self.min_count, sums.width)

    async def reaches(self, lane: Session, words: NDArray[np.unsignedinteger[Any]], threshold: int, width: int) -> Mask:
        """The computing parties compare sums that stay shared, and open to all which reach the threshold.

        Args:
            lane: Fresh for this call.
            words: Shape (m,), this party's addends modulo the size of the word.
            threshold: What is reached, public.
            width: Bits of the comparison; see `comparison.at_least`.

        Raises:
            MalformedMessage: A computing party sent messages of another size.
        """
        holders = self.task.computing
        if len(holders) == 3:
            bits = await sums_at_least(lane.lane("decision"), self.secrets, words, holders, threshold, width)
        else:
            share = await self.shared(lane.lane("sum"), words, width)
            bits = await self.compared(lane.lane("comparison"), share, threshold, width)
        opened = await open_bits(lane, bits, label="frequent", holders=holders, number=len(words))
        if opened is None:
            raise AssertionError("which candidates are frequent is opened to all")
        reached: Mask = opened != 0
        return reached

    async def shared(self, lane: Session, words: NDArray[np.unsignedinteger[Any]], width: int) -> AdditiveShare | None:
        """Leaves sums shared between the computing parties.

        Args:
            lane: Fresh for this call.
            words: Shape (m,), this party's addends modulo the size of the word.
            width: Bits of a comparison of what is computed of the sums.
        """
        holders = self.task.computing
        if len(holders) == 3:
            return await masked_sum(lane, self.secrets, words, holders, width)
        return await shared_sum(lane, self.secrets, words, holders)

    async def compared(self, lane: Session, share: AdditiveShare | None, threshold: int, width: int) -> XorShare | None:
        """Shares of which numbers reach a threshold, at the computing parties; arguments as of `reaches`."""
        holders = self.task.computing
        if share is None:
            return None
        if len(holders) == 3:
            return await at_least_of_three(lane, self.secrets, share, holders, threshold, width)
        if self.two_party is None:
            raise AssertionError("two computing parties agree before they compare")
        return await at_least(lane, self.two_party, share, threshold, width)

    @property
    def _learns_supports(self) -> bool:
        return self.task.disclose != "frequent" and self.session.me in self.task.learners


def no_sum(session: Session) -> ProtocolViolation:
    """What was opened cannot be a sum of the parties' counts."""
    return ProtocolViolation(
        "the parties' counts add up to what no counts can, so a node is faulty or has another version; check all nodes",
        party=session.others[0] if len(session.others) == 1 else None,
    )
