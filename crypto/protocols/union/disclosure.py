"""What a set union of pseudonyms reveals to whom: its lines of the job's statement, as data."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from math import exp, sqrt
from typing import Final

from crypto.protocols.sums import masked_maximum
from crypto.protocols.union.lists import EPSILON_COMMON
from crypto.protocols.union.size_classes import LEAST, LISTS, SETS
from link.disclosure import Declared, Learned

_HOW_LARGE: Final = "roughly the sizes of the others' sets"
_SHARED: Final = "how many {what} parties share; of two others only roughly"
_OVERLAP: Final = "how much both sets have in common"
_KNOWN: Final = 0.44  # the deviation of a mean that separates c from c + 1 in 94 of 100 cases


def size_classes(parties: Sequence[str], *, unions: int, lists: int = 0) -> Declared:
    """The statement's line for the masked maxima of a job, of which there is but one.

    Args:
        parties: All parties of the job.
        unions: How many set unions the job may take at the most.
        lists: How often it may agree on a length besides; see `common_length`.
    """
    return masked_maximum.declared(parties, unions * SETS.beyond + lists * LISTS.beyond)


def declared(parties: Sequence[str], merger: str, maximum: int, label: str = "union") -> list[Declared]:
    """The statement's lines for the values that a job's only union opens.

    Args:
        parties: All parties of the job.
        merger: The party that decrypts last; it learns the union in any case.
        maximum: The most elements that the union may hold, such as the sum of the bounds.
        label: As given to `set_union`.
    """
    what = "the pseudonyms of the union of all parties' sets, among random ones"
    return [
        size_classes(parties, unions=1),
        Declared(label, frozenset(parties) - {merger}, what, maximum, "at the end of the union"),
    ]


def leakage(
    parties: Sequence[str],
    merger: str,
    *,
    bound: int | None = None,
    epsilon_dup: Decimal | float = EPSILON_COMMON,
    reveals_sizes: bool = True,
) -> list[Learned]:
    """Who learns what in a union of semi-honest parties, beside the union itself.

    Args:
        parties: All parties of the job.
        merger: The party that merges and decrypts last.
        bound: The job's bound; None where all learn the size class of the largest set.
        epsilon_dup: ε of the number of common fakes of a pair.
        reveals_sizes: Whether bound or size class reveal something; not where all know these numbers otherwise.
    """
    everyone, two = tuple(parties), len(parties) == 2
    lines = []
    short = "the other's set" if two else "the largest set of the other parties"
    whose = "the other's set" if two else "the largest set of the other parties, not whose it is"
    if bound is None and reveals_sizes:
        detail = f"the least power of two, at least {LEAST}, that is not below the size of {whose}"
        size = Learned(everyone, "size", f"the size of {short}, up to a factor of two", detail)
        lines.append(size if two else size.main(_HOW_LARGE))
    elif bound is not None and reveals_sizes:
        lines.append(Learned(everyone, "size", f"whether {SETS.rounded(bound)} is below the size of {whose}"))
    if not two:
        return [*lines, *of_groups(merger, "elements", epsilon_dup)]
    only = "every element that only the other holds, among random ones"
    hidden = "the union hides only which of a party's own elements the other holds"
    return [
        *lines,
        Learned((merger,), "count", "the number of common elements").main(_OVERLAP),
        Learned(everyone, "membership", only, f"{only}: {hidden}"),
    ]


def of_groups(merger: str, what: str, epsilon: Decimal | float) -> list[Learned]:
    """What a merger learns of pairs of other parties, and of other groups.

    Args:
        merger: It.
        what: They hold.
        epsilon: Of the number of common fakes of a pair.
    """
    pairs = f"roughly how many {what} each two other parties share; repeated jobs average out the noise"
    groups = f"exactly how many {what} each group shares that includes it or has at least three parties"
    of_others = (
        f"for every group of parties with {merger} in it, or of three or more, the number of {what} that exactly these "
        "hold"
    )
    return [
        Learned((merger,), "count", pairs, _of_pairs(what, epsilon)).main(_SHARED.format(what=what)),
        Learned((merger,), "count", groups, of_others).main(_SHARED.format(what=what)),
    ]


def _of_pairs(what: str, epsilon: Decimal | float) -> str:
    off, enough = f"{deviation(1, epsilon):.2g}", round((deviation(1, epsilon) / _KNOWN) ** 2, -1)
    return (
        f"for every two other parties the number of {what} that exactly these two hold, plus the pair's number of "
        f"common fakes (ε = {epsilon}), with a standard deviation of {off}; over n jobs on the same rows the mean of "
        f"these is off by {off}/√n only, so that some {enough:.0f} jobs reveal the number"
    )


def deviation(unions: int, epsilon: Decimal | float = EPSILON_COMMON) -> float:
    """The standard deviation of the mean of a pair's numbers of common fakes in so many unions."""
    decay = exp(-float(epsilon))
    return sqrt(2 * decay / unions) / (1 - decay)
