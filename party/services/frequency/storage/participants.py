"""Who took part in a period: each pseudonym of a submitter once, and each submitter as often as it may."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from party.services.frequency.storage.tags import TAG_MEMORY, Tagger, Tags, TagSet
from protos.v1.frequency_pb2 import COUNTED, DUPLICATE, OVER_QUOTA

SUBMITTERS: Final = np.dtype([("tag", "<u8"), ("reports", "<u8")])
"""How many reports of a submitter were counted."""


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """That reports of some clients be counted.

    Attributes:
        submitter: Who sent them.
        pseudonyms: Of the clients, shape (n, 16).
        quota: How many reports of this submitter may be counted in the period.
    """

    submitter: str
    pseudonyms: NDArray[np.uint8]
    quota: int


@dataclass(frozen=True, slots=True, eq=False)
class Ruling:
    """What is to become of the reports of a claim.

    Attributes:
        statuses: A `ReportStatus` of each, shape (n,) of uint8.
        tags: Of those that are to be counted.
        submitter: The submitter's tag.
    """

    statuses: NDArray[np.uint8]
    tags: Tags
    submitter: int


class Participants:
    """Those whose reports were counted in one period; one thread uses it at a time.

    Args:
        key: The period's, of `tags.KEY_BYTES` bytes.
        tags: Of the reports that were counted so far, all different.
        submitters: Who sent them, of dtype `SUBMITTERS`; a submitter may occur several times.
    """

    def __init__(self, key: bytes, tags: Tags, submitters: NDArray[np.void]) -> None:
        self._tagger = Tagger(key)
        self._reports = TagSet(tags)
        # Most submitters are one device with one report: they cost a place in a set, and only others a whole object.
        merged = merged_submitters(submitters)
        self._submitters = TagSet(merged["tag"])
        many = merged[merged["reports"] > 1]
        self._further: dict[int, int] = dict(zip(many["tag"].tolist(), (many["reports"] - 1).tolist(), strict=True))

    def __len__(self) -> int:
        return len(self._reports)

    @property
    def nbytes(self) -> int:
        """Of both sets."""
        return self._reports.nbytes + self._submitters.nbytes

    @property
    def memory(self) -> int:
        """Bytes that both sets may take with what is in them."""
        return TAG_MEMORY * (len(self._reports) + len(self._submitters))

    def rule(self, claims: Sequence[Claim]) -> list[Ruling]:
        """Which reports are to be counted, if the claims are taken in this order; nothing is noted yet."""
        names = {claim.submitter: self._tagger.submitter(claim.submitter) for claim in claims}
        used = self._used([tag for _, tag in names.values()])
        sizes = [len(claim.pseudonyms) for claim in claims]
        offsets = np.repeat([names[claim.submitter][0] for claim in claims], sizes, axis=0)
        tags = self._tagger.tags(np.concatenate([claim.pseudonyms for claim in claims]), offsets)
        first, repeats = _first_occurrences(tags)
        fresh = ~self._reports.holds(tags)
        fresh[repeats] = False
        statuses = np.where(fresh, COUNTED, DUPLICATE).astype(np.uint8)
        ends = np.cumsum(sizes).tolist()
        for claim, size, end in zip(claims, sizes, ends, strict=True):
            tag, part = names[claim.submitter][1], slice(end - size, end)
            counted = int(np.count_nonzero(fresh[part]))
            left = max(0, claim.quota - used[tag])
            if counted > left:
                statuses[part][np.flatnonzero(fresh[part])[left:]] = OVER_QUOTA
                counted = left
            used[tag] += counted
        statuses[repeats[statuses[first] == OVER_QUOTA]] = OVER_QUOTA  # since that client was not counted at all
        return [
            Ruling(own := statuses[end - size : end], tags[end - size : end][own == COUNTED], names[claim.submitter][1])
            for claim, size, end in zip(claims, sizes, ends, strict=True)
        ]

    def reserve(self, rulings: Sequence[Ruling]) -> None:
        """Takes the memory that `admit` will need: what is on disk must be noted here, too."""
        self._reports.reserve(sum(len(ruling.tags) for ruling in rulings))
        self._submitters.reserve(len(rulings))

    def admit(self, rulings: Iterable[Ruling]) -> None:
        """Notes what was ruled last, once it is on disk."""
        tags, submitters = summary(rulings)
        self._reports.add(tags)
        known = self._submitters.holds(submitters["tag"])
        self._submitters.add(submitters["tag"][~known])
        further = submitters["reports"] - ~known
        for tag, more in zip(submitters["tag"][further > 0].tolist(), further[further > 0].tolist(), strict=True):
            self._further[tag] = self._further.get(tag, 0) + more

    def _used(self, submitters: list[int]) -> dict[int, int]:
        """How many reports of some submitters were counted."""
        known = self._submitters.holds(np.array(submitters, np.uint64)).tolist()
        return {
            tag: (1 + self._further.get(tag, 0)) if held else 0 for tag, held in zip(submitters, known, strict=True)
        }


def summary(rulings: Iterable[Ruling]) -> tuple[Tags, NDArray[np.void]]:
    """The tags of all reports that are to be counted, and how many there are of each submitter."""
    some = [ruling for ruling in rulings if len(ruling.tags)]
    submitters = np.array([(ruling.submitter, len(ruling.tags)) for ruling in some], SUBMITTERS)
    tags = np.concatenate([ruling.tags for ruling in some]) if some else np.empty(0, np.uint64)
    return tags, merged_submitters(submitters)


def merged_submitters(submitters: NDArray[np.void]) -> NDArray[np.void]:
    """The same with each submitter once."""
    tags, which = np.unique(submitters["tag"], return_inverse=True)
    merged = np.zeros(len(tags), SUBMITTERS)
    merged["tag"] = tags
    np.add.at(merged["reports"], which, submitters["reports"])
    return merged


def _first_occurrences(tags: Tags) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where tags first occurred that occur again, and where they do; two places for each repetition."""
    ordered = np.sort(tags)
    if not np.any(ordered[1:] == ordered[:-1]):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    _, first, which = np.unique(tags, return_index=True, return_inverse=True)
    repeats = np.flatnonzero(first[which] != np.arange(len(tags)))
    return first[which[repeats]], repeats
