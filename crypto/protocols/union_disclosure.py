"""What a secure set union tells whom: its lines of the job's statement, as data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations

from link.disclosure import Declared


@dataclass(frozen=True)
class Learned:
    """One thing that a party learns from a union besides its output.

    Attributes:
        learner: The party, or "all parties".
        what: What it learns, in words.
        noise: What blurs it, in words; empty where the party learns it exactly.
    """

    learner: str
    what: str
    noise: str = ""


def declared(
    parties: Sequence[str], merger: str, maximum: int, label: str = "union", to: Iterable[str] | None = None
) -> list[Declared]:
    """The statement's lines for the values that a union opens.

    Args:
        parties: All parties of the job.
        merger: The party that decrypts last; it learns the union in any case.
        maximum: The most elements that the union may hold, such as the sum of the bounds.
        label: As given to `set_union`.
        to: Who learns the union; all parties by default.
    """
    receivers = frozenset(parties if to is None else to) - {merger}
    return [
        Declared(label, receivers, "the elements of the union of all parties' sets", maximum, "at the end of the union")
    ]


def leakage(
    parties: Sequence[str],
    merger: str,
    *,
    bound: int | None = None,
    epsilon_dup: Decimal | float = 1.0,
    to: Iterable[str] | None = None,
) -> list[Learned]:
    """Who learns what in a union of semi-honest parties, the union itself included.

    Args:
        parties: All parties of the job.
        merger: The party that merges and decrypts last.
        bound: The job's bound; None where each party announces its rung.
        epsilon_dup: ε of the number of common fakes of a pair.
        to: Who learns the union; all parties by default.
    """
    others = [party for party in parties if party != merger]
    receivers = set(parties if to is None else to) | {merger}
    blur = f"plus the pair's number of common fakes (ε = {epsilon_dup})"
    lines = [
        Learned(party, "the union, whatever the number of parties that hold an element")
        for party in parties
        if party in receivers
    ]
    lines.append(Learned("all parties", "by party, the number of blocks of its longest element (length class)"))
    if bound is None:
        lines.append(Learned("all parties", "by party, the rung 2^j that holds the size of its set"))
    else:
        lines.append(Learned("all parties", f"that no set holds more than {bound} elements"))
    for party in parties:
        unknown = [f"{a} and {b}" for a, b in combinations(parties, 2) if party not in (a, b)]
        noise = f"plus the numbers of common fakes of {', of '.join(unknown)}" if unknown else ""
        if party in receivers:
            lines.append(Learned(party, "the sum of the sizes of all sets, by the number of fakes", noise))
        else:
            lines.append(Learned(party, "the number of different tuples in all lists, fakes included"))
    lines += [
        Learned(merger, f"the number of elements that exactly {a} and {b} hold", blur)
        for a, b in combinations(others, 2)
    ]
    lines += [
        Learned(merger, f"the number of elements that exactly {', '.join(group[:-1])} and {group[-1]} hold")
        for size in range(2, len(parties) + 1)
        for group in combinations(parties, size)
        if merger in group or size > 2
    ]
    if len(parties) == 2:
        lines.append(
            Learned(
                "all parties",
                "the other's exact set size, the number of common elements, and every element that only the other "
                "holds: the union hides only which of a party's own elements the other holds",
            )
        )
    lines.append(
        Learned(
            "up to n − 1 colluding parties",
            "by pattern of holders, how many elements their own and the others' sets have in common, "
            "but not which, while one other party shuffles",
        )
    )
    lines.append(Learned("a party that deviates", "nothing here protects sets, sizes or the result against it"))
    return lines
