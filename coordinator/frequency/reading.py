"""Reads estimates of a collection at its node: one round to be looked at closely, and the rounds before it."""

from __future__ import annotations

from typing import Any

import numpy as np

from coordinator.frequency.service import FrequencyNode
from jobs.collections.estimates import COUNTS, Asked, Estimates, mechanism_of_round, rows
from jobs.collections.reading import Reading, are_alike, before
from jobs.collections.spec import CollectionSpec
from ldp.consistency import consistent
from ldp.domain import Domain
from ldp.estimate import Estimate
from ldp.frequency_oracle import FrequencyOracle
from ldp.mechanism import Mechanism
from link.errors import ConfigurationError, MalformedMessage
from protos.v1.frequency_pb2 import Collection, FrequencyRequest


async def read(
    node: FrequencyNode, collection: Collection, request: FrequencyRequest, asked: Asked, *, history: bool = False
) -> Reading:
    """Reads one round, and where asked for those before it.

    Post-processing happens here, so that raw estimates, with their intervals, and processed ones are of the same
    reports.

    Args:
        node: Who has the collection.
        collection: Its description.
        request: Which round, how many values, and which post-processing.
        asked: How estimates are shown.
        history: Whether earlier rounds are read too, as many as fit a page.

    Raises:
        ConfigurationError: There is no such round, or the post-processing does not fit the mechanism.
    """
    spec, domain = node.spec(collection), await node.domain(collection)
    processing, most = request.post_processing, request.most
    whole = FrequencyRequest()
    whole.CopyFrom(request)
    whole.post_processing = ""
    if processing:
        whole.most = 0  # a method sees all values
    estimates = await node.estimate(whole)
    mechanism = mechanism_of_round(estimates, domain)
    found = list(rows(estimates, domain, asked))
    processed = _processed(estimates, domain, mechanism, processing) if processing else None
    if processing and most:
        order = sorted(range(len(found)), key=lambda place: -found[place].estimate)[:most]
        found = [found[place] for place in order]
        processed = None if processed is None else [processed[place] for place in order]
    earlier = await _earlier(node, spec, estimates) if history else ()
    return Reading(collection, spec, domain, asked, estimates, mechanism, found, processing, processed, tuple(earlier))


async def _earlier(node: FrequencyNode, spec: CollectionSpec, latest: Estimates) -> list[Estimates]:
    """Estimates that can stand beside the latest; rounds that are kept no longer, or have no reports, are left out."""
    found: list[Estimates] = []
    for number in before(spec, latest):
        try:
            estimates = await node.estimate(FrequencyRequest(collection=latest.head.collection, round=number))
        except ConfigurationError:
            continue
        if are_alike(estimates, latest):
            found.insert(0, estimates)
    return found


def _processed(estimates: Estimates, domain: Domain | None, mechanism: Mechanism[Any], method: str) -> list[float]:
    if estimates.kind != COUNTS or domain is None or not isinstance(mechanism, FrequencyOracle):
        raise ConfigurationError(
            f"'{method}' makes the counts of a known domain consistent, which {mechanism.name} does not estimate; omit "
            "--post-processing"
        )
    if not np.array_equal(estimates.codes, np.arange(domain.size)):
        raise MalformedMessage(f"the node of {estimates.node} did not send all values", party=estimates.node)
    raw = Estimate(domain, estimates.of, estimates.counts, estimates.variances)
    return [float(count) for count in consistent(raw, mechanism, method).counts]
