"""The coordinator's end of audited queries: what a node lets be asked, and its answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final

from coordinator.node_client import ANSWER_S, REACH_S, NodeClient
from link.errors import PolicyDenied
from link.pki.identity import Identity
from protos.v1 import anonymization_pb2 as pb
from protos.v1.anonymization_pb2_grpc import AnonymizationStub

REASONS: Final[Mapping[int, tuple[str, str]]] = {
    pb.DISCLOSURE: ("disclosure", "its answer could reveal somebody's value, together with earlier answers"),
    pb.CLASS: ("class", "the column has answered queries of another class, and both together would reveal values"),
    pb.SIZE: ("size", "it is about too few records, or a count of records leaves out too few"),
    pb.OVERLAP: ("overlap", "it shares too many records with an earlier query"),
    pb.TOO_MANY: ("too many", "as many queries were answered as may be"),
}
"""Why queries are denied: in a word, and in a sentence."""


@dataclass(frozen=True, slots=True)
class Answer:
    """How a node decided on a query.

    Attributes:
        node: Whose.
        dataset: Of which dataset.
        query: What was asked.
        number: Of the decision, in the order of the node's decisions.
        value: The answer; None where it is denied.
        denied: Why, in a word; None where it is answered.
        sentence: Why, for people; empty where it is answered.
    """

    node: str
    dataset: str
    query: str
    number: int
    value: float | None
    denied: str | None
    sentence: str

    @property
    def text(self) -> str:
        """The answer in figures, no fewer than are known; empty where it is denied."""
        if self.value is None:
            return ""
        return str(int(self.value)) if self.value.is_integer() else repr(self.value)

    def check(self) -> None:
        """Refuses a denial.

        Raises:
            PolicyDenied: The query was denied.
        """
        if self.denied is not None:
            raise PolicyDenied(f"{self.node} denies the query: {self.sentence}", party=self.node)

    def as_data(self) -> dict[str, Any]:
        """As JSON, `comine.query/1`."""
        return {
            "schema": "comine.query/1",
            "node": self.node,
            "dataset": self.dataset,
            "query": self.query,
            "number": self.number,
            "answer": self.value,
            "denied": self.denied,
        }


class QueryNode(NodeClient):
    """Asks the anonymisation service of one node.

    Args:
        identity: The coordinator.
        party: Whose node it must prove to be.
        address: HOST:PORT.
    """

    def __init__(self, identity: Identity, party: str, address: str) -> None:
        super().__init__(identity, party, address)
        self._service: Any = AnonymizationStub(self.channel)

    async def datasets(self) -> list[pb.OpenDataset]:
        """The datasets that answer queries of the coordinator."""
        found = await self.call(self._service.ListDatasets(pb.ListDatasetsRequest(), timeout=REACH_S))
        return [each for each in found.datasets if each.HasField("queries")]

    async def ask(self, dataset: str, query: str, timeout_s: float = ANSWER_S) -> Answer:
        """A query's answer, or why it is denied.

        Raises:
            PolicyDenied: The policy does not let it be asked at all.
            UsageError: The query cannot be read.
            MalformedMessage: The node sends no decision.
        """
        request = pb.QueryRequest(dataset=dataset, query=query)
        reply: pb.QueryReply = await self.call(self._service.Query(request, timeout=timeout_s))
        value, denied, sentence = None, None, ""
        if reply.WhichOneof("decision") == "answer" and isfinite(reply.answer):
            value = reply.answer
        elif reply.WhichOneof("decision") == "denied" and reply.denied in REASONS:
            denied, sentence = REASONS[reply.denied]
        else:
            raise self.malformed("no decision")
        return Answer(self.party, dataset, query, reply.number, value, denied, sentence)


HEADS: Final = ("dataset", "column", "may be asked", "conditions on", "records")


def listing(datasets: list[pb.OpenDataset]) -> list[tuple[str, ...]]:
    """What may be asked, a line for each column."""
    lines: list[tuple[str, ...]] = []
    for each in datasets:
        rules = each.queries
        asked = [(column.name, ", ".join(column.classes)) for column in rules.columns]
        asked += [("*", "count")] if rules.records else []
        least = f"at least {rules.min_size}"
        share = f"{least}, {'queries' if rules.overlap_for == 'all' else 'counts'} share at most {rules.max_overlap}"
        bounded = rules.HasField("max_overlap")
        for name, classes in asked:
            limits = share if bounded and (classes == "count" or rules.overlap_for == "all") else least
            lines.append((each.name, name, classes, ", ".join(rules.public), limits))
    return lines


def listing_as_data(node: str, datasets: list[pb.OpenDataset]) -> dict[str, Any]:
    """What may be asked as JSON, `comine.queries/1`."""
    return {
        "schema": "comine.queries/1",
        "node": node,
        "datasets": [
            {
                "name": each.name,
                "public": list(each.queries.public),
                "columns": {column.name: list(column.classes) for column in each.queries.columns},
                "records": each.queries.records,
                "min_size": each.queries.min_size,
                "max_overlap": each.queries.max_overlap if each.queries.HasField("max_overlap") else None,
                "overlap_for": each.queries.overlap_for,
                "max_queries": each.queries.max_queries if each.queries.HasField("max_queries") else None,
            }
            for each in datasets
        ],
    }
