"""What mining by perturbed records sends, worked out from public parameters and numbers of records.

The search is run with made-up estimates: of common items each a little less common than the one before, and of
rows with a few of the candidates each. From these follow the mechanisms of its phases as they do in a run; what hangs
on the data is how long documents of candidates are, and to what length sets are padded, which decides by what oracle
reports are made where both are about as good.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from crypto.primitives.sealed import KEY_BYTES, OVERHEAD
from link.traffic import Traffic
from mining.joint.hybrid.budget import least_group, search_plan
from mining.joint.hybrid.pacing import CHUNK, windows_told
from mining.joint.hybrid.parameters import HybridMining
from mining.joint.spent import Spent

if TYPE_CHECKING:
    from ldp.estimate import Estimate
    from ldp.sets.plan import SetReporter

_FIRST, _DECAY = 0.3, 0.8  # shares of users with the most common item, and with each as one of the item before
_EMPTY, _RATIO = 0.2, 0.6  # share of users with no candidate, and of those with one more as of those before
_WORD_BYTES: Final = 8
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
    """

    phases: tuple[PhaseSizes, ...]
    result_bytes: int


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
    return SearchSizes(tuple(phases), len(pack_estimates(found)))


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


def hybrid_traffic(traffic: Traffic, task: HybridMining, sizes: SearchSizes) -> None:
    """Enters `hybrid.mine`.

    Rounds: 1 for the records, 1 for keys where several shuffle; for each phase 1 for candidates, 1 for reports and 1
    for each shuffler, and 2 for each window of reports beyond two (`pacing`) of each hop; 1 for the result.
    """
    parties, analyst = traffic.parties, task.analyst
    for party in parties:
        traffic.send(party, parties, _WORD_BYTES * len(sizes.phases))
    openers = (*task.shufflers[1:], analyst) if task.shufflers else ()
    for party in openers:
        traffic.send(party, parties, KEY_BYTES)
    traffic.rounds += 1 + (len(openers) > 1)  # the analyst waits for no keys but those of shufflers
    for phase in sizes.phases:
        document_traffic(traffic, analyst, parties, phase.asked)
        windows = _reports_traffic(traffic, task, phase)
        traffic.rounds += 2 + len(task.shufflers) + 2 * windows
    document_traffic(traffic, analyst, task.learners, sizes.result_bytes)
    traffic.rounds += any(party != analyst for party in task.learners)


def document_traffic(traffic: Traffic, sender: str, to: Iterable[str], size: int) -> None:
    """Enters `openings.open_document`."""
    traffic.send(sender, to, size, messages=2)


def _reports_traffic(traffic: Traffic, task: HybridMining, phase: PhaseSizes) -> int:
    """Enters a phase's reports on their way to the analyst: to it, or to the first shuffler and on from each.

    Returns:
        For how many windows of reports senders wait, hop by hop.
    """
    route = (*task.shufflers, task.analyst)
    layers = len(task.shufflers)  # of the analyst, and of each shuffler but the first
    told, size = [0], phase.report_bytes + OVERHEAD * layers
    for party, reports in phase.groups.items():
        if party not in (task.analyst, route[0]):
            told.append(windows_told(reports, size))
            traffic.send(party, route[0], reports * size, reports // CHUNK + 1)
            traffic.send(route[0], party, 0, told[-1])
    windows = max(told)
    forwarded = sum(size for party, size in phase.groups.items() if party != task.analyst)
    for hop, (shuffler, to) in enumerate(pairwise(route)):
        size = phase.report_bytes + OVERHEAD * (layers - hop)
        hop_told = windows_told(forwarded, size)
        traffic.send(shuffler, to, forwarded * size, forwarded // CHUNK + 1)
        traffic.send(to, shuffler, 0, hop_told)
        windows += hop_told
    return windows
