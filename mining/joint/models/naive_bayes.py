"""Naive Bayes over all parties' rows, or over columns that lie at several parties: counts and moments are all it takes.

Horizontal, every party holds whole rows:
    1. N is opened; moments of so many rows must be exact.
    2. Every party takes counts and moments of its rows. One secure sum opens those of all rows to the learners.
Vertical, every party holds columns of common rows:
    1. The parties open who holds which column; where not every row is everywhere, N is counted and opened.
    2. The class is a column of bits for each value, and so is every attribute; a number is the bits of u and of u².
       The counts of rows with a class *and* a bit are products over the parties, which an engine leaves shared.
    3. Shares of moments are put together from those of digits: Σ u over a class is Σ_b 2^b · (its rows with bit b).
    4. One secure sum opens counts and moments to the learners; no digit's count is opened.

Rounds:     horizontal 2, and 1 for keys; vertical those of the engine, and 3.
Output:     to the learners the model of all rows, exactly that of the pooled ones.
Adversary:  semi-honest. Sums withstand any n − 2 colluders; products of two parties either of them, those of more any
            but the first two parties of the job together, who could learn each product's count.
Leakage:    `openings` lists all that is opened, `learned` what follows from it.
Source:     Kantarcioglu and Vaidya, "Privacy preserving naive Bayes classifier for horizontally partitioned data",
            IEEE ICDM Workshop on Privacy Preserving Data Mining, 2003; Vaidya and Clifton, "Privacy preserving naive
            Bayes classifier for vertically partitioned data", SIAM SDM 2004 (there the model stays split; here the
            learners get it whole).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from crypto.protocols.comparison.two_party import Pairs, beside
from crypto.protocols.sums.pairwise import PairwiseSecrets, agree
from crypto.protocols.sums.secure_sum import secure_sum
from link.disclosure import Declared, Learned
from link.journal import Known
from link.session import Session
from link.steps import step
from mining.joint.models.aligned import (
    AlignedAttributes,
    Condition,
    begin,
    columns_opening,
    equals,
)
from mining.joint.models.totals import Learnt, rows_opening, total_counts, total_rows
from mining.joint.tally import Addends, no_sum
from mining.joint.vertical.grouped.groups import Groups
from mining.lattice import Sets
from mining.models.attributes import Codes, LabelledRows, Numeric
from mining.models.coded_tables import Labelled
from mining.models.naive_bayes import NaiveBayes, NaiveBayesParameters, check_rows, counts_of, moments_of


def openings(
    task: NaiveBayesParameters, parties: tuple[str, ...], learners: tuple[str, ...], *, vertical: bool, everywhere: bool
) -> tuple[Declared, ...]:
    """Every label under which something may be opened, with its recipients and the most values.

    Args:
        task: The public parameters.
        parties: Of the job.
        learners: Those that get the model.
        vertical: Whether parties hold columns; rows otherwise.
        everywhere: Vertical only: whether every row is at every party.
    """
    whose = frozenset(learners)
    found = [columns_opening(parties, (task.target, *task.attributes))] if vertical else []
    if not (vertical and everywhere):
        found.append(rows_opening(parties))
    what = "how many rows have each class, and each class with each value of an attribute"
    found.append(Declared("counts", whose, what, task.n_counts, "once"))
    if task.numeric:
        what = "by class, sum and sum of squares of each numeric attribute"
        found.append(Declared("moments", whose, what, task.n_moments, "once"))
    return tuple(found)


def learned(
    task: NaiveBayesParameters,
    parties: tuple[str, ...],
    learners: tuple[str, ...],
    *,
    vertical: bool,
    holders: str = "parties",
) -> tuple[Learned, ...]:
    """Who learns what, in words; arguments as for `openings`, and `holders` of columns: `parties` or `groups`."""
    short = "the model: all counts of classes and values"
    what = "the model: for each class the number of its rows, of those with each value of each categorical attribute"
    if task.numeric:
        short += ", and mean and variance of each numeric attribute by class"
        what += ", and mean and variance of each numeric attribute"
    if len(parties) == 2 and not vertical:
        short += "; so also the other's"
        what += "; so all of these for the other's rows"
    size = f"the number of rows that all {holders} have in common" if vertical else "the number of all rows"
    numbers = ", means and variances" if task.numeric else ""
    others = "; so also the other's" if len(parties) == 2 and not vertical else ""
    lines = [
        Learned(learners, "result", short, what).main(f"the model: all counts{numbers}{others}"),
        Learned(parties, "size", size).main("the number of common rows" if vertical else ""),
    ]
    if vertical:
        lines.append(
            Learned(parties, "membership", "which party has which column of the model").main("whose each column is")
        )
        lines.append(Learned(parties, "count", "of no row which class or value it has"))
    return tuple(lines)


async def learn_horizontal(
    session: Session, rows: Labelled, task: NaiveBayesParameters, learners: tuple[str, ...]
) -> Learnt[NaiveBayes]:
    """Runs the part of a party that holds rows.

    Args:
        session: A lane of the job's session.
        rows: This party's; perhaps none.
        task: The public parameters, equal at all parties.
        learners: The parties that get the model.

    Raises:
        ConfigurationError: There are too many rows for exact moments.
        InputDataError: No party has any row.
        ProtocolViolation: What was opened cannot be sums of counts and moments.
    """
    secrets = await agree(session.lane("keys"))
    n_rows = await total_rows(session.lane("rows"), secrets, rows.n_rows)
    check_rows(task, n_rows)

    async def own() -> tuple[Addends, NDArray[np.uint64]]:
        totals = await session.compute(rows.total, partial(_counts_and_moments, task=task))
        return totals[: task.n_counts].astype(np.int64), totals[task.n_counts :]

    return await _open_model(session, secrets, task, learners, n_rows, own)


def _counts_and_moments(rows: LabelledRows, task: NaiveBayesParameters) -> NDArray[np.uint64]:
    """A kernel: both of some rows, one after the other."""
    return np.concatenate([counts_of(rows, task).astype(np.uint64), moments_of(rows, task)])


async def learn_vertical(
    session: Session,
    pairs: Pairs,
    aligned: AlignedAttributes,
    task: NaiveBayesParameters,
    learners: tuple[str, ...],
    groups: Groups = (),
) -> Learnt[NaiveBayes]:
    """Runs the part of a party that holds columns; what is not said here is as for `learn_horizontal`.

    Args:
        session: A lane of the job's session.
        pairs: From `two_party.pairs_of` in this session; those of the alignment, if it has used some.
        aligned: This party's attributes over the common rows.
        task: The public parameters.
        learners: The parties that get the model.
        groups: Of parties that hold the same columns of different rows, if there are any.

    Raises:
        ConfigurationError: A column is at no party or at two, or there are too many rows for exact moments.
        InputDataError: No row is common to all parties, or some id is at two parties of a group.
        ProtocolViolation: What was opened cannot be sums of counts and moments.
    """
    digits = Digits(task)
    begun = await begin(session, pairs, aligned, (task.target, *task.attributes), digits.conditions(), groups)
    secrets, n_rows, engine, conditions = begun
    check_rows(task, n_rows)

    async def own() -> tuple[Addends, NDArray[np.uint64]]:
        addends = await conditions.addends(session.lane("products"), engine, digits.sets(conditions.none))
        return digits.put_together(addends)

    return await _open_model(session, secrets, task, learners, n_rows, own)


async def _open_model(
    session: Session,
    secrets: PairwiseSecrets,
    task: NaiveBayesParameters,
    learners: tuple[str, ...],
    n_rows: int,
    own: Callable[[], Awaitable[tuple[Addends, NDArray[np.uint64]]]],
) -> Learnt[NaiveBayes]:
    """One sum of counts and one of moments, at the same time."""

    async def take() -> Known:
        counts, moments = await own()
        opening = total_counts(session.lane("counts"), secrets, counts, n_rows, label="counts", to=learners)
        if task.numeric:
            summing = secure_sum(session.lane("moments"), secrets, moments, label="moments", to=learners)
            opened, totals = await beside(opening, summing)
        else:
            opened, totals = await opening, moments
        return Known(None, None if opened is None or totals is None else (opened, totals), learners)

    known = await step(session, "totals", take)
    if known.learned is None:
        return Learnt(n_rows, None)
    opened, totals = known.learned
    if int(opened[: task.target.size].sum()) != n_rows:
        raise no_sum(session)
    try:
        return Learnt(n_rows, NaiveBayes.of(task, opened, totals.astype(np.uint64)))
    except ValueError:
        raise no_sum(session) from None


class Digits:
    """The conditions of a vertical model in order, and how counts and moments come from products of them."""

    def __init__(self, task: NaiveBayesParameters) -> None:
        self._task = task

    def conditions(self) -> list[Condition]:
        """The classes, then by attribute its values, or the bits of u and those of u²."""
        found = [Condition(self._task.target.name, partial(equals, place)) for place in range(self._task.target.size)]
        for attribute in self._task.attributes:
            if not isinstance(attribute, Numeric):
                found += [Condition(attribute.name, partial(equals, place)) for place in range(attribute.size)]
            else:
                for power, width in _widths(attribute):
                    found += [Condition(attribute.name, partial(_has_bit, power, bit)) for bit in range(width)]
        return found

    def sets(self, none: int) -> Sets:
        """Each class alone; then by attribute, class by class, the class with each of its conditions in order."""
        n_classes = self._task.target.size
        classes = np.arange(n_classes)
        found = [np.stack([classes, np.full(n_classes, none)], axis=1)]
        start = n_classes
        for size in self._blocks():
            found.append(
                np.stack([np.repeat(classes, size), np.tile(np.arange(start, start + size), n_classes)], axis=1)
            )
            start += size
        return np.concatenate(found).astype(np.int32)

    def put_together(self, addends: Addends) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Addends of counts and of moments, flat, from those of the products."""
        n_classes, blocks = self._task.target.size, self._blocks()
        classes, *parts = np.split(
            addends.astype(np.uint64), np.cumsum([n_classes, *(n_classes * size for size in blocks)])[:-1]
        )
        counts, moments = [classes], [np.zeros(0, np.uint64)]
        waiting = iter(parts)
        for attribute in self._task.attributes:
            if not isinstance(attribute, Numeric):
                counts.append(next(waiting))
            else:
                for _, width in _widths(attribute):
                    weights = np.uint64(1) << np.arange(width, dtype=np.uint64)
                    digits = next(waiting).reshape(n_classes, width)
                    moments.append((digits * weights).sum(axis=1, dtype=np.uint64))
        return np.concatenate(counts), np.concatenate(moments)

    def _blocks(self) -> list[int]:
        """How many conditions follow each other that belong together."""
        found = []
        for attribute in self._task.attributes:
            if not isinstance(attribute, Numeric):
                found.append(attribute.size)
            else:
                found += [width for _, width in _widths(attribute)]
        return found


def _widths(attribute: Numeric) -> tuple[tuple[int, int], ...]:
    """The powers of u that are summed, each with its bits."""
    return (1, attribute.steps.bit_length()), (2, (attribute.steps**2).bit_length())


def _has_bit(power: int, bit: int, codes: Codes) -> NDArray[np.bool_]:
    digits: Codes = (codes**power >> bit) & 1
    return np.equal(digits, 1)
