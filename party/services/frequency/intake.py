"""Where the reports of one open round are taken: each client counted once, and only what is on disk acknowledged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp.aggregator import Aggregator
from ldp.mechanism import Mechanism
from ldp.reports import Reports
from link.errors import InputDataError
from party.services.frequency.storage.participants import Claim
from party.services.frequency.storage.records import Counters
from party.services.frequency.storage.store import FrequencyStore
from party.services.frequency.storage.tags import PSEUDONYM_BYTES


class Intake:
    """The reports of one round, from when it is opened, or the node started again, until it is stopped.

    Making one reads back who took part in the period, about 1 s for 10^7 reports: do it on a thread.

    Args:
        store: Where reports are kept.
        collection: Its name.
        round: The number of the round, which is kept already (`FrequencyStore.open_round`).
        period: The round's, in which a client takes part once.
        mechanism: Whose reports these are.

    Attributes:
        open: The round, as the store has it.

    Raises:
        ConfigurationError: There is no such round, it has ended, or another intake of it is at work.
    """

    def __init__(
        self,
        store: FrequencyStore,
        collection: str,
        round: int,  # noqa: A002
        period: int,
        mechanism: Mechanism[Any],
    ) -> None:
        self.collection, self.round, self.mechanism = collection, round, mechanism
        self._store = store
        self.open = store.recover(collection, round, period, mechanism)

    async def submit(
        self, submitter: str, pseudonyms: NDArray[np.uint8], reports: Reports, quota: int
    ) -> NDArray[np.uint8]:
        """Counts reports, each pseudonym of a submitter once in the period; returns when they are on disk.

        A cancelled call may have counted them or not; to send them again is always right.

        Args:
            submitter: The name in the certificate of the sender.
            pseudonyms: Of the clients, shape (n, 16).
            reports: One of each, read by the mechanism.
            quota: How many reports of this submitter are counted in the period; the same each time.

        Returns:
            Shape (n,): the `ReportStatus` COUNTED, DUPLICATE (counted before, or earlier in this batch) or OVER_QUOTA.

        Raises:
            InputDataError: The round has ended, or pseudonyms and reports do not fit each other.
            ResourceError: The disk is full or broken; none of the reports was counted.
        """
        if pseudonyms.dtype != np.uint8 or pseudonyms.shape != (len(reports), PSEUDONYM_BYTES):
            raise InputDataError(f"each report comes with a pseudonym of {PSEUDONYM_BYTES} bytes")
        if reports.fingerprint != self.mechanism.fingerprint:
            raise InputDataError("the reports belong to another mechanism or to other parameters of it")
        if not len(reports):
            return np.empty(0, np.uint8)
        return await self._store.commit(self.open, Claim(submitter, pseudonyms, quota), reports)

    def refuse(self, reason: str, n: int) -> None:
        """Counts reports that were refused before they came here; on disk within a second or so.

        Args:
            reason: A field of `Counters`.
            n: How many.
        """
        self._store.refused(self.open, reason, n)

    def stop(self) -> None:
        """Takes no more reports; when it returns, those taken are on disk, and `aggregator` gives the final sums.

        It waits for the disk: call it on a thread.
        """
        self._store.stop(self.open)

    def aggregator(self) -> Aggregator[Any]:
        """A copy of the sums over all reports that were acknowledged, and perhaps some that are about to be.

        It waits for no commit. It folds what the background has not yet folded, usually below 2^14 reports: call it on
        a thread.
        """
        return self.open.folding.aggregator()

    @property
    def counters(self) -> Counters:
        """What became of the reports."""
        return replace(self._store.refusals(self.open), counted=self.open.counted)
