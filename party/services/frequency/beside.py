"""Collections as people beside a node see them, whether or not it runs: from its disk, of rounds that have ended.

They learn of a round what its readers do, once, from all its reports together: `party.services.frequency.readers` says
why. What they see is what those get, made of the same messages.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import NamedTuple

from jobs.collections.estimates import Asked, Estimates, Pieces, mechanism_of_round, rows
from jobs.collections.reading import Reading, are_alike, before
from jobs.collections.spec import CollectionSpec, digest_of
from ldp.documents import mechanism_of
from ldp.domain import Domain
from link.errors import ConfigurationError, InputDataError, PolicyDenied
from party.config import PartyConfig
from party.services.frequency.collection import ended_snapshot
from party.services.frequency.collections import no_collection
from party.services.frequency.estimates import Question, answer, is_shown
from party.services.frequency.messages import collection_of, counters_of, left_out_of, parts_of, round_of
from party.services.frequency.policy import FrequencySection
from party.services.frequency.storage.reading import FrequencyRecords
from party.services.frequency.storage.records import StoredCollection, StoredRound
from party.services.frequency.storage.store import FILE
from protos.v1.frequency_pb2 import Collection


class Ended(NamedTuple):
    """A round that has ended.

    Attributes:
        stored: As it is on disk.
        shown: Whether its estimates are: they were released, or there are reports, as many as the policy asks for.
    """

    stored: StoredRound
    shown: bool


class Kept:
    """The collections of a node, from its disk.

    Args:
        records: The database.
        policy: The node's.
        me: This party.
        now: Unix seconds.
    """

    def __init__(self, records: FrequencyRecords, policy: FrequencySection, me: str, now: float) -> None:
        self._records, self._policy, self._me, self._now = records, policy, me, now

    def collections(self) -> list[tuple[Collection, CollectionSpec]]:
        """All of them as their creators see them, in the order of their names."""
        stored = sorted(self._records.collections(), key=lambda each: each.name)
        return [(self._described(each, spec := CollectionSpec.from_canonical(each.spec)), spec) for each in stored]

    def ended(self, name: str) -> list[Ended]:
        """The rounds of a collection that have ended, the latest first.

        Raises:
            ConfigurationError: There is none of that name.
        """
        continual = CollectionSpec.from_canonical(self._found(name).spec).continual is not None
        least, released = max(1, self._policy.min_reports), self._records.released(name)
        return [
            Ended(each, each.number in released or (not continual and each.counters.counted >= least))
            for each in reversed(self._records.rounds(name, states=False))
            if each.ended is not None
        ]

    def reading(self, name: str, number: int | None) -> Reading | None:
        """A round as `comine frequency estimate` reads it, and those before it.

        Args:
            name: Of the collection.
            number: Of the round; None for the latest that is shown.

        Returns:
            None where no round is named, and none is shown yet.

        Raises:
            ConfigurationError: There is no such collection, or no such round that has ended; or nothing can be
                estimated from its reports without candidates.
            PolicyDenied: It has fewer reports than the policy asks for.
        """
        stored = self._found(name)
        if number is None:
            number = next((each.stored.number for each in self.ended(name) if each.shown), None)
            if number is None:
                return None
        spec = CollectionSpec.from_canonical(stored.spec)
        domain = spec.domain(stored.labels)
        latest = self._estimates(stored, spec, domain, number)
        earlier: list[Estimates] = []
        for each in before(spec, latest):
            with suppress(ConfigurationError, PolicyDenied):  # forgotten, of another version, or of too few reports
                found = self._estimates(stored, spec, domain, each)
                if are_alike(found, latest):
                    earlier.insert(0, found)
        shown = list(rows(latest, domain, Asked()))
        mechanism = mechanism_of_round(latest, domain)
        collection = self._described(stored, spec)
        return Reading(collection, spec, domain, Asked(), latest, mechanism, shown, earlier=tuple(earlier))

    def _estimates(
        self, stored: StoredCollection, spec: CollectionSpec, domain: Domain | None, number: int
    ) -> Estimates:
        snapshot = ended_snapshot(self._records, stored.name, number, domain)
        if snapshot is None:
            raise ConfigurationError(
                f"the collection '{stored.name}' has no round {number} that has ended, or not any more; take one of "
                "its list"
            )
        if len(snapshot.aggregator) and not is_shown(snapshot, self._policy):
            raise PolicyDenied(
                f"the policy of {self._me} shows estimates of {self._policy.min_reports:,} reports or more (rule "
                f"min_reports), and round {number} of '{stored.name}' has fewer"
            )
        pieces, whole = Pieces(self._me), None
        for part in parts_of(stored.name, snapshot, answer(snapshot, Question(), spec, domain)):
            whole = pieces.add(part)
        assert whole is not None
        return whole

    def _described(self, stored: StoredCollection, spec: CollectionSpec) -> Collection:
        domain, open_, ended = spec.domain(stored.labels), [], 0
        for each in self._records.rounds(stored.name, states=False):
            if each.ended is not None:
                ended += 1
                continue
            try:
                open_.append(round_of(each, mechanism_of(each.mechanism, domain).fingerprint))
            except InputDataError:
                return left_out_of(stored, self._me)
        found = collection_of(
            stored,
            open_,
            closed=stored.closed is not None,
            ended=ended,
            domain_digest=digest_of(stored.labels),
            me=self._me,
            now=self._now,
        )
        found.counters.CopyFrom(counters_of(self._records.counters(stored.name)))
        return found

    def _found(self, name: str) -> StoredCollection:
        found = next((each for each in self._records.collections() if each.name == name), None)
        if found is None:
            raise no_collection(name, self._me)
        return found


@contextmanager
def collections_of(config: PartyConfig) -> Iterator[Kept | None]:
    """The collections of a node; None where it has no such service, or has not begun with it.

    Raises:
        ComineError: They cannot be read.
    """
    path = config.party.state_dir / FILE
    if config.frequency is None or not path.exists():
        yield None
        return
    with closing(FrequencyRecords.look(path)) as records:
        yield Kept(records, config.frequency, config.party.name, time.time())
