"""Bin by bin, whether what one party has there is another's too: shares of the bit, for two parties of an alignment.

Both know the length of their lists, and a point of each identifier: a hash under a key of the session.
    1  bins     the one party, the collector, puts each of its points into a bin of its own (`bins`). The other draws a
                random target and a random mask for every bin, and programs, at each of its points in each of that one's
                three bins, the target and its own number of the point under the mask (`programmable_oprf`): in a word
                of 64 bits the target, and in another one the mask and what a target has beyond 64
    2  collect  the collector evaluates this at its points, once in a bin. What comes out is the bin's target, and the
                other's masked number, if both hold the point; else random. For an empty bin it takes random words
    3  compare  both compare what came out with the target, bin by bin, in a circuit; of the bit they get shares
                (`comparison.equal_to`)

What each bin holds lies in buckets (`crypto.primitives.buckets`), so that memory has a part of the points, a few blocks
of bins, and what the collector's bins take while they are found, 45 bytes a point (`bins`).

Rounds: those of `oprf` and its store, and of `equal_to`. Bytes: for each place of a list about 600.

Adversary: semi-honest. The other sees the collector's points under streams that it has not, and the collector words
    that are uniform, whatever the other holds. A collector that evaluates several points of one bin learns of these
    whether the other holds two. Collusion: does not apply, two parties; a collector has all others do this at once.
Leakage: the length of the lists.

Source: Pinkas, Schneider, Tkachenko and Yanai, "Efficient Circuit-based PSI with Linear Communication", EUROCRYPT 2019,
section 5, with payloads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.buckets import Buckets, Room
from crypto.primitives.groups.point_hash import KEY_BYTES, Words
from crypto.primitives.hashing import encode_labels
from crypto.primitives.okvs import Layout
from crypto.primitives.shares.xor import XorShare
from crypto.protocols.alignment.bins import THIRDS, Bins, bins_of, matched, points_in
from crypto.protocols.alignment.functions import (
    BIN,
    WORD,
    collect,
    collected_record,
    program,
    programmed_record,
)
from crypto.protocols.alignment.long_lists import PartedPoints
from crypto.protocols.comparison.comparison import BLOCK, blocks, same_words
from crypto.protocols.comparison.digit_tables import LONGEST
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.transfers.oprf import Parts
from link.randomness import RandomStream
from link.session import Session
from link.tasks import together

STATISTICAL_BITS: Final = 40
_ASKED: Final = np.dtype([("point", WORD, (2,)), ("bin", BIN)])
_LOOKED_AT: Final = np.dtype([("point", WORD, (2,)), ("bin", BIN), ("number", "<u4")])

_NUMBER, _BEYOND = 2, 3  # the halves of the second word: of a number and its mask, and of a target beyond 64 bits

Numbers = NDArray[np.uint32]


@dataclass(frozen=True, eq=False, repr=False)
class BinWords:
    """By block of bins, words of a party for each.

    Attributes:
        drawn: At random.
        came: What has come in place of some, of all others.
        place: Of the other among these.
    """

    drawn: Buckets
    came: Buckets | None = None
    place: int = 0

    def of(self, block: int) -> NDArray[np.uint64]:
        """Those of one of `comparison.blocks`, shape (bins, words)."""
        words: NDArray[np.uint64] = self.drawn.read(block)["words"]
        if self.came is not None:
            some = self.came.read(block)
            words[some["bin"] - block * BLOCK] = some["values"][:, self.place]
        return words

    def close(self) -> None:
        """Gives them up, and with them what has come of all others."""
        self.drawn.close()
        if self.came is not None:
            self.came.close()


@dataclass(frozen=True, eq=False, repr=False)
class Match:
    """One party's part of what two have found.

    Attributes:
        bits: By bin, its share of whether the other holds what the collector has there.
        words: What the collector got, at the other what that one has drawn.
    """

    bits: XorShare
    words: BinWords

    def numbers(self, block: int) -> Numbers:
        """By bin of a block, what the collector got of the other's masked numbers, at the other the masks.

        Where the other holds the point, the difference modulo 2^32 is the number.
        """
        return _halves(self.words.of(block))[:, _NUMBER]


async def collect_matches(
    lane: Session,
    pairs: Mapping[str, TwoParty],
    others: Sequence[str],
    table: Layout,
    points: PartedPoints,
    width: int,
    room: Room,
    *,
    numbers: bool = False,
) -> tuple[Bins, dict[str, Match]]:
    """The collector's part.

    Args:
        lane: Of its own, at all these parties.
        pairs: This party's agreements with all others.
        others: From whom it collects, the same at all.
        table: Of the bins.
        points: Of this party's rows, in parts of the table's capacity.
        width: Bits that are compared, from `compared_bits`.
        room: What lists may take.
        numbers: Whether the others program numbers.

    Returns:
        Each row's bin, shape (n,), and by other party this one's part.

    Raises:
        InternalError: By chance, the points do not fit into their bins.
        MalformedMessage: A peer's messages have another size.
        ProtocolViolation: A peer's part of a function contradicts itself.
        ValueError: An identifier is given twice.
    """
    key, parts, words = _bin_key(lane), _parts(table), value_words(width, numbers=numbers)
    drawn = {other: Buckets(len(blocks(table.sparse)), _drawn(words), room) for other in others}
    random = lane.randomness("empty bins")

    def placed() -> tuple[Bins, Buckets]:
        for each in drawn.values():
            _draw(random, table, each)
        bins = _matched_rows(table, points, key)
        asked = Buckets(parts[0].number, _ASKED, room)
        for part in range(len(points.sizes)):
            some, here = points.points(part), bins[points.rows_of(part)]
            found = np.empty(len(some), _ASKED)
            found["bin"] = here
            for third in range(THIRDS):
                chosen = here // table.third == third
                found["point"][chosen] = points_in(some[chosen], third, key)
            asked.add(parts[0].parts_of(found["point"]), found)
        return bins, asked

    bins, asked = await lane.compute(placed)
    came = Buckets(len(blocks(table.sparse)), collected_record(len(others), words), room)
    await collect(lane, others, asked, parts, came)
    filled = {other: BinWords(each, came, place) for place, (other, each) in enumerate(drawn.items())}
    found = await together(_compared(lane, pairs[other], lane.me, table, width, each) for other, each in filled.items())
    return bins, dict(zip(filled, found, strict=True))


async def program_matches(
    lane: Session,
    pair: TwoParty,
    table: Layout,
    points: PartedPoints,
    width: int,
    room: Room,
    numbers: Numbers | None = None,
) -> Match:
    """The other party's part.

    Args:
        lane: As for `collect_matches`.
        pair: This party's agreement with the collector.
        table: As for `collect_matches`.
        points: As for `collect_matches`.
        width: As for `collect_matches`.
        room: As for `collect_matches`.
        numbers: Of its rows, shape (n,); at all such parties or at none.

    Raises:
        InternalError: By chance, one part of the points has more than it has room for.
        MalformedMessage: The collector's messages have another size.
        ValueError: An identifier is given twice.
    """
    key, parts, words = _bin_key(lane), _parts(table), value_words(width, numbers=numbers is not None)
    random = lane.randomness("targets")

    def looked_at() -> Buckets:
        asked = Buckets(len(blocks(table.sparse)), _ASKED if numbers is None else _LOOKED_AT, room)
        for part in range(len(points.sizes)):
            some = points.points(part)
            for third, bins in enumerate(bins_of(table, some, key)):
                found = np.empty(len(some), asked.record)
                found["point"], found["bin"] = points_in(some, third, key), bins
                if numbers is not None:
                    found["number"] = numbers[points.rows_of(part)]
                asked.add(bins // BLOCK, found)
        return asked

    def targeted() -> tuple[Buckets, Buckets]:
        asked = looked_at()
        targets = Buckets(len(asked), _drawn(words), room)
        _draw(random, table, targets)
        programmed = Buckets(parts[0].number, programmed_record(words), room)
        for block, part in enumerate(blocks(table.sparse)):
            drawn, some = targets.read(block)["words"], asked.read(block)
            found = np.empty(len(some), programmed.record)
            found["point"], found["value"] = some["point"], drawn[some["bin"] - part.start]
            if numbers is not None:
                _halves(found["value"])[:, _NUMBER] += some["number"]  # and no carry into the target's part
            programmed.add(parts[0].parts_of(found["point"]), found)
        asked.close()
        return targets, programmed

    targets, programmed = await lane.compute(targeted)
    await program(lane, pair.peer, programmed, parts)
    return await _compared(lane, pair, pair.peer, table, width, BinWords(targets))


def compared_bits(table: Layout, pairs: int) -> int:
    """Of each comparison of so many pairs of parties, so that a random word meets no target but in one of 2^40 runs."""
    return STATISTICAL_BITS + (table.sparse * pairs - 1).bit_length()


def value_words(width: int, *, numbers: bool) -> int:
    """Words of what is programmed.

    Args:
        width: Bits that are compared, up to 96.
        numbers: Whether a number is programmed as well.
    """
    return 2 if numbers or width > LONGEST else 1


async def _compared(lane: Session, pair: TwoParty, collector: str, table: Layout, width: int, words: BinWords) -> Match:
    """Either's part of step 3: of what came out, or of the targets and masks."""
    other = pair.peer if lane.me == collector else lane.me
    hop = lane.among(f"bins of {other}", (collector, other))
    await pair.prepare()  # both directions at once, so that rounds do not depend on what comes first

    def targets(part: slice) -> Words:
        found = words.of(part.start // BLOCK)
        if width <= LONGEST:
            return found[:, 0]
        return np.stack([found[:, 0], _halves(found)[:, _BEYOND]], axis=1)

    return Match(await same_words(hop, pair, table.sparse, targets, width), words)


def _matched_rows(table: Layout, points: PartedPoints, key: bytes) -> Bins:
    """By row, a bin of its own."""
    bins = np.empty((THIRDS, points.rows), np.int32)
    for part in range(len(points.sizes)):
        bins[:, points.rows_of(part)] = bins_of(table, points.points(part), key)
    return matched(table, bins)


def _drawn(words: int) -> np.dtype[Any]:
    """What a bin holds: `value_words` at random."""
    return np.dtype([("words", WORD, (words,))])


def _draw(random: RandomStream, table: Layout, drawn: Buckets) -> None:
    for block, part in enumerate(blocks(table.sparse)):
        found = np.empty(part.stop - part.start, drawn.record)
        found["words"] = random.uint64(found["words"].size).reshape(found["words"].shape)
        drawn.put(block, found)


def _halves(words: NDArray[np.uint64]) -> Numbers:
    """The halves of each word, the lower one first; a view."""
    return words.view("<u4")


def _bin_key(lane: Session) -> bytes:
    return hashlib.sha256(encode_labels("bins of identifiers", lane.id, lane.path)).digest()[:KEY_BYTES]


def _parts(table: Layout) -> tuple[Parts, Parts]:
    """How the collector's points are divided, and how three of each row of the other's are."""
    return Parts.of(table.capacity), Parts.of(THIRDS * table.capacity)
