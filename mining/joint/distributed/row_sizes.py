"""To how many candidates a record counts at most, M: by noisy numbers of rows that hold so many of them.

A small M loses supports of rows that hold more candidates, a large one costs noise, by its root. Neither is known
without the rows. So before the counts of a length, the parties open how many rows there are of each class of sizes,
with noise; a record is in one class of each histogram. From these follow M, and what a support may have lost at most:

    items          a row with s > M of them keeps each with probability M/s, whichever it begins with:  Σ h(s)·(1 − M/s)
    longer ones    a row loses a candidate only if it holds more than M of those that come no later in the order of
                   preference, so of likely ones only where it holds more than M likely ones:           Σ h(s)

with h(s) the rows with s > M. Candidates in the first M places lose nothing. Intervals take an upper limit of the
bound, which noise in h keeps below the truth in one of twenty cases.

There is a usual M, which suits baskets and needs no histogram. A smaller one takes its place only where it hardly cuts
a row; a larger one only if its estimated error is less than half of the usual one's. For the error leaves out by whom
the rows lose: where it prefers a smaller M, itemsets of long rows are missed. It is that of a support near the least
one, c, in the mean square: the variance of the noise, and the square of c times the share of all members that rows
lose, Σ h(s)·(s − M) / Σ h(s)·s, of likely candidates twice that, since those that are rare lose more. Candidates that
are not likely lose more still where they are frequent all the same; so the share that is lost of all candidates is
added, of pairs, which are nearly all unlikely, a small part of the rows that hold more than M.

Source: the bias-variance balance and the intervals as in `ldp.bias_aware`; the weights are ours, by trial on retail,
kosarak, mushroom, groceries and T10I4D100K, and judged on others (docs/protocols/distributed-noise.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.bias_aware import ONE_SIDED
from mining.joint.tally import Counts

Floats = NDArray[np.float64]

LIKELY: Final = 0.5
"""Candidates are likely that are expected in so much of the least support."""

USUAL: Final = (30, 40, 30, 15)
"""The usual M of 1, 2, … items; the last holds for longer ones. With less noise than c/`QUIET` a record may as well
count to more, with more than c/`DROWNED` it must count to fewer."""

QUIET, DROWNED = 24, 5

BETTER: Final = 0.5
"""A larger M than the usual one has less than so much of its estimated error."""

HARDLY: Final = 0.1
"""A smaller M than the usual one takes less than so much of the least support off any count."""

USUAL_SHARE: Final = 0.01
"""Of all rows: the least support that is thought of while none is known."""

LOUD: Final = 2.5
"""With the largest M that is thought of, the noise is the least support by this, or by more where there are many
candidates, of which noise alone should make none frequent."""

SMALLEST: Final = 4
MOST_CLASSES: Final = 36
"""Of one histogram."""

_STEP: Final = 1.6
_FINE: Final = (0, 1, 2)
_SIGNIFICANT: Final = 3.5  # standard deviations, from which on a class of sizes is more than noise
_LARGEST: Final = 1_000_000.0
_RARE: Final = 2.0  # by what a rare candidate loses more than others, where the frequent are kept first
_UNLIKELY: Final = 0.002  # of the rows that hold more than M candidates, how many a frequent unlikely one loses


@dataclass(frozen=True, slots=True)
class Truncation:
    """To how many candidates of one length a record counts at most, and what is lost so.

    Attributes:
        most: M.
        of_likely: By how much the count of a likely candidate may be too low.
        of_any: The same of any candidate.
        rows: About how many rows hold more candidates than M.
    """

    most: int
    of_likely: float = 0.0
    of_any: float = 0.0
    rows: float = 0.0


def usual_contributions(length: int, of_one: float, least: float, drawn: float = math.inf) -> int:
    """The M that needs no numbers of rows; arguments as of `size_classes`."""
    few, many = ((least / ratio / of_one) ** 2 for ratio in (QUIET, DROWNED))
    return max(1, int(min(max(USUAL[min(length, len(USUAL)) - 1], few), many, _most_of(drawn))))


def size_classes(
    of_one: float, least: float, candidates: int, given: int | None, usual: int, drawn: float = math.inf
) -> tuple[int, ...]:
    """The largest size of each class but the last, ascending: each of them may become M.

    Args:
        of_one: The standard deviation of the noise in a count with M = 1.
        least: c, in rows.
        candidates: How many there are.
        given: M, where the job says it.
        usual: The usual M, which is the end of a class.
        drawn: The largest M for which noise can be drawn.

    Returns:
        () where nothing is cut, whatever rows hold.
    """
    if given is not None:
        return (given,) if given < candidates else ()
    if candidates <= SMALLEST + 1:
        return ()
    loud = max(LOUD, NormalDist().inv_cdf(1 - 1 / candidates))  # so that noise alone hardly makes one frequent
    most = max(min((least / loud / of_one) ** 2, _most_of(drawn)), SMALLEST)
    steps = min(math.ceil(math.log(most / SMALLEST) / math.log(_STEP)), MOST_CLASSES - len(_FINE) - 3)
    ends = {math.floor(min(SMALLEST * _STEP**step, most)) for step in range(steps + 1)}
    return tuple(sorted(end for end in {*_FINE, *ends, usual} if end < candidates))


def _most_of(drawn: float) -> float:
    """The largest class: where candidates are hardly more than that, M may be all of them."""
    return min(_LARGEST, drawn / _STEP - 1)


def class_counts(sizes: NDArray[np.int64], ends: tuple[int, ...]) -> Counts:
    """How many rows there are of each class of sizes, the last one open; shape (len(ends) + 1,)."""
    return np.bincount(np.searchsorted(ends, sizes), minlength=len(ends) + 1)


def item_truncation(
    ends: tuple[int, ...], held: Counts, sigma: float, of_one: float, least: float, candidates: int, usual: int
) -> Truncation:
    """M of single items.

    Args:
        ends: The classes, one at least.
        held: Noisy numbers of rows by class.
        sigma: The standard deviation of the noise in these.
        of_one: That of the noise in a count with M = 1.
        least: c.
        candidates: How many items there are: with so many, no row is cut.
        usual: The usual M.
    """
    found = []
    for at in _allowed(ends, usual):
        most = ends[at]
        kept = most / np.array([*ends[at + 1 :], math.inf])
        bias = least * _lost_share(ends, held, sigma, at)
        bound = _limit(1 - kept, held[at + 1 :], sigma)
        found.append((most * of_one**2 + bias**2, Truncation(most, bound, bound, _rows(held, at))))
    return _best(ends, found, of_one, least, candidates, usual)


def itemset_truncation(
    ends: tuple[int, ...],
    likely: Counts,
    held: Counts,
    sigma: float,
    of_one: float,
    least: float,
    candidates: int,
    usual: int,
    pairs: bool,
) -> Truncation:
    """M of longer candidates.

    Args:
        ends: The classes.
        likely: Rows by the likely candidates that they hold.
        held: Rows by all candidates that they hold.
        sigma: Of the noise in these.
        of_one: Of the noise in a count.
        least: c.
        candidates: How many there are.
        usual: The usual M.
        pairs: Whether the candidates have two items; then most of all are pairs of items that hardly ever meet.
    """
    found = []
    for at in _allowed(ends, usual):
        most = ends[at]
        bias = least * _RARE * _lost_share(ends, likely, sigma, at)
        unlikely = _UNLIKELY * _rows(held, at) if pairs else least * _lost_share(ends, held, sigma, at)
        whole = np.ones(len(ends) - at)
        of_likely, of_any = (_limit(whole, each[at + 1 :], sigma) for each in (likely, held))
        found.append(
            (
                most * of_one**2 + bias**2 + unlikely**2,
                Truncation(most, min(of_likely, of_any), of_any, _rows(held, at)),
            )
        )
    return _best(ends, found, of_one, least, candidates, usual)


def _allowed(ends: tuple[int, ...], usual: int) -> list[int]:
    """The places of the classes of which M may be the largest size."""
    return [at for at, end in enumerate(ends) if end >= SMALLEST or end == usual or len(ends) == 1]


def largest_contributions(ends: tuple[int, ...], candidates: int) -> int:
    """The largest M that may come out: of the classes, or all candidates where these are hardly more."""
    return candidates if not ends or candidates <= _STEP * (ends[-1] + 1) else ends[-1]


def _best(
    ends: tuple[int, ...],
    found: list[tuple[float, Truncation]],
    of_one: float,
    least: float,
    candidates: int,
    usual: int,
) -> Truncation:
    """Of pairs of an error and what it is the error of: the usual one, or one that is clearly better."""
    if len(ends) > 1 and largest_contributions(ends, candidates) == candidates:
        found.append((candidates * of_one**2, Truncation(candidates)))
    if len(found) == 1:  # the job says it
        return found[0][1]
    stays = min(usual, candidates)
    allowed = [each for each in found if each[1].most >= stays or each[1].of_any <= HARDLY * least]
    return min(allowed, key=lambda each: each[0] * (BETTER if each[1].most == stays else 1))[1]


def _lost_share(ends: tuple[int, ...], held: Counts, sigma: float, at: int) -> float:
    """The share of all members that rows lose, with the M of a class; of a class the middle is taken for all sizes."""
    middles = (np.array([0, *ends], np.float64) + np.array([*ends, 2 * ends[-1]])) / 2
    significant = np.where(held > _SIGNIFICANT * sigma, held, 0)  # else a class of long rows that nobody has decides
    lost = float((middles[at + 1 :] - ends[at]) @ significant[at + 1 :])
    members = float(middles @ significant)
    return min(max(lost / members, 0.0), 1.0) if members > 0 else 0.0


def _limit(weights: Floats, held: Counts, sigma: float) -> float:
    """What a weighted number of rows hardly exceeds."""
    return max(0.0, float(weights @ held) + ONE_SIDED * sigma * float(np.linalg.norm(weights)))


def _rows(held: Counts, at: int) -> float:
    return max(0.0, float(held[at + 1 :].sum()))
