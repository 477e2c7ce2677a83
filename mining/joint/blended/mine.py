"""Frequent items from noisy counts of parties that are trusted, and perturbed records of the others.

    0  all parties open their numbers of records; each trusted one splits its own into halves by chance      records
    1  each trusted party counts items in its first half, a record to at most M, adds noise, and names those that reach
       a threshold, with their noisy counts; the items with the largest sums are the head list                 head
    2  each trusted party counts the head list's items in its second half, and adds noise                    counts
    3  each record of another party answers whether it holds one item of the head list, chosen by chance, by
       randomised response; its party opens how many said yes of each item                                   answers
    4  the analyst estimates frequencies from counts and from answers, and puts both together as `estimate` says; it
       opens it to the learners                                                                             estimates

Rounds:     4, and 3 where the analyst alone learns.
Output:     the k items that seem most frequent, or those of them that seem to reach a least support, with estimated
            supports and their deviations.
Adversary:  semi-honest parties. A trusted party sees the records of its own people, and they trust it.
Drop-outs:  a party that is lost ends the job. In another attempt the parties go on after the last step that all have
            completed; halves, noise and answers are the same as before (`coins`).
Collusion:  any number: each party's noise hides its own records from all others together, as `budget` says.
Leakage:    numbers of records, and the head list with each trusted party's noisy counts, to all; noisy counts and sums
            of perturbed answers, to the analyst; the result, to the learners.
Source:     Avent, Korolova, Zeber, Hovden and Livshits, "BLENDER: Enabling Local Search with a Hybrid Differential
            Privacy Model", USENIX Security 2017. There a user has one record, a query with a URL. Here a record is a
            set of items, and a question about one item takes the place of the two-stage report: the estimate is without
            bias however long records are, and with d questions its variance is d times that of one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from crypto.primitives.randomness import Randomness
from ldp.accounting.discrete_gaussian import DiscreteGaussian
from ldp.blending.curator import noisy_frequencies
from link.errors import InputDataError, MalformedMessage, ProtocolViolation, shareable
from link.files.json_text import read_json
from link.journal import Known
from link.session import Session
from link.steps import step
from mining.data.rows import Rows
from mining.estimates import EstimatedItemsets
from mining.joint.blended.budget import Naming, counting, naming, spent
from mining.joint.blended.estimate import Counts, blended, from_answers
from mining.joint.blended.own_records import answers, asked, halves, response, second_half
from mining.joint.blended.parameters import MAX_NAMED, Blending
from mining.joint.coins import coins, layout
from mining.joint.distributed.truncation import truncated_item_counts
from mining.joint.estimated import Estimated, EstimatedOutcome, pack_estimates
from mining.joint.hybrid.openings import MAX_DOCUMENT, open_document, receive_document, receive_estimates
from mining.joint.item_names import nameable
from mining.limits import MAX_ITEM_BYTES
from mining.thresholds import agreed_count, minimum_count

_MAX_RECORDS: Final = 1 << 40

Named = dict[str, int]
"""Noisy counts by item."""


@dataclass(frozen=True)
class _Run:
    """What one party knows when the items are to be named.

    Attributes:
        session: The lane of the run.
        task: The public parameters.
        sizes: Numbers of records by party.
        parts: At a trusted party, its records in two halves; at another all of them as one.
        layout: How the records lie.
    """

    session: Session
    task: Blending
    sizes: Mapping[str, int]
    parts: Sequence[Rows]
    layout: bytes

    @property
    def n_rows(self) -> int:
        """Records of all parties."""
        return sum(self.sizes.values())

    @property
    def counted(self) -> int:
        """Records of all trusted parties' second halves."""
        return sum(second_half(self.sizes[party]) for party in self.task.opted_in)

    def others(self) -> dict[str, int]:
        """The parties that are not trusted, with their numbers of records."""
        return {party: size for party, size in self.sizes.items() if party not in self.task.opted_in}

    async def coins(self, purpose: str, head: tuple[str, ...] = ()) -> Randomness:
        """This party's coins for one purpose; for counts and answers, of the items of the head list."""
        return await coins(self.session, purpose, self.layout, *head)


async def mine(session: Session, data: Rows, task: Blending, least_count: int = 1) -> EstimatedOutcome:
    """Runs this party's part.

    Args:
        session: A lane of the job's session.
        data: This party's rows; perhaps none.
        task: The public parameters, equal at all parties.
        least_count: This party's own floor for a least support that the job names.

    Raises:
        ConfigurationError: min_support is a count above the number of records.
        InputDataError: There are too few records of a kind.
        PolicyDenied: The least support is below this party's floor.
        ProtocolViolation: A peer broke the rules.
    """
    run = await _begin(session, data, task, least_count)
    head: tuple[str, ...] = (await step(session, "named", partial(_head, run))).public
    _check_answers(run, len(head))
    counted = (await step(session, "counted", partial(_counts, run, head))).own
    answered = (await step(session, "answered", partial(_answers, run, head))).own
    return EstimatedOutcome(run.n_rows, spent(task), await _result(run, head, counted, answered))


async def _begin(session: Session, data: Rows, task: Blending, least_count: int) -> _Run:
    """Step 0."""
    opened = (await step(session, "records", partial(_records, session, data.n_rows))).public
    parts: Sequence[Rows] = (data,)
    lies = await session.compute(layout, data)
    if session.me in task.opted_in:
        parts = await session.compute(halves, data, await coins(session, "halves", lies))
    run = _Run(session, task, dict(zip(session.parties, opened, strict=True)), parts, lies)
    if run.counted < 2:
        raise shareable(
            InputDataError(
                "the parties that opted in have too few transactions for an estimate; let more parties opt in"
            )
        )
    if task.min_support is not None:
        agreed_count(task.min_support, run.n_rows, floor=least_count, me=session.me)
    return run


async def _records(session: Session, own: int) -> Known:
    """Numbers of records, in the order of the parties."""
    sizes = {session.me: own}
    await session.open("records", np.array([own], np.uint64))
    for peer in session.others:
        (opened,) = await session.receive_opened(peer, "records", np.uint64, (1,))
        if opened > _MAX_RECORDS:
            raise MalformedMessage(f"{peer} opened an impossible number of records; check that node", party=peer)
        sizes[peer] = int(opened)
    return Known([sizes[party] for party in session.parties])


async def _head(run: _Run) -> Known:
    """Step 1: the head list, by falling noisy count."""
    session, task, chosen = run.session, run.task, naming(run.task)
    sums: Counter[str] = Counter()
    if session.me in task.opted_in:
        own = await session.compute(named_items, run.parts[0], chosen, task.catalogue, await run.coins("names"))
        await open_document(session, "head", _packed(own), len(own), session.others)
        sums.update(own)
    for peer in task.opted_in:
        if peer != session.me:
            packed = await receive_document(session, peer, "head", most_bytes=MAX_DOCUMENT, most=MAX_NAMED)
            sums.update(unpacked(peer, packed, chosen, task.catalogue))
    ordered = sorted(sums, key=lambda item: (-sums[item], item))
    return Known(ordered[: task.head])


def named_items(data: Rows, chosen: Naming, catalogue: tuple[str, ...] | None, random: Randomness) -> Named:
    """The items that one trusted party names, with their noisy counts.

    Args:
        data: The rows of its first half.
        chosen: How.
        catalogue: The public items, where no others may be named.
        random: The source of randomness.
    """
    known = nameable(data if catalogue is None else data.onto(catalogue))
    counts = truncated_item_counts(known, chosen.most)
    held = np.flatnonzero(counts)  # an item that no record counts to is not drawn noise for, lest it be named
    noisy = counts[held] + DiscreteGaussian(chosen.variance).draw(len(held), random)
    published = noisy >= chosen.threshold
    return {
        known.items[at]: count for at, count in zip(held[published].tolist(), noisy[published].tolist(), strict=True)
    }


async def _counts(run: _Run, head: tuple[str, ...]) -> Known:
    """Step 2: at the analyst, the noisy counts of the second halves of all trusted parties; elsewhere None."""
    session, task = run.session, run.task
    total = np.zeros(len(head), np.int64)
    if not head:
        return Known(None, own=total if session.me == task.analyst else None)
    if session.me in task.opted_in:
        own = await session.compute(noisy_counts, run.parts[1], head, task, await run.coins("counts", head))
        await session.open("counts", own.view(np.uint64), (task.analyst,))
        total += own
    if session.me != task.analyst:
        return Known(None)
    for peer in task.opted_in:
        if peer != session.me:
            opened = (await session.receive_opened(peer, "counts", np.uint64, (len(head),))).view(np.int64)
            if (np.abs(opened) > _MAX_RECORDS).any():
                raise MalformedMessage(f"{peer} opened counts that cannot be; check that node", party=peer)
            total += opened
    return Known(None, own=total)


def noisy_counts(data: Rows, head: tuple[str, ...], task: Blending, random: Randomness) -> Counts:
    """One trusted party's noisy counts of the head list, shape (d,).

    Args:
        data: The rows of its second half.
        head: The head list, at least one item.
        task: The public parameters.
        random: The source of randomness.
    """
    noise = DiscreteGaussian(counting(task, len(head))).draw(len(head), random)
    return np.asarray(data.onto(head).item_counts() + noise, np.int64)


async def _answers(run: _Run, head: tuple[str, ...]) -> Known:
    """Step 3: at the analyst, how many records said yes to each question; elsewhere None."""
    session, task = run.session, run.task
    total = np.zeros(len(head), np.int64)
    if not head:
        return Known(None, own=total if session.me == task.analyst else None)
    if session.me not in task.opted_in:
        own = await session.compute(answers, run.parts[0], head, task, await run.coins("answers", head))
        await session.open("answers", own.astype(np.uint64), (task.analyst,))
        total += own
    if session.me != task.analyst:
        return Known(None)
    for peer, size in run.others().items():
        if peer != session.me:
            opened = await session.receive_opened(peer, "answers", np.uint64, (len(head),))
            if (opened > asked(size, len(head)).astype(np.uint64)).any():
                raise MalformedMessage(f"{peer} opened more answers than it has records; check that node", party=peer)
            total += opened.astype(np.int64)
    return Known(None, own=total)


async def _result(run: _Run, head: tuple[str, ...], counts: Counts | None, answered: Counts | None) -> Estimated | None:
    """Step 4."""
    session, task = run.session, run.task
    if counts is not None and answered is not None:
        found = await session.compute(_found, run, head, counts, answered)
        others = [party for party in task.learners if party != session.me]
        await open_document(session, "estimates", pack_estimates(found), len(found.itemsets), others)
        return found
    if session.me not in task.learners:
        return None
    found = await receive_estimates(session, task.analyst, task.k)
    if found.itemsets.n_rows != run.n_rows or found.spent != spent(task) or not set(found.itemsets.items) <= set(head):
        raise ProtocolViolation(
            f"{task.analyst} sent estimates of other items or numbers of records, or at another cost, than all parties "
            "have agreed on; check that node",
            party=task.analyst,
        )
    return found


def _found(run: _Run, head: tuple[str, ...], counts: Counts, answered: Counts) -> Estimated:
    task, n_rows = run.task, run.n_rows
    if not head:
        return Estimated(EstimatedItemsets((), [], n_rows), spent(task))
    noise = len(task.opted_in) * DiscreteGaussian(counting(task, len(head))).variance
    trusted = noisy_frequencies(counts.astype(np.float64), run.counted, noise)
    questions = np.sum([asked(size, len(head)) for size in run.others().values()], axis=0)
    others = from_answers(answered, questions, response(task))
    share = sum(run.sizes[party] for party in task.opted_in) / n_rows
    both = blended(trusted, others, share)
    order = np.argsort(-both.frequencies, kind="stable")[: task.k]
    if task.min_support is not None:
        order = order[both.frequencies[order] >= minimum_count(task.min_support, n_rows) / n_rows]
    level = (
        order[:, None].astype(np.int32),
        both.frequencies[order] * n_rows,
        np.sqrt(both.variances[order]) * n_rows,
    )
    return Estimated(EstimatedItemsets(head, [level] if len(order) else [], n_rows).canonical(), spent(task))


def _check_answers(run: _Run, questions: int) -> None:
    records = sum(run.others().values())
    if records < 2 * max(questions, 1):
        raise shareable(
            InputDataError(
                f"the parties that did not opt in have only {records:,} transactions, too few to ask about {questions} "
                "items; lower [itemsets] top_k"
            )
        )


def _packed(named: Named) -> bytes:
    return json.dumps(sorted(named.items()), ensure_ascii=False, separators=(",", ":")).encode()


def unpacked(peer: str, packed: bytes, chosen: Naming, catalogue: tuple[str, ...] | None) -> Named:
    """The items in what a peer opened, with their noisy counts.

    Raises:
        MalformedMessage: It is not what `_packed` gives for items that may be named.
    """
    wrong = MalformedMessage(f"{peer} opened something else than items with their counts; check that node", party=peer)
    try:
        pairs = read_json(packed)
        named = {item: count for item, count in pairs if isinstance(item, str) and type(count) is int}
        if len(named) != len(pairs) or _packed(named) != packed:
            raise wrong
        if any(len(item.encode()) > MAX_ITEM_BYTES for item in named):
            raise wrong
    except (TypeError, ValueError, RecursionError):  # UnicodeError is a ValueError
        raise wrong from None
    if not all(chosen.threshold <= count <= _MAX_RECORDS for count in named.values()):
        raise wrong
    if catalogue is not None and not named.keys() <= set(catalogue):
        raise wrong
    return named
