"""What mining by perturbed records sends, worked out from public parameters and numbers of records.

The search is told again with made-up estimates: of common items each a little less common than the one before, and of
rows with a few of the candidates each. From these follow the mechanisms of its phases as they do in a run; what hangs
on the data is how long documents of candidates are, and to what length sets are padded, which tells by what oracle
reports are made where both are about as good.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from crypto.primitives.sealed import KEY_BYTES, OVERHEAD
from link.traffic import Traffic, field_bytes, pieces_of
from mining.joint.hybrid.budget import least_group, search_plan
from mining.joint.hybrid.parameters import HybridMining
from mining.joint.hybrid.shuffle import CHUNK, LABEL
from mining.joint.spent import Spent
from protos.v1.hybrid_pb2 import OpeningSize, ReportKey, SealedRows, ShuffledChain, ShuffledCounts

if TYPE_CHECKING:
    from ldp.estimate import Estimate
    from ldp.sets.plan import SetReporter

_FIRST, _DECAY = 0.3, 0.8  # shares of users with the most common item, and with each as one of the item before
_EMPTY, _RATIO = 0.2, 0.6  # share of users with no candidate, and of those with one more as of those before
_GOLDEN: Final = 0.6180339887498949


@dataclass(frozen=True)
class PhaseSizes:
    """What one phase moves.

    Attributes:
        asked: Bytes of the candidates' document.
        candidates: How many it names; none where all items are meant.
        width: Of how many values there are counts.
        direct: Whether a report names a value; else it hashes all of them.
        report_bytes: Of one report.
        groups: By party, how many records answer.
    """

    asked: int
    candidates: int
    width: int
    direct: bool
    report_bytes: int
    groups: Mapping[str, int]

    @property
    def reports(self) -> int:
        """Of all parties."""
        return sum(self.groups.values())


@dataclass(frozen=True)
class SearchSizes:
    """What a search moves.

    Attributes:
        phases: One after the other.
        result_bytes: Bytes of the estimates.
        found: How many itemsets there are.
    """

    phases: tuple[PhaseSizes, ...]
    result_bytes: int
    found: int


def expected(task: HybridMining, sizes: Mapping[str, int], spent: Spent) -> SearchSizes:
    """What a search is expected to move.

    Args:
        task: The public parameters.
        sizes: Numbers of records by party, with at least one that answers in each phase.
        spent: As of `budget.central`.

    Raises:
        ConfigurationError: The catalogue has too few items for the search, or min_support is a count above the rows.
    """
    from ldp.oracles.direct_encoding import DirectEncoding
    from mining.joint.estimated import pack_estimates
    from mining.joint.hybrid.findings import findings

    plan, phases = search_plan(task, sizes), []
    estimates: list[Estimate] = []
    for share in plan.shares:
        phase = plan.phase(estimates)
        groups = {party: least_group(records, share) for party, records in sizes.items()}
        mechanism = phase.mechanism
        phases.append(
            PhaseSizes(
                len(phase.announcement),
                len(mechanism.candidates or ()),
                mechanism.width,
                isinstance(getattr(mechanism, "single", None), DirectEncoding),
                mechanism.report_bytes,
                groups,
            )
        )
        estimates.append(_made_up(mechanism, max(1, sum(groups.values()))))
    found = findings(plan.supports(estimates), task, sum(sizes.values()), spent)
    return SearchSizes(
        tuple(phases), len(pack_estimates(found)), sum(len(sets) for sets, _, _ in found.itemsets.levels)
    )


def _made_up(mechanism: SetReporter, n: int) -> Estimate:
    """Estimates of n reports, as there might be."""
    from ldp.domain import Domain
    from ldp.estimate import Estimate
    from ldp.sets.size_histogram import SetSizes

    if isinstance(mechanism, SetSizes):
        ends = np.array(mechanism.ends or range(mechanism.width + 1))
        held = np.diff(-(_RATIO**ends))  # of each class but that of the empty set
        shares = np.concatenate([[_EMPTY], (1 - _EMPTY) * held / held.sum()])
        return Estimate(mechanism.single.domain, n, shares * n, np.full(len(shares), n / 4))
    width = mechanism.width
    order = np.argsort((np.arange(width) * _GOLDEN) % 1, kind="stable")  # the common ones lie anywhere
    counts = np.empty(width)
    counts[order] = n * _FIRST * np.maximum(_DECAY ** np.arange(width), 1e-6)
    return Estimate(Domain(width), n, counts, np.full(width, n / 4))


def hybrid_traffic(traffic: Traffic, lane: str, task: HybridMining, sizes: SearchSizes) -> None:
    """Enters `hybrid.mine` on the lane of this path.

    Rounds: 1 for the records, 1 for keys where several shuffle; for each phase 1 for candidates, 1 for reports and 1
    for each shuffler; 1 for the result.
    """
    parties, analyst = traffic.parties, task.analyst
    for party in parties:
        traffic.open(party, traffic.others(party), lane, "records", len(sizes.phases), 8 * len(sizes.phases))
    traffic.rounds += 1
    openers = (*task.shufflers[1:], analyst)
    if task.shufflers:
        for party in openers:
            traffic.broadcast(party, f"{lane}/route", ReportKey(public_key=bytes(KEY_BYTES)))
        traffic.rounds += len(openers) > 1  # the analyst waits for no keys but those of shufflers
    for number, phase in enumerate(sizes.phases):
        path = f"{lane}/phase-{number}"
        document_traffic(traffic, path, analyst, traffic.others(analyst), "candidates", phase.asked, phase.candidates)
        traffic.rounds += 1
        if task.shufflers:
            _shuffled(traffic, path, task, phase)
        else:
            for party in traffic.others(analyst):
                size = phase.groups[party]
                traffic.open(party, [analyst], path, LABEL, size * phase.report_bytes, size * phase.report_bytes)
            traffic.rounds += 1
    learners = [party for party in task.learners if party != analyst]
    document_traffic(traffic, f"{lane}/result", analyst, learners, "estimates", sizes.result_bytes, sizes.found)
    traffic.rounds += bool(learners)


def document_traffic(
    traffic: Traffic, lane: str, sender: str, to: tuple[str, ...] | list[str], label: str, size: int, number: int
) -> None:
    """Enters `openings.open_document`."""
    for party in to:
        traffic.send(sender, party, lane, OpeningSize, OpeningSize(bytes=size, number=number).ByteSize())
    traffic.open(sender, to, lane, label, number, size)


def _shuffled(traffic: Traffic, lane: str, task: HybridMining, phase: PhaseSizes) -> None:
    """Enters a phase's reports on their way through the shufflers: a round to the first one and one from each."""
    first, layers = task.shufflers[0], len(task.shufflers)  # of the analyst, and of each shuffler but the first
    sealed = phase.report_bytes + OVERHEAD * layers
    for party in traffic.parties:
        if party not in (first, task.analyst):
            _rows(traffic, party, first, lane, phase.groups[party], sealed)
    traffic.rounds += 1
    forwarded = sum(size for party, size in phase.groups.items() if party != task.analyst)
    chain = ShuffledChain()
    for hop, shuffler in enumerate(task.shufflers):
        chain.hops.append(ShuffledCounts(received=forwarded, forwarded=forwarded))
        size = phase.report_bytes + OVERHEAD * (layers - hop)
        last = hop + 1 == len(task.shufflers)
        to = task.analyst if last else task.shufflers[hop + 1]
        traffic.send(shuffler, to, lane, ShuffledChain, chain.ByteSize())
        if last:
            traffic.open(shuffler, [to], lane, LABEL, forwarded * size, forwarded * size)
        else:
            _rows(traffic, shuffler, to, lane, forwarded, size)
        traffic.rounds += 1


def _rows(traffic: Traffic, sender: str, to: str, lane: str, number: int, size: int) -> None:
    for reports, frames in pieces_of(number, CHUNK):
        if reports:
            traffic.send(sender, to, lane, SealedRows, field_bytes(reports * size), frames)
