"""Frequent itemsets from perturbed records: every party holds whole rows, and every row answers one question.

    0  all parties open their numbers of records; from these follows what a report may spend            records
    1  each party draws secretly which of its records answer in which phase
    then for each phase of the search (`ldp.sets`)
    2  the analyst opens to all parties which itemsets are asked about, and by which mechanism            candidates
    3  each party checks that this is a phase of the agreed search, and what it spends; it perturbs its
       records of that phase, each by itself, and sends the reports: to the analyst, or through shufflers   reports
    4  the analyst adds the reports up
    and in the end
    5  the analyst estimates, and opens it to the learners                                                   estimates

Rounds:     one for the records, and for each phase one for candidates and one for reports; in the shuffle model one
            more for each shuffler, and one for keys.
Output:     the k itemsets that seem most frequent, or those of them that seem to reach a least support, with estimated
            supports and their deviations; and association rules with intervals.
Adversary:  semi-honest parties. A party may send what it likes as its reports (`ldp.attacks` shows what that does).
Collusion:  local model: a report has its ε against all others together. Shuffle model: the central (ε, δ) holds against
            each party with `colluding` further ones, as long as one shuffler is not among them; against the analyst
            with all shufflers a report has its local ε.
Leakage:    numbers of records, to all; reports, to the analyst; candidates, to all; the result, to the learners.
Drop-outs:  a party that is lost ends the job. In another attempt the parties go on after the last phase that all have
            completed. Of others every record answers in the same phase as before, and its report is the very same
            (`coins`): the analyst, who counts only what came in the attempt that completes a phase, sees each report
            again and no second one. Keys, layers and orders of shufflers are fresh.
Source:     Wang, Li and Jha, "Locally Differentially Private Frequent Itemset Mining", S&P 2018; shuffling as in
            `mining.joint.hybrid.shuffle`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import KEY_BYTES
from ldp.aggregator import Aggregator
from ldp.documents import document
from ldp.estimate import Estimate
from ldp.reports import Reports
from ldp.sets.plan import MiningPlan, MiningServer, SetReporter
from ldp.shuffling.rows import reports_in, rows_of
from link.errors import InputDataError, MalformedMessage, ProtocolViolation, shareable
from link.journal import Known
from link.session import Session
from link.steps import step
from link.tasks import together
from mining.data.rows import Rows
from mining.joint.coins import coins, layout
from mining.joint.estimated import Estimated, EstimatedOutcome, pack_estimates
from mining.joint.hybrid import groups
from mining.joint.hybrid.budget import PhaseBudget, central, is_kept, phase_budgets, search_plan
from mining.joint.hybrid.findings import findings
from mining.joint.hybrid.openings import MAX_DOCUMENT, open_document, receive_document, receive_estimates
from mining.joint.hybrid.own_records import TALLIED, OwnRecords, own_records
from mining.joint.hybrid.pacing import Pace, paced
from mining.joint.hybrid.parameters import HybridMining
from mining.joint.hybrid.shuffle import (
    LABEL,
    Phase,
    Route,
    agree_on_route,
    collect_shuffled,
    send_reports,
    shuffle_first,
    shuffle_next,
)
from mining.joint.hybrid.spool_limits import DEFAULT_SPOOL_LIMITS, SpoolLimits
from mining.joint.spent import Spent
from mining.thresholds import agreed_count

T = TypeVar("T")


@dataclass(frozen=True)
class _Search:
    """What one party knows when the phases begin.

    Attributes:
        session: The lane of the search.
        task: The public parameters.
        plan: The search, with the ε of reports.
        own: This party's records.
        layout: How they lie.
        groups: By party and phase, how many records answer.
        sizes: Numbers of records by party.
        spent: What the search costs a record.
        budgets: By phase, what it may cost; none in the local model.
        route: The way of reports; None in the local model.
    """

    session: Session
    task: HybridMining
    plan: MiningPlan
    own: OwnRecords
    layout: bytes
    groups: Mapping[str, list[int]]
    sizes: Mapping[str, int]
    spent: Spent
    budgets: list[PhaseBudget]
    route: Route | None

    @property
    def n_rows(self) -> int:
        """Records of all parties."""
        return sum(self.sizes.values())

    def phase(self, number: int, mechanism: SetReporter) -> Phase:
        """What all parties know of a phase."""
        n = self.budgets[number].n if self.budgets else 1
        return Phase(number, {party: each[number] for party, each in self.groups.items()}, mechanism.report_bytes, n)

    async def reports(self, lane: Session, number: int, mechanism: SetReporter) -> AsyncIterator[Reports]:
        """Step 3: this party's reports of a phase, piece by piece."""
        return _computed(lane, self.own.reports(number, mechanism, await self._key(lane, mechanism)))

    async def sums(self, lane: Session, number: int, mechanism: SetReporter) -> AsyncIterator[Aggregator[Estimate]]:
        """The same at the analyst, added up."""
        return _computed(lane, self.own.sums(number, mechanism, await self._key(lane, mechanism)))

    async def _key(self, lane: Session, mechanism: SetReporter) -> bytes:
        """From which the reports of a phase are drawn."""
        random = await coins(lane, "reports", self.layout, document(mechanism))
        return random.bytes(KEY_BYTES)


async def _computed(lane: Session, pieces: Iterator[T]) -> AsyncIterator[T]:
    while (piece := await lane.compute(next, pieces, None)) is not None:
        yield piece


async def mine(
    session: Session, data: Rows, task: HybridMining, least_count: int = 1, limits: SpoolLimits = DEFAULT_SPOOL_LIMITS
) -> EstimatedOutcome:
    """Runs this party's part.

    Args:
        session: A lane of the job's session.
        data: This party's rows; perhaps none. Items that the catalogue does not name are left out of them.
        task: The public parameters, equal at all parties.
        least_count: This party's own floor for a least support that the job names.
        limits: What sealed reports may take at this party, where it shuffles.

    Raises:
        ConfigurationError: The catalogue has too few items, or min_support does not fit the number of records.
        InputDataError: There are too few records for the search.
        PolicyDenied: The least support is below this party's floor.
        ProtocolViolation: A peer broke the rules; in particular the analyst, if it asks for what was not agreed.
    """
    search = await _begin(session, data, task, least_count, limits)
    found = await (_analyse(search) if session.me == task.analyst else _answer(search))
    return EstimatedOutcome(search.n_rows, search.spent, found)


async def _begin(session: Session, data: Rows, task: HybridMining, least_count: int, limits: SpoolLimits) -> _Search:
    """Steps 0 and 1."""
    shape = task.plan(min(task.epsilon, task.most_local))  # phases and their shares do not depend on ε
    lies = await session.compute(layout, data)
    own = await session.compute(own_records, data, task.catalogue, shape, await coins(session, "phases", lies))

    async def take() -> Known:
        """Step 0."""
        group_sizes = {session.me: own.sizes}
        await session.open("records", np.array(own.sizes, np.uint64))
        for peer in session.others:
            opened = await session.receive_opened(peer, "records", np.uint64, (len(shape.shares),))
            group_sizes[peer] = [int(each) for each in opened]
        return Known([group_sizes[party] for party in session.parties])

    opened = (await step(session, "records", take)).public
    group_sizes, sizes = dict(zip(session.parties, map(list, opened), strict=True)), dict[str, int]()
    for party, each in group_sizes.items():
        try:
            sizes[party] = groups.check_sizes(each, shape)
        except ValueError as error:
            raise MalformedMessage(f"{party} opened impossible numbers of records: {error}", party=party) from None
    _check_records(session.me, task, group_sizes, sizes, least_count)
    spent = await session.compute(central, task, sizes)
    return _Search(
        session,
        task,
        await session.compute(search_plan, task, sizes),
        own,
        lies,
        group_sizes,
        sizes,
        spent,
        [] if task.model == "local" else phase_budgets(task, sizes),
        None if task.model == "local" else await agree_on_route(session.lane("route"), task, limits),
    )


async def _analyse(search: _Search) -> Estimated:
    """Steps 2 to 5, at the analyst."""
    session, task, server = search.session, search.task, MiningServer(search.plan)
    for number in range(len(search.plan.shares)):
        session.progress("phases of the search", number, len(search.plan.shares))
        lane = session.lane(f"phase-{number}")
        known = await step(lane, "over", partial(_ask, search, server, lane, number))
        server.reports = await session.compute(Aggregator.from_bytes, known.own, server.phase.reported)
        await session.compute(server.advance)
    session.progress("phases of the search", len(search.plan.shares), len(search.plan.shares))
    supports = await session.compute(server.supports)
    found = await session.compute(findings, supports, task, search.n_rows, search.spent)
    others = [party for party in task.learners if party != session.me]
    packed = pack_estimates(found)
    await open_document(session.lane("result"), "estimates", packed, len(found.itemsets), others)  # 5
    return found


async def _ask(search: _Search, server: MiningServer, lane: Session, number: int) -> Known:
    """Steps 2 to 4 of a phase, at the analyst."""
    mechanism, asked = server.phase.mechanism, server.phase.announcement
    await open_document(lane, "candidates", asked, len(mechanism.candidates or ()), lane.others)  # 2
    tally = _Tally(lane, server)
    own = await search.sums(lane, number, mechanism)  # 3
    await together([tally.add_own(own), _collect(search, tally, number)])  # 4
    return Known(asked, own=await lane.compute(server.reports.to_bytes))


class _Tally:
    """The reports of one phase, added up as they come, from several parties at once."""

    def __init__(self, lane: Session, server: MiningServer) -> None:
        self.lane, self.mechanism = lane, server.phase.mechanism
        self._server, self._adding = server, asyncio.Lock()

    async def add(self, reports: Reports) -> None:
        """Adds reports."""
        for start in range(0, len(reports), TALLIED):
            async with self._adding:
                await self.lane.compute(self._server.add, reports[start : start + TALLIED])

    async def add_own(self, sums: AsyncIterator[Aggregator[Estimate]]) -> None:
        """Adds the sums over this party's own reports."""
        async for each in sums:
            async with self._adding:
                self._server.reports.merge(each)


async def _collect(search: _Search, tally: _Tally, number: int) -> None:
    """Step 4: the other parties' reports."""
    lane, mechanism = tally.lane, tally.mechanism
    phase = search.phase(number, mechanism)
    if search.route is not None:

        async def take(rows: NDArray[np.uint8]) -> None:
            reports, _ = await lane.compute(reports_in, rows, mechanism)
            await tally.add(reports)

        await collect_shuffled(lane, search.route, phase, take)
        return
    # All at once: what waited to be read would hold up its sender.
    await together(_collect_from(peer, phase, tally) for peer in lane.others)


async def _collect_from(peer: str, phase: Phase, tally: _Tally) -> None:
    """The reports that a party opens, some at a time, as they come."""
    number, size = phase.groups[peer], phase.plain
    pace = Pace(tally.lane, peer, number, size)
    async for rows in pace.each(tally.lane.receive_opened_pieces(peer, LABEL, number, size)):
        reports, valid = await tally.lane.compute(reports_in, rows, tally.mechanism)
        if not valid.all():
            raise MalformedMessage(
                f"{peer} sent reports that {tally.mechanism.name} never makes; check that node", party=peer
            )
        await tally.add(reports)


async def _answer(search: _Search) -> Estimated | None:
    """Steps 3 and 5, at every party but the analyst."""
    session, task = search.session, search.task
    for number in range(len(search.plan.shares)):
        session.progress("phases of the search", number, len(search.plan.shares))
        lane = session.lane(f"phase-{number}")
        await step(lane, "over", partial(_report, search, lane, number))
    session.progress("phases of the search", len(search.plan.shares), len(search.plan.shares))
    if session.me not in task.learners:
        return None
    lane = session.lane("result")
    found = await receive_estimates(lane, task.analyst, task.k)
    if found.itemsets.n_rows != search.n_rows or found.spent != search.spent:
        raise ProtocolViolation(
            f"{task.analyst} sent estimates of another number of records, or at another cost, than all parties have "
            "agreed on; check that node",
            party=task.analyst,
        )
    return found


async def _report(search: _Search, lane: Session, number: int) -> Known:
    """Steps 2 and 3 of a phase, at every party but the analyst."""
    analyst, most = search.task.analyst, 2 * search.plan.k
    asked = await receive_document(lane, analyst, "candidates", most_bytes=MAX_DOCUMENT, most=most)
    mechanism = await lane.compute(_checked, search, number, asked)
    await _send(search, lane, search.phase(number, mechanism), await search.reports(lane, number, mechanism))
    return Known(asked)


async def _send(search: _Search, lane: Session, phase: Phase, reports: AsyncIterator[Reports]) -> None:
    """Step 3: to the analyst, or on their way through the shufflers."""
    task, route = search.task, search.route
    pieces = _rows(lane, reports)
    if route is None:
        pieces = paced(lane, task.analyst, pieces, phase.plain)
        await lane.open_pieces(LABEL, pieces, phase.groups[lane.me], task.analyst)
    elif lane.me == task.shufflers[0]:
        await shuffle_first(lane, route, phase, pieces)
    else:
        await send_reports(lane, route, phase, pieces)
        if lane.me in task.shufflers:
            await shuffle_next(lane, route, phase)


async def _rows(lane: Session, reports: AsyncIterator[Reports]) -> AsyncIterator[NDArray[np.uint8]]:
    async for each in reports:
        yield await lane.compute(rows_of, each)


def _checked(search: _Search, number: int, announcement: bytes) -> SetReporter:
    """What the analyst announced, if it is a phase of the agreed search and costs no more than agreed."""
    analyst = search.task.analyst
    try:
        mechanism = search.plan.announced(announcement)
        if len(mechanism.candidates or ()) > 2 * search.plan.k:
            raise InputDataError("more candidates were announced than a search of this kind has")
        if mechanism.epsilon > search.plan.epsilon_of(number):
            raise InputDataError("reports of this phase may spend less than was announced")
    except InputDataError:
        raise ProtocolViolation(
            f"{analyst} asked for reports that are no part of the agreed search; nothing was reported to it",
            party=analyst,
        ) from None
    if search.budgets and not is_kept(mechanism, search.budgets[number]):
        raise ProtocolViolation(
            f"{analyst} asked for reports that would cost a record more than agreed; nothing was reported to it",
            party=analyst,
        )
    return mechanism


def _check_records(
    me: str, task: HybridMining, group_sizes: Mapping[str, list[int]], sizes: Mapping[str, int], least_count: int
) -> None:
    total = sum(sizes.values())
    if total == 0:
        raise shareable(InputDataError("no party has any transaction in this dataset, so there is nothing to mine"))
    if not all(map(any, zip(*group_sizes.values(), strict=True))):
        fewer = ", or with [itemsets] max_length = 1, which takes fewer phases" if task.search == "svsm" else ""
        raise shareable(
            InputDataError(
                f"there are only {total:,} transactions, too few for all phases of the search; mine them where more are"
                f"{fewer}"
            )
        )
    if task.min_support is not None:
        agreed_count(task.min_support, total, floor=least_count, me=me)
