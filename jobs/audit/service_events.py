"""What an audit log records of a node's services to clients and coordinators: collections, routes, queries, releases.

As in `jobs.audit.events`, no event has a place for a value out of anybody's data.
"""

from __future__ import annotations

from pydantic import Field

from jobs.audit.events import Event, Id


# -- the frequency service -------------------------------------------------------------------------------------------
class CollectionEvent(Event):
    """Something in the life of one collection of reports. None holds a report, or who sent one."""

    collection: str


class CollectionCreated(CollectionEvent):
    """A coordinator created a collection."""

    event = "collection-created"
    coordinator: str
    spec_digest: Id
    domain_digest: Id | None = Field(description="Of the labels of its domain; null where there are none.")

    def __str__(self) -> str:
        return f"'{self.collection}' by {self.coordinator}, specification {self.spec_digest.hex()[:12]}"


class CollectionClosed(CollectionEvent):
    """A collection takes no more reports."""

    event = "collection-closed"
    by: str = Field(description="The coordinator that closed it, or schedule.")

    def __str__(self) -> str:
        return f"'{self.collection}' by {self.by}"


class CollectionDeleted(CollectionEvent):
    """All that the node kept of a closed collection was deleted; only this log still records it."""

    event = "collection-deleted"
    by: str = Field(description="The coordinator that had created it.")

    def __str__(self) -> str:
        return f"'{self.collection}' by {self.by}"


class CollectionLost(CollectionEvent):
    """The node's database has nothing of the collection any more when the node starts: it is over."""

    event = "collection-lost"

    def __str__(self) -> str:
        return f"'{self.collection}': the node's database has nothing of it any more"


class RoundEnded(CollectionEvent):
    """A round takes no more reports; recorded again where the node died before its end was on disk."""

    event = "round-ended"
    round: int = Field(ge=0)
    reports: int = Field(ge=0, description="How many were counted.")

    def __str__(self) -> str:
        return f"'{self.collection}', round {self.round}: {self.reports} reports"


class EstimatesRead(CollectionEvent):
    """A coordinator was given the estimates of a round."""

    event = "estimates-read"
    coordinator: str
    round: int = Field(ge=0)
    reports: int = Field(ge=0, description="How many they were made of.")

    def __str__(self) -> str:
        return f"'{self.collection}', round {self.round} of {self.reports} reports, to {self.coordinator}"


# -- the shuffler ----------------------------------------------------------------------------------------------------
class RouteEvent(Event):
    """Something in the life of one route of reports. None holds a report, or who sent one, or when."""

    route: str


class RouteCreated(RouteEvent):
    """A coordinator created a route."""

    event = "route-created"
    coordinator: str
    document_digest: Id

    def __str__(self) -> str:
        return f"'{self.route}' by {self.coordinator}, document {self.document_digest.hex()[:12]}"


class BatchClosed(RouteEvent):
    """A batch took no more reports and was put into its new order; recorded again where the node died before that."""

    event = "batch-closed"
    batch: int = Field(ge=1)
    received: int = Field(ge=0, description="Reports that came.")
    dropped: int = Field(ge=0, description="Of these that were broken, there before, or beyond a sender's share.")
    withheld: int = Field(ge=0, description="Of these that were discarded, since too few were left to hide among.")
    forwarded: int = Field(ge=0, description="Of these that leave.")

    def __str__(self) -> str:
        left = f"{self.dropped} dropped, {self.withheld} withheld, {self.forwarded} forwarded"
        return f"'{self.route}', batch {self.batch}: {self.received} reports came, {left}"


class BatchForwarded(RouteEvent):
    """A closed batch is at its next place, and its reports were deleted here; recorded again where the node died."""

    event = "batch-forwarded"
    batch: int = Field(ge=1)
    to: str = Field(description="The next shuffler, or the member that collects.")
    reports: int = Field(ge=0)

    def __str__(self) -> str:
        return f"'{self.route}', batch {self.batch}: {self.reports} reports to {self.to}"


class RouteRetired(RouteEvent):
    """A route takes no more reports."""

    event = "route-retired"
    by: str = Field(description="The coordinator that had created it.")
    discarded: int = Field(ge=0, description="Reports that waited, too few for a batch.")

    def __str__(self) -> str:
        return f"'{self.route}' by {self.by}, {self.discarded} reports discarded"


class RouteLost(RouteEvent):
    """The node's database has nothing of the route any more when the node starts: it is over."""

    event = "route-lost"

    def __str__(self) -> str:
        return f"'{self.route}': the node's database has nothing of it any more"


# -- audited queries -------------------------------------------------------------------------------------------------
class QueryDecided(Event):
    """A query was answered or denied. The answer is in the node's own log of queries, under the same number."""

    event = "query-decided"
    dataset: str
    coordinator: str
    number: int = Field(ge=1, description="Of the decision, in the order in which the node made them.")
    query: str = Field(description="In the coordinator's words.")
    denied: str | None = Field(description="Why; null where it was answered.")

    def __str__(self) -> str:
        how = "answered" if self.denied is None else f"denied ({self.denied})"
        return f"{self.coordinator} asked '{self.dataset}': {self.query}; {how}, number {self.number}"


class QueryRefused(Event):
    """A coordinator asked what the policy does not let it ask; nothing was decided, and no auditor knows of it."""

    event = "query-refused"
    dataset: str
    coordinator: str
    code: str = Field(description="Of the error.")
    reason: str = Field(description="As the coordinator saw it.")

    def __str__(self) -> str:
        return f"{self.coordinator} asked for '{self.dataset}': {self.code}, {self.reason}"


# -- releases of a party's tables ------------------------------------------------------------------------------------
class JointReleaseBegan(Event):
    """A joint release of a table begins; nothing of its rows left for it before this entry."""

    event = "joint-release-began"
    dataset: str
    coordinator: str
    job: Id
    number: int = Field(ge=1, description="Releases and failures that the node had counted by then.")

    def __str__(self) -> str:
        return f"'{self.dataset}' for {self.coordinator}: job {self.job.hex()[:12]}, number {self.number}"


class TableReleased(Event):
    """An anonymised release of a table leaves to a coordinator; nothing of it left before this entry."""

    event = "table-released"
    dataset: str
    coordinator: str
    request: Id = Field(description="SHA-256 of what was asked, with what the node added of its own.")
    algorithm: str
    k: int | None = Field(description="Null where the algorithm forms no classes.")
    columns: tuple[str, ...] = Field(description="That leave, generalised or as they are.")
    rows: int = Field(ge=0, description="How many are published.")
    certificate: Id = Field(description="The digest in certificate.json, which the coordinator has, too.")
    report: bool = Field(description="Whether the report with figures of the original leaves with it.")
    number: int = Field(default=0, ge=0, description="Releases and failures that the node had counted by then.")

    def __str__(self) -> str:
        k = "" if self.k is None else f", k = {self.k}"
        what = f"{self.rows} rows of {', '.join(self.columns)} ({self.algorithm}{k})"
        return f"'{self.dataset}' to {self.coordinator}: {what}" + (", with its report" if self.report else "")


class ReleaseRefused(Event):
    """A coordinator asked for a release and got none."""

    event = "release-refused"
    dataset: str
    coordinator: str
    code: str = Field(description="Of the error.")
    reason: str = Field(description="As the coordinator saw it.")
    number: int = Field(default=0, ge=0, description="Releases and failures that the node had counted by then.")

    def __str__(self) -> str:
        return f"{self.coordinator} asked for '{self.dataset}': {self.code}, {self.reason}"
