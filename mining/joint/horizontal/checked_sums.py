"""Sums that are decided where parties may deviate: among three computing parties, or between two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.shares.replicated import Holders3
from crypto.primitives.shares.xor import words_of
from crypto.protocols.authenticated import authenticated_sums
from crypto.protocols.authenticated.decisions import decision_on, sum_width
from crypto.protocols.replicated import crosschecks, verified_sums
from crypto.protocols.replicated.verified_total import opened_total
from crypto.protocols.sums.pairwise import PairwiseSecrets
from link.session import Session
from mining.joint.parameters import HorizontalMining

ROW_BITS: Final = 56  # of a party's number of rows
ROWS: Final = "rows"  # the label
Words = NDArray[np.uint64]
Planes = NDArray[np.uint8]


class Decision(Protocol):
    """What a computing party holds of a batch."""

    @property
    def sums(self) -> Any:
        """The share of what tells all sums."""

    @property
    def reached(self) -> Any:
        """The share of whether each reaches the threshold."""


class CheckedSums(Protocol):
    """How sums are decided; shares are None at parties that do not compute."""

    async def total(self, session: Session, rows: int) -> tuple[int, Any]:
        """The number of all rows, opened, and shares of each party's; arguments and errors as of `opened_total`."""

    async def decided(
        self, session: Session, values: Words, limits: Any, threshold: int, width: int
    ) -> Decision | None:
        """Whether sums of numbers within limits reach a threshold; see `verified_sums.decided`."""

    async def opened(
        self, session: Session, share: Any, *, label: str, number: int, width: int, to: Sequence[str]
    ) -> Planes | None:
        """Opens words; see `crosschecks.opened`."""

    async def opened_sums(
        self, session: Session, share: Any, threshold: int, *, label: str, number: int, width: int, to: Sequence[str]
    ) -> Words | None:
        """Opens sums that were held against a threshold; else likewise."""


@dataclass(frozen=True, slots=True)
class AmongThree:
    """Of which one may deviate: on replicated shares.

    Attributes:
        secrets: This party's with each other.
        holders: The three.
        n_own: This party's number of rows.
    """

    secrets: PairwiseSecrets
    holders: Holders3
    n_own: int

    async def total(self, session: Session, rows: int) -> tuple[int, Any]:
        """As of `CheckedSums`."""
        return await opened_total(session, self.secrets, rows, self.holders, ROW_BITS, label=ROWS)

    async def decided(
        self, session: Session, values: Words, limits: Any, threshold: int, width: int
    ) -> Decision | None:
        """As of `CheckedSums`."""
        return await verified_sums.decided(
            session, self.secrets, values, self.holders, self.n_own, limits, threshold, width
        )

    async def opened(
        self, session: Session, share: Any, *, label: str, number: int, width: int, to: Sequence[str]
    ) -> Planes | None:
        """As of `CheckedSums`."""
        return await crosschecks.opened(
            session, share, label=label, holders=self.holders, number=number, width=width, to=to
        )

    async def opened_sums(
        self, session: Session, share: Any, _: int, *, label: str, number: int, width: int, to: Sequence[str]
    ) -> Words | None:
        """As of `CheckedSums`."""
        planes = await self.opened(session, share, label=label, number=number, width=width, to=to)
        return None if planes is None else words_of(planes, number)


@dataclass(frozen=True, slots=True)
class BetweenTwo:
    """Of which one may deviate: on authenticated shares.

    Attributes:
        keyed: At the two, what they agree upon.
        holders: The two.
    """

    keyed: authenticated_sums.Keyed | None
    holders: tuple[str, str]

    async def total(self, session: Session, rows: int) -> tuple[int, Any]:
        """As of `CheckedSums`."""
        ours = np.array([rows], np.uint64)
        found = await authenticated_sums.summed(session, self.keyed, ours, self.holders, ROW_BITS)
        planes = await self.opened(
            session.lane("open"),
            None if found is None else found[0],
            label=ROWS,
            number=1,
            width=sum_width(len(session.parties), ROW_BITS),
            to=session.parties,
        )
        if planes is None:
            raise AssertionError("the number of rows is opened to all")
        return int(words_of(planes, 1)[0]), None if found is None else found[1]

    async def decided(
        self, session: Session, values: Words, limits: Any, threshold: int, width: int
    ) -> Decision | None:
        """As of `CheckedSums`."""
        return await authenticated_sums.decided(session, self.keyed, values, self.holders, limits, threshold, width)

    async def opened(
        self, session: Session, share: Any, *, label: str, number: int, width: int, to: Sequence[str]
    ) -> Planes | None:
        """As of `CheckedSums`."""
        return await authenticated_sums.opened(
            session, self.keyed, share, label=label, holders=self.holders, number=number, width=width, to=to
        )

    async def opened_sums(
        self, session: Session, share: Any, threshold: int, *, label: str, number: int, width: int, to: Sequence[str]
    ) -> Words | None:
        """As of `CheckedSums`."""
        decision = decision_on(len(session.parties), threshold, width)
        planes = await self.opened(session, share, label=label, number=number, width=decision.sum_planes, to=to)
        return None if planes is None else decision.totals(planes, number)


def checked_sums(session: Session, secrets: PairwiseSecrets, task: HorizontalMining, rows: int) -> CheckedSums:
    """This party's means.

    Args:
        session: The lane for what two agree upon, fresh for this call.
        secrets: This party's with each other.
        task: The public parameters.
        rows: Transactions of this party.
    """
    if task.helper is not None:
        return AmongThree(secrets, task.three, rows)
    keyed = authenticated_sums.Keyed(session, task.compute) if session.me in task.compute else None
    return BetweenTwo(keyed, task.compute)
