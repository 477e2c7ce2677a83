"""What becomes of one batch of reports: it is checked from the cheapest to the dearest, and counted, or refused.

Nothing here believes the sender: it may be any client whose certificate is good. A wrong batch is refused with a
receipt that says why, and its reports are counted as refused; the stream goes on. Only what honest software never does,
such as a batch beyond all bounds, ends a stream.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.reports import FINGERPRINT_BYTES
from link.errors import ComineError, InputDataError, LimitExceeded, ResourceError
from party.services.frequency.access import quota_of
from party.services.frequency.collection import Collection, OpenRound
from party.services.frequency.collections import Collections
from party.services.frequency.storage.store import FrequencyStore
from party.services.frequency.storage.tags import PSEUDONYM_BYTES
from party.services.frequency.workers import Workers
from protos.v1 import frequency_pb2 as pb

MAX_BATCH_BYTES: Final = 4 << 20
MAX_NAME: Final = 63

_FINGERPRINT: Final = slice(5, 5 + FINGERPRINT_BYTES)  # of a batch of reports, behind its magic and version
_REASONS: Final = {
    pb.MALFORMED: "malformed",
    pb.FOREIGN: "foreign",
    pb.LATE: "late",
    pb.EARLY: "early",
}


class Refused(Exception):
    """A whole batch is refused.

    Args:
        status: A `ReportStatus`.
        sentence: Why.
    """

    def __init__(self, status: pb.ReportStatus.ValueType, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


class Submissions:
    """Takes batches for all collections of a node.

    Args:
        collections: The collections.
        store: Where they are kept.
        me: This party.
        workers: Threads.
        now: Unix seconds.
        most_memory: Bytes that it may take who has taken part in open periods.
    """

    def __init__(
        self,
        collections: Collections,
        store: FrequencyStore,
        me: str,
        workers: Workers,
        now: Callable[[], float],
        most_memory: int,
    ) -> None:
        self._collections, self._store, self._me = collections, store, me
        self._workers, self.now, self.most_memory = workers, now, most_memory

    def checked_size(self, batch: pb.ReportBatch) -> int:
        """The bytes of a batch; refuses what no honest client sends.

        Raises:
            LimitExceeded: The batch is larger than batches may be.
        """
        size = batch.ByteSize()
        if size > MAX_BATCH_BYTES:
            raise LimitExceeded(
                f"{self._me} takes batches of at most {MAX_BATCH_BYTES >> 20} MiB; send the reports in several",
                party=self._me,
            )
        return size

    async def take(self, batch: pb.ReportBatch, submitter: str) -> pb.BatchReceipt:
        """The receipt for a batch; what it says was counted is on disk.

        Args:
            batch: From anybody whose certificate is good.
            submitter: The name in that certificate.

        Raises:
            ResourceError: The disk is full; no report was counted, and all may be sent again later.
        """
        try:
            return await self._take(batch, submitter)
        except Refused as refused:
            return pb.BatchReceipt(sequence=batch.sequence, status=refused.status, message=refused.sentence)

    async def _take(self, batch: pb.ReportBatch, submitter: str) -> pb.BatchReceipt:
        collection = await self._collection(batch)
        quota = quota_of(collection.spec, submitter)
        if not quota:
            raise Refused(pb.REFUSED, f"'{submitter}' may not report to the collection '{collection.name}'")
        size = max(1, len(batch.pseudonyms) // PSEUDONYM_BYTES)
        try:
            found = self._round(collection, batch.round)
            with found.busy():
                statuses = await self._counted(found, batch, submitter, quota)
        except Refused as refused:
            if refused.status in _REASONS:
                await self._note(collection, batch.round, _REASONS[refused.status], size)
            raise
        collection.changes.notify()
        return _receipt(batch.sequence, statuses)

    async def _collection(self, batch: pb.ReportBatch) -> Collection:
        try:
            found = await self._collections.find(batch.collection)
        except ResourceError:
            raise
        except ComineError as error:
            raise Refused(pb.REFUSED, error.message) from None
        if found.closed:
            raise Refused(pb.REFUSED, f"the collection '{found.name}' is closed")
        return found

    def _round(self, collection: Collection, number: int) -> OpenRound:
        """The round, if it takes reports now: whatever a clock of the sender's says, that of the node decides."""
        found = collection.open.get(number)
        if found is None:
            if number >= collection.next_number:
                raise Refused(pb.EARLY, f"round {number} of the collection '{collection.name}' has not begun")
            raise Refused(pb.LATE, f"round {number} of the collection '{collection.name}' is over")
        if found.is_ending or (found.stored.closes and found.stored.closes <= self.now()):
            raise Refused(pb.LATE, f"round {number} of the collection '{collection.name}' is over")
        return found

    async def _counted(self, found: OpenRound, batch: pb.ReportBatch, submitter: str, quota: int) -> NDArray[np.uint8]:
        size, rest = divmod(len(batch.pseudonyms), PSEUDONYM_BYTES)
        if rest or not size:
            raise Refused(pb.MALFORMED, f"pseudonyms have {PSEUDONYM_BYTES} bytes each, and a batch has one at least")
        mechanism = found.mechanism
        if len(batch.reports) >= _FINGERPRINT.stop and batch.reports[_FINGERPRINT] != mechanism.fingerprint:
            raise Refused(pb.FOREIGN, "the reports are of another mechanism, or of other parameters of it")
        try:
            reports = await self._workers.read(len(batch.reports), mechanism.read, batch.reports)
        except InputDataError as error:
            raise Refused(pb.MALFORMED, error.message) from None
        if len(reports) != size:
            raise Refused(pb.MALFORMED, f"a batch of {len(reports):,} reports came with {size:,} pseudonyms")
        if self._store.is_full:
            raise ResourceError(
                f"the collections of {self._me} take as much of the disk as its policy allows (rule max_disk); close "
                "some, or send the reports later",
                party=self._me,
            )
        if self._store.memory >= self.most_memory:
            raise ResourceError(
                f"whose reports the open collections of {self._me} have is kept in as much memory as its policy allows "
                "(rule max_memory); close some, or send the reports in a later period",
                party=self._me,
            )
        pseudonyms = np.frombuffer(batch.pseudonyms, np.uint8).reshape(size, PSEUDONYM_BYTES)
        return await found.intake.submit(submitter, pseudonyms, reports, quota)

    async def _note(self, collection: Collection, number: int, reason: str, size: int) -> None:
        found = collection.open.get(number)
        if found is not None:
            found.intake.refuse(reason, size)
        else:
            known = number if number < collection.next_number else None
            await self._workers.disk(self._store.refuse, collection.name, known, reason, size)


def _receipt(sequence: int, statuses: NDArray[np.uint8]) -> pb.BatchReceipt:
    counted = int(np.count_nonzero(statuses == pb.COUNTED))
    for status in (pb.COUNTED, pb.DUPLICATE, pb.OVER_QUOTA):
        if np.all(statuses == status):
            return pb.BatchReceipt(sequence=sequence, status=status, counted=counted)
    return pb.BatchReceipt(sequence=sequence, statuses=statuses.tobytes(), counted=counted)
