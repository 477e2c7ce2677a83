"""The anonymisation service of a node, as `protos/v1/anonymization.proto` has it: audited queries, and releases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import grpc

from anonymize.auditing.decision import Reason
from jobs.audit.events import Event
from jobs.audit.service_events import QueryDecided, QueryRefused
from link.errors import ConfigurationError, PeerError, PolicyDenied, ResourceError
from link.executor import Executor
from link.logs.structured import Log
from mining.data.tables import Table
from party.config import DatasetSection
from party.data.shared_sources import check_sources
from party.data.sources import Sources
from party.node.interceptors import coordinator_of
from party.node.limits import Streams
from party.services.anonymization.releases import FILE as RELEASES
from party.services.anonymization.releases import Releases
from party.services.anonymization.service import ReleaseService
from party.services.queries import language
from party.services.queries.dataset import DatasetQueries, Outcome
from party.services.queries.kept import KeptAuditors
from party.services.queries.log import FILE, QueryLog
from party.services.queries.policy import QueriesSection, check_query, may_ask
from party.state.node_audit import NodeAudit
from party.state.recovery.heads import Heads, older
from protos.v1 import anonymization_pb2 as pb
from protos.v1.anonymization_pb2_grpc import AnonymizationServicer

Context = grpc.aio.ServicerContext[Any, Any]

SERVICE: Final = "comine.v1.Anonymization"
FOLDER: Final = "queries"  # in the state folder
MAX_WAITING: Final = 16  # queries of one coordinator at once
STOP_S: Final = 5.0  # for a decision under way when the node stops

DENIALS: Final[Mapping[Reason, pb.Denial.ValueType]] = {
    "disclosure": pb.DISCLOSURE,
    "class": pb.CLASS,
    "size": pb.SIZE,
    "overlap": pb.OVERLAP,
    "too many": pb.TOO_MANY,
}


@dataclass(slots=True)
class _Open:
    """A dataset that answers queries; the lock keeps them in a row.

    Attributes:
        section: Of `party.toml`.
        sources: Where its rows are read.
        queries: What decides; another one once the section is another.
    """

    section: DatasetSection
    sources: Sources
    queries: DatasetQueries
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class AnonymizationService(AnonymizationServicer):
    """Answers coordinators; `party.node.interceptors.Gate` stands before it and translates what it raises.

    Args:
        datasets: Of `party.toml`.
        state: The node's state folder.
        me: This party.
        releases: What has been made of rows; the one that opened it closes it.
        sources: Its data.
        executor: Where decisions are made.
        audit: The node's audit log.
        log: The node's log.

    Attributes:
        releases: Makes them.
        answers: To queries, on disk; None where no dataset has queries.
        deciding: Queries that are decided, or wait for it.

    Raises:
        ConfigurationError: What is in the state folder cannot be read, or two datasets reveal the same.
        ResourceError: It cannot be written.
    """

    def __init__(
        self,
        datasets: Sequence[DatasetSection],
        state: Path,
        me: str,
        releases: Releases,
        sources: Sources,
        executor: Executor,
        audit: NodeAudit,
        log: Log,
    ) -> None:
        check_sources(datasets)
        self._me, self._state, self._executor, self._audit, self._lines = me, state, executor, audit, log
        self.answers: QueryLog | None = None
        self._open = {each.name: self._opened(each, sources) for each in datasets if each.queries is not None}
        self._asking = Streams(MAX_WAITING, me)
        self.releases, self._counted = ReleaseService(datasets, state, me, releases, audit), releases
        self.deciding: set[asyncio.Task[pb.QueryReply]] = set()
        self._stopping = False

    def _opened(self, section: DatasetSection, sources: Sources) -> _Open:
        """What answers under a section as it is now; it knows all answers of before, under whatever section."""
        assert section.queries is not None
        if self.answers is None:
            self.answers = QueryLog.open(self._state / FILE)
        kept = KeptAuditors(self._state / FOLDER)
        return _Open(section, sources, DatasetQueries(section.name, section.queries, self.answers, kept, self._lines))

    def check(self, datasets: Sequence[DatasetSection], heads: Heads) -> None:
        """Makes sure that `renew` finds all answers, also where no dataset had queries until now.

        Args:
            datasets: Of `party.toml`.
            heads: How far the databases had come according to the audit log.

        Raises:
            ConfigurationError: Their database cannot be read, or is an older copy.
            ResourceError: It cannot be written.
        """
        if self.answers is None and any(each.queries is not None for each in datasets):
            self.answers = QueryLog.open(self._state / FILE)
        self.compare(heads)

    async def renew(
        self, datasets: Sequence[DatasetSection], sources: Sources, alike: Mapping[str, tuple[str, ...]]
    ) -> None:
        """Answers as other settings say, which were checked; decisions and runs that have begun come to their end.

        Args:
            datasets: Of `party.toml`.
            sources: Their data.
            alike: By dataset, all datasets that have its source or had it.
        """
        self.releases.renew(datasets, alike)
        asked = {each.name: each for each in datasets if each.queries is not None}
        for name, found in tuple(self._open.items()):
            if asked.get(name) == found.section:
                found.sources = sources
                continue
            async with found.lock:
                if name in asked:
                    new = self._opened(asked[name], sources)
                    found.section, found.sources, found.queries = new.section, new.sources, new.queries
                else:
                    del self._open[name]
        self._open |= {name: self._opened(each, sources) for name, each in asked.items() if name not in self._open}

    def compare(self, heads: Heads) -> list[Event]:
        """Whether the databases know all answers and releases in the audit log.

        Raises:
            ConfigurationError: One is an older copy.
        """
        counted = {"releases": (RELEASES, self._counted.head)}
        if self.answers is not None:
            counted["queries"] = FILE, self.answers.head
        for service, (file, number) in counted.items():
            if any(head.number > number for head in heads.heads(service)):
                anew = "begin without a history in an empty state folder (see the page on running a party)"
                raise older(file, self._me, "what has left", anew)
        return []

    async def stop(self) -> None:
        """Takes no further query, ends runs, and waits a while for decisions; the log is whole at any time."""
        self._stopping = True
        await self.releases.stop()
        if self.deciding:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.gather(*self.deciding, return_exceptions=True), STOP_S)

    def close(self) -> None:
        """Closes what is open on disk; after `stop`, or where the node was never started."""
        if self.answers is not None:
            self.answers.close()

    async def ListDatasets(self, request: pb.ListDatasetsRequest, context: Context) -> pb.OpenDatasets:  # noqa: ARG002, N802
        """The datasets of which the coordinator may ask something."""
        coordinator = coordinator_of(context, self._me)
        queries = {
            name: _rules(each.queries.policy)
            for name, each in self._open.items()
            if may_ask(each.queries.policy, coordinator)
        }
        releases = self.releases.rules(coordinator)
        return pb.OpenDatasets(
            datasets=[
                pb.OpenDataset(name=name, queries=queries.get(name), anonymization=releases.get(name))
                for name in dict.fromkeys((*queries, *releases))
            ]
        )

    async def Anonymize(self, request: pb.AnonymizeRequest, context: Context) -> AsyncIterator[pb.ReleasePart]:  # noqa: N802
        """The files of a release, piece by piece."""
        coordinator = coordinator_of(context, self._me)
        async with aclosing(self.releases.anonymize(request, coordinator)) as parts:
            async for part in parts:
                yield part

    async def Query(self, request: pb.QueryRequest, context: Context) -> pb.QueryReply:  # noqa: N802
        """The answer to a query, or why it is denied."""
        coordinator = coordinator_of(context, self._me)
        try:
            found, queries, query = self._allowed(request, coordinator)
        except PolicyDenied as error:
            await self._audit.record(
                QueryRefused(
                    dataset=request.dataset[:100], coordinator=coordinator, code=error.code, reason=error.message[:1000]
                )
            )
            raise
        if self._stopping:
            raise PeerError(f"{self._me} is stopping; ask again when it is back", party=self._me)
        self._audit.check(QueryDecided, coordinator)
        with self._asking.one(coordinator):
            # Who hangs up must not leave a decision half made.
            deciding = asyncio.create_task(self._decide(found, queries, query, request, coordinator))
            self.deciding.add(deciding)
            deciding.add_done_callback(self.deciding.discard)
            return await asyncio.shield(deciding)

    def _allowed(self, request: pb.QueryRequest, coordinator: str) -> tuple[_Open, DatasetQueries, language.Query]:
        found = self._open.get(request.dataset)
        if found is None or not may_ask(found.queries.policy, coordinator):
            raise PolicyDenied(
                f"the policy of {self._me} lets '{coordinator}' ask nothing of a dataset '{request.dataset[:100]}' "
                "(table dataset.queries); see what may be asked with: comine query --node NAME",
                party=self._me,
            )
        query = language.parse(request.query)
        check_query(found.queries.policy, query.function, query.column, query.named, coordinator, self._me)
        return found, found.queries, query

    async def _decide(
        self,
        found: _Open,
        queries: DatasetQueries,
        query: language.Query,
        request: pb.QueryRequest,
        coordinator: str,
    ) -> pb.QueryReply:
        async with found.lock:
            if self._open.get(request.dataset) is not found or found.queries is not queries:
                raise PeerError(
                    f"what may be asked of '{request.dataset}' at {self._me} has changed meanwhile; ask again",
                    party=self._me,
                )
            with self._reason_stays_here(request.dataset, coordinator):
                data = await found.sources.load(request.dataset)
                assert isinstance(data, Table)  # as the dataset's section makes sure
                (outcome,) = await self._executor.map(
                    lambda table: queries.ask(table, query, request.query, coordinator), [data]
                )
            await self._audit.record(
                QueryDecided(
                    dataset=request.dataset,
                    coordinator=coordinator,
                    number=outcome.number,
                    query=request.query,
                    denied=outcome.reason,
                )
            )
        return reply(outcome)

    @contextmanager
    def _reason_stays_here(self, dataset: str, coordinator: str) -> Iterator[None]:
        """Why no query of a dataset can be decided may tell of protected cells, or of a database: it is the owner's."""
        try:
            yield
        except ConfigurationError as error:
            if isinstance(error, ResourceError):
                raise
            self._lines.error("query not decided", caller=coordinator, dataset=dataset, error=error)
            raise type(error)(
                f"{self._me} cannot answer from the dataset '{dataset}' as it is; the log of {self._me} has the reason",
                party=self._me,
            ) from error


def reply(outcome: Outcome) -> pb.QueryReply:
    """What the coordinator is answered."""
    if outcome.reason is not None:
        return pb.QueryReply(number=outcome.number, denied=DENIALS[outcome.reason])
    assert outcome.answer is not None
    return pb.QueryReply(number=outcome.number, answer=outcome.answer)


def _rules(policy: QueriesSection) -> pb.QueryRules:
    return pb.QueryRules(
        public=policy.public,
        columns=[pb.QueryColumn(name=name, classes=classes) for name, classes in policy.columns.items()],
        records=policy.records,
        min_size=policy.min_size,
        max_overlap=policy.max_overlap,
        overlap_for=policy.overlap_for,
        max_queries=policy.max_queries,
    )
