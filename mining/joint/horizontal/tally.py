"""The means of joint horizontal mining: a tally of all parties' counts, local thresholds, and set unions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np

from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.sums.masked_maximum import masked_maximum
from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.sums.secure_sum import secure_sum
from crypto.protocols.union.prefix_union import prefix_union
from link.errors import InputDataError, shareable
from link.journal import Known
from link.session import Session
from link.steps import step
from mining.joint.horizontal.strategy import thins
from mining.joint.parameters import HorizontalMining
from mining.joint.tally import MAX_ROWS, Counts, Mask, Tally, no_sum
from mining.thresholds import agreed_count, local_threshold, shows_rows, tells_of_rows


@dataclass(frozen=True, slots=True)
class HorizontalTally(Tally):
    """The parties' common means to decide on candidates that they count in rows of their own.

    Attributes:
        task: The public parameters.
        threshold: τ, this party's local threshold: an itemset of support ≥ c reaches some party's.
        pairs: What this party agrees upon with each of the others, for unions.
    """

    task: HorizontalMining
    threshold: int
    pairs: Mapping[str, TwoParty]

    @property
    def thins(self) -> bool:
        """Whether a level is first thinned to what is locally frequent somewhere."""
        return thins(self.task, len(self.session.parties), self.min_count)

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
    ) -> HorizontalTally:
        """Opens the number of all transactions and derives the thresholds from it.

        Args:
            session: The lane of the mining run.
            secrets: Pairwise secrets of this session.
            two_party: At a computing party, where sums stay shared.
            pairs: With each of the others, for unions.
            task: The public parameters.
            rows: Transactions of this party.
            least_count: This party's own floor for c.

        Raises:
            ConfigurationError: min_support is a count above the number of transactions.
            InputDataError: There are no transactions.
            PolicyDenied: c is below this party's floor, or so low that a party's items would be named for a single row.
            ProtocolViolation: The number is none that parties can have.
        """

        async def count() -> Known:
            ours = np.array([rows], np.uint64)
            total = await secure_sum(session.lane("rows"), secrets, ours, label="rows")
            if total is None:
                raise AssertionError("the number of rows is opened to all")
            return Known(int(total[0]))

        n_rows = int((await step(session, "number of rows", count)).public)
        least, threshold = cls.thresholds(session, task, rows, n_rows, least_count)
        return cls(session, secrets, two_party, task, n_rows, least, threshold, pairs)

    @staticmethod
    def thresholds(
        session: Session, task: HorizontalMining, rows: int, n_rows: int, least_count: int
    ) -> tuple[int, int]:
        """c, and this party's local threshold, from the number of all transactions; arguments and errors as of `open`.

        Args:
            session: The lane of the mining run.
            task: The public parameters.
            rows: Transactions of this party.
            n_rows: Of all parties, as it was opened.
            least_count: This party's own floor for c.
        """
        if not rows <= n_rows <= MAX_ROWS:
            raise no_sum(session)
        if n_rows == 0:
            raise shareable(InputDataError("no party has any transaction in this dataset, so there is nothing to mine"))
        min_count = agreed_count(task.min_support, n_rows, floor=least_count, me=session.me)
        if least_count > 1 and task.universe == "frequent-items" and tells_of_rows(min_count, len(session.parties)):
            raise shareable(shows_rows(session.me, least_count))
        threshold = local_threshold(task.min_support, rows, min_count, len(session.parties), task.lambda_, n_rows)
        return min_count, threshold

    async def decision(
        self,
        name: str,
        number: int,
        take: Callable[[], Awaitable[tuple[Mask, Counts | None]]],
        *,
        supports: bool = True,
    ) -> tuple[Mask, Counts | None]:
        """A decision on candidates as a step of the job.

        Args:
            name: Of the step.
            number: Of the candidates, as all parties know.
            take: Decides, as `decide` does.
            supports: Whether the supports of the frequent ones are wanted.
        """

        async def decide() -> Known:
            frequent, sums = await take()
            to = self.task.learners if supports and self.task.disclose != "frequent" else ()
            return Known(np.packbits(frequent), sums, to)

        known = await step(self.session, name, decide)
        return np.unpackbits(known.public, count=number).view(np.bool_), known.learned

    async def all_agree(self, name: str, agreed: bool) -> bool:
        """The AND over all parties of one bit each; see `masked_maximum`.

        A party learns the AND over the *others*, also where it disagreed itself; with two parties that is the other's
        bit. Colluders likewise learn the AND over all but them, never a single bit of several.
        """
        lane = self.session.lane(name)
        (refused,) = await masked_maximum(lane, self.secrets, [int(not agreed)], [1], label="enumeration_bounded")
        return not refused

    async def union(self, name: str, elements: Collection[bytes], label: str, max_element_bytes: int) -> list[bytes]:
        """The union of all parties' elements, in ascending order of bytes.

        Args:
            name: Of the lane, unused so far.
            elements: This party's.
            label: Under which it is opened.
            max_element_bytes: The longest element that the job allows, public.
        """
        return await prefix_union(
            self.session.lane(name),
            self.secrets,
            self.pairs,
            elements,
            bound=self.task.bound,
            label=label,
            max_element_bytes=max_element_bytes,
        )

    async def united(self, name: str, unite: Callable[[], Awaitable[list[bytes]]]) -> list[bytes]:
        """A union as a step of the job, where nothing that follows is decided on in the same one.

        Args:
            name: Of the step.
            unite: Takes it.
        """

        async def take() -> Known:
            elements = await unite()
            return Known((np.array([len(each) for each in elements], np.uint32), b"".join(elements)))

        sizes, joined = (await step(self.session, name, take)).public
        stops = np.cumsum(sizes, dtype=np.int64).tolist()
        return [joined[stop - size : stop] for size, stop in zip(sizes.tolist(), stops, strict=True)]
