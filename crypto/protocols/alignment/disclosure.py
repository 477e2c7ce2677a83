"""What an alignment opens, and what else its parties learn: lines of the job's statement, as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from crypto.protocols.union import common_length
from crypto.protocols.union import disclosure as union_disclosure
from crypto.protocols.union.size_classes import LISTS, SETS
from link.disclosure import Declared, Learned

Mode = Literal["intersection", "cardinality", "union"]


def declared(mode: Mode, parties: Sequence[str], merger: str, bound: int | None, label: str) -> list[Declared]:
    """The statement's lines for what an alignment opens.

    Args:
        mode: Which way of aligning.
        parties: All parties of the job.
        merger: The party that compares.
        bound: The job's bound; None where all learn the size class of the longest list.
        label: As given to the alignment.
    """
    receivers, most = frozenset(parties) - {merger}, _longest(mode, bound)
    size = "how many identifiers all parties hold"
    classes = union_disclosure.size_classes(parties, unions=int(mode == "union"), lists=1)
    match mode:
        case "cardinality":
            return [classes, Declared(label, frozenset(parties), size, 1, "at the end of the alignment")]
        case "union":
            what = "pseudonyms of the identifiers that some party holds, among random ones"
            return [classes, Declared(label, receivers, what, len(parties) * most, "at the end of the alignment")]
        case _ if len(parties) == 2:
            what = "place by place of the other's shuffled list, whether both hold what stands there"
            return [classes, Declared(label, receivers, what, most, "at the end of the alignment")]
        case _:
            what = "hashes of the identifiers that all parties hold"
            return [
                classes,
                Declared(f"{label}-size", receivers, size, 1, "after the comparison"),
                Declared(label, receivers, what, most, "at the end of the alignment"),
            ]


def _longest(mode: Mode, bound: int | None) -> int:
    """Of the lists whose elements are opened."""
    classes = SETS if mode == "union" else LISTS
    return classes.most if bound is None else classes.rounded(bound)


def leakage(mode: Mode, parties: Sequence[str], merger: str, bound: int | None) -> list[Learned]:
    """Who learns what in an alignment of semi-honest parties.

    Args:
        mode: Which way of aligning.
        parties: All parties of the job.
        merger: The party that compares.
        bound: The job's bound; None where all learn the size class of the longest list.
    """
    everyone = tuple(parties)
    lines = [common_length.leakage(everyone, "rows", bound)]
    if mode == "union":
        union = union_disclosure.leakage(everyone, merger, bound=bound, reveals_sizes=False)
        whether = "whether the other has a row there too" if len(everyone) == 2 else "who else has a row there"
        placed = Learned(everyone, "result", f"at which positions their own rows are, but not {whether}")
        return [
            placed.main("positions of their own rows, not who else has a row there"),
            *lines,
            *(line.of("the union of the ids' pseudonyms") for line in union),
        ]
    if mode == "intersection":
        who = "the other has too" if len(everyone) == 2 else "all others have too"
        result = Learned(everyone, "result", f"which of their own rows {who}").main()
    else:
        result = Learned(everyone, "result", "how many identifiers all parties hold").main()
    return [result, *lines]


def shows_groups(mode: Mode, parties: int) -> bool:
    """Whether the merger learns how much groups of parties have in common, about pairs of others with noise.

    Args:
        mode: Which way of aligning.
        parties: How many there are; of two there are no others.
    """
    return parties > 2 and mode == "union"
