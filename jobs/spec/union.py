"""The `[union]` table of a job file."""

from __future__ import annotations

from pydantic import Field

from jobs.spec.values import Section
from mining.joint.parameters import USUAL_ITEM_BYTES
from mining.limits import MAX_ITEM_BYTES


class UnionSection(Section):
    """What a job says of its set unions.

    Attributes:
        bound: The most elements that a party may bring to a union, rounded up to a size class; also the most items that
            it may have in a hidden universe, up to whose class every list is filled; without it, all parties learn the
            class of the largest list of these.
        max_item_bytes: The longest name of an item, in UTF-8: each list is as wide as the longest name of any party,
            so that one long name makes the union dearer for all.
    """

    bound: int | None = Field(default=None, ge=1, le=1 << 24)
    max_item_bytes: int = Field(default=USUAL_ITEM_BYTES, ge=1, le=MAX_ITEM_BYTES)
