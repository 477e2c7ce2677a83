"""What an alignment opens, and what else its parties learn: lines of the job's statement, as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from crypto.protocols.alignment.bins import table_of
from crypto.protocols.union import common_length
from crypto.protocols.union.size_classes import LISTS
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
    receivers, most = frozenset(parties) - {merger}, LISTS.most if bound is None else LISTS.rounded(bound)
    size = "how many identifiers all parties hold"
    classes = common_length.declared(parties, lists=1)
    match mode:
        case "cardinality":
            return [classes, Declared(label, frozenset(parties), size, 1, "at the end of the alignment")]
        case "union":
            return [classes, placed(parties, merger, bound, label)]
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


def placed(parties: Sequence[str], merger: str, bound: int | None, label: str, *, of: str = "rows") -> Declared:
    """The statement's line for the positions that a union opens.

    Args:
        parties: All parties of the job.
        merger: The first party.
        bound: The job's bound; None where all learn the size class of the longest list.
        label: As given to the union.
        of: What has identifiers, for people.
    """
    most = LISTS.most if bound is None else LISTS.rounded(bound)
    to = frozenset(parties) - {merger} if len(parties) == 2 else frozenset(parties)
    what, when = f"positions of the receiver's own {of}, bin by bin", f"when a party's {of} have been matched"
    return Declared(label, to, what, table_of(most).sparse, when)


def placed_of_listed(parties: Sequence[str], label: str, of: str) -> Declared:
    """The statement's line for the positions that a union of what is listed opens, of it and of all else.

    Args:
        parties: Who take part.
        label: As given to the union.
        of: What has identifiers, for people.
    """
    most = 2 * table_of(LISTS.most).sparse
    what, when = f"positions of the receiver's own {of}, bin by bin", f"when a party's {of} have been matched"
    return Declared(label, frozenset(parties), what, most, when)


def leakage(mode: Mode, parties: Sequence[str], bound: int | None) -> list[Learned]:
    """Who learns what in an alignment of semi-honest parties.

    Args:
        mode: Which way of aligning.
        parties: All parties of the job.
        bound: The job's bound; None where all learn the size class of the longest list.
    """
    everyone = tuple(parties)
    lines = [common_length.leakage(everyone, "rows", bound)]
    if mode == "union":
        whether = "whether the other has a row there too" if len(everyone) == 2 else "who else has a row there"
        result = Learned(everyone, "result", f"at which positions their own rows are, but not {whether}")
        return [result.main("positions of their own rows, not who else has a row there"), *lines]
    if mode == "intersection":
        who = "the other has too" if len(everyone) == 2 else "all others have too"
        result = Learned(everyone, "result", f"which of their own rows {who}").main()
    else:
        result = Learned(everyone, "result", "how many identifiers all parties hold").main()
    return [result, *lines]
