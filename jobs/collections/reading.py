"""What was read of a collection, for people and for programs: one round looked at closely, and the rounds before it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from jobs.collections.estimates import COUNTS, Asked, Estimates, Row
from jobs.collections.mechanism import search_of
from jobs.collections.spec import CollectionSpec
from ldp.domain import Domain
from ldp.mechanism import Mechanism
from ldp.streams.sampled import Sampled
from link.version import software_version
from protos.v1.frequency_pb2 import Collection, CollectionState, Counters, Round

_MOST_ROUNDS: Final = 60
_MOST_VALUES: Final = 1 << 22  # of all rounds before the one that is looked at

REASONS: Final = ("duplicate", "late", "early", "over_quota", "foreign", "malformed")
"""Why reports are refused, as `Counters` names it."""


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What was read.

    Attributes:
        collection: How the collection stands.
        spec: What it was created as.
        domain: Its values; None where they are not known.
        asked: How estimates are shown.
        estimates: Of the round that is looked at.
        mechanism: Of that round.
        rows: What is shown of each value, in the domain's order or largest first.
        processing: The method of post-processing; empty for none.
        processed: Counts after it, one a row; None for none.
        earlier: Estimates of earlier rounds of the same kind, the earliest first.
    """

    collection: Collection
    spec: CollectionSpec
    domain: Domain | None
    asked: Asked
    estimates: Estimates
    mechanism: Mechanism[Any]
    rows: list[Row]
    processing: str = ""
    processed: list[float] | None = None
    earlier: tuple[Estimates, ...] = ()


def before(spec: CollectionSpec, latest: Estimates) -> range:
    """The rounds that can stand before one, the nearest first: as many as fit a page."""
    number, stride = latest.head.round.number, 1
    if spec.collection.mechanism == "prefix-extending":
        stride = search_of(spec).groups  # rounds of one search have prefixes of other lengths
    most = min(_MOST_ROUNDS, _MOST_VALUES // max(latest.head.values, 1))
    return range(number - stride, max(-1, number - stride * (most + 1)), -stride)


def are_alike(one: Estimates, other: Estimates) -> bool:
    """Whether the estimates of two rounds compare, and the first is of any reports."""
    return one.kind == other.kind and decides_only(one) == decides_only(other) and bool(one.of)


def decides_only(estimates: Estimates) -> bool:
    """Whether a round of continual release was followed by a publication, so that it released nothing itself."""
    return estimates.head.round.purpose == "dissimilarity" and estimates.head.fresh


def as_data(reading: Reading) -> dict[str, Any]:
    """What was read as JSON, `comine.frequency-estimates/1`."""
    head = reading.estimates.head
    contents: dict[str, Any] = {
        "schema": "comine.frequency-estimates/1",
        "software": software_version(),
        "collection": reading.collection.name,
        "node": reading.estimates.node,
        "mechanism": reading.mechanism.name,
        "epsilon": float(reading.spec.collection.epsilon),
        "report_epsilon": reading.mechanism.epsilon,
        **round_as_data(reading.estimates),
        "confidence": reading.asked.confidence,
        "joint": reading.asked.joint,
        "estimates": [row._asdict() for row in reading.rows],
    }
    if head.kind == COUNTS and reading.domain is not None:
        contents["d"] = reading.domain.size
    if isinstance(reading.mechanism, Sampled):
        inside = reading.mechanism.oracle
        contents["sampling"] = {
            "probability": str(reading.mechanism.probability),
            "mechanism": inside.name,
            "epsilon": inside.epsilon,
        }
    if reading.processed is not None:
        contents["post_processing"] = reading.processing
        for row, count in zip(contents["estimates"], reading.processed, strict=True):
            row["post_processed"] = count
    if reading.earlier:
        contents["earlier"] = [round_as_data(each) for each in reading.earlier]
    return contents


def round_as_data(estimates: Estimates) -> dict[str, Any]:
    """A round with its figures, without its values."""
    head = estimates.head
    return {
        "round": head.round.number,
        "purpose": head.round.purpose,
        "opens": head.round.opens,
        "closes": head.round.closes or None,
        "final": head.final,
        "fresh": head.fresh,
        "at": head.at,
        "kind": head.kind,
        "reports": head.reports,
        "of": estimates.of,
        "counters": counters_as_data(head.counters),
    }


def spends(spec: CollectionSpec) -> str:
    """What the ε of a collection is for, in a few words: of one report where they say nothing."""
    epsilon = f"{float(spec.collection.epsilon):g}"
    if spec.continual is not None:
        return f"{epsilon} in {spec.continual.w:,} windows ({spec.continual.method})"
    if spec.budget is not None:
        epsilon = f"{epsilon} in all ({spec.budget.series})"
    if spec.sampling is not None:
        epsilon = f"{epsilon}, sampled with {spec.sampling.probability}"
    if spec.memo is not None:
        epsilon = f"{epsilon}, new answers {float(spec.memo.epsilon):g} in {spec.memo.w:,} windows"
    return epsilon


def counters_as_data(counters: Counters) -> dict[str, int]:
    """How many reports were counted and refused, by the reason."""
    return {name: getattr(counters, name) for name in ("counted", *REASONS)}


def refused(counters: Counters) -> int:
    """How many reports were refused, whatever the reason."""
    return sum(getattr(counters, reason) for reason in REASONS)


def collection_as_data(collection: Collection, spec: CollectionSpec) -> dict[str, Any]:
    """A collection as JSON, `comine.collection/1`."""
    return {
        "schema": "comine.collection/1",
        "name": collection.name,
        "id": collection.id.hex(),
        "node": collection.node,
        "state": CollectionState.Name(collection.state).lower(),
        "creator": collection.creator,
        "created": collection.created,
        "rounds_ended": collection.rounds_ended,
        "rounds": [_open_round(each) for each in collection.rounds],
        "counters": counters_as_data(collection.counters),
        "spec": json.loads(spec.canonical()),
    }


def _open_round(each: Round) -> dict[str, Any]:
    return {
        "number": each.number,
        "period": each.period,
        "step": each.step,
        "purpose": each.purpose,
        "opens": each.opens,
        "closes": each.closes or None,
        "share": each.share or None,
    }
