"""A TOML file whose tables stand apart, brought together and parted again.

What belongs to one table of the top level, as all of `[[dataset]]` and what is below it, may stand in several places of
a file. tomlkit writes such tables elsewhere than they were. So the file is cut at its headers; its pieces are put in an
order in which nothing stands apart; and after a change they go back to where they were, with what was put in behind its
predecessor.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Sequence
from typing import Final, NamedTuple

_HEADER: Final = re.compile(r"^[ \t]*\[", re.MULTILINE)


class Piece(NamedTuple):
    """A part of a file, from a header to the next one.

    Attributes:
        root: The table of the top level that it belongs to; empty before the first header.
        header: As it is written, without comments and blanks.
        text: All of it.
    """

    root: str
    header: str
    text: str


def pieces(text: str) -> list[Piece]:
    """A file in pieces; the first is what stands before all headers, be it nothing.

    Args:
        text: TOML.
    """
    cuts = list[int]()
    for found in _HEADER.finditer(text):
        # A line of a text or a list over several lines may look like a header; what is before it is not whole then.
        if _is_whole(text[cuts[-1] if cuts else 0 : found.start()]):
            cuts.append(found.start())
    ends = [*cuts, len(text)]
    return [Piece("", "", text[: ends[0]]), *(_piece(text[cut:end]) for cut, end in zip(cuts, ends[1:], strict=True))]


def gathered(found: Sequence[Piece]) -> list[int]:
    """The order of pieces in which all of a table stand where its first one does."""
    roots = list(dict.fromkeys(each.root for each in found))
    return sorted(range(len(found)), key=lambda number: roots.index(found[number].root))


def scattered(before: Sequence[Piece], after: Sequence[Piece]) -> str:
    """A changed file with its pieces where they were.

    Args:
        before: The pieces of the file, in its order.
        after: Those of the changed one, in the order of `gathered`.
    """
    order, texts, behind = gathered(before), [""] * len(before), 0
    old, new = [before[number].header for number in order], [each.header for each in after]
    for what, start, end, first, last in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what == "equal":
            for place, each in zip(order[start:end], after[first:last], strict=True):
                texts[place] = each.text
            behind = order[end - 1]
        else:
            texts[behind] += "".join(each.text for each in after[first:last])
    return "".join(texts)


def _is_whole(text: str) -> bool:
    try:
        tomllib.loads(text)
    except ValueError:
        return False
    return True


def _piece(text: str) -> Piece:
    header = text.partition("\n")[0]
    (root,) = tomllib.loads(header)
    return Piece(root, header.partition("#")[0].strip(), text)
