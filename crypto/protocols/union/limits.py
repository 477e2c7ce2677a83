"""What a union by prefixes takes: how many elements of a party, and how long ones.

Pure functions. A job's limits are rounded up to classes, so that many jobs with one limit after the other reveal of the
largest set and of the longest element a class, and no more.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from crypto.params import STANDARD_128
from crypto.protocols.union.size_classes import SETS, over_bound
from link.errors import ConfigurationError, OverLimit, shareable

MAX_ELEMENT_BYTES: Final = STANDARD_128.max_element_bytes
LENGTH_CLASSES: Final = (
    *(17 * step - (1 if step < 8 else 3) for step in (1, *sorted(size << j for size in (2, 3) for j in range(11)))),
    MAX_ELEMENT_BYTES,
)
"""Bytes of the longest element of a class: 16, 33, 50, 67, 101, 133, 201, … up to the most."""

KEY: Final = "[union] bound"
"""The job's key that usually sets the bound of a union."""

_LONGEST_NAME: Final = 4096  # to which [union] max_item_bytes can be raised


def check_limits(label: str, bound: int | None, max_element_bytes: int) -> None:
    """Refuses limits within which there is no union.

    Raises:
        ConfigurationError: The bound, or the longest element, is none.
    """
    if bound is not None and not 1 <= bound <= SETS.most:
        raise shareable(
            ConfigurationError(f"the bound of the union '{label}' must lie between 1 and {SETS.most}, not {bound}")
        )
    if not 0 <= max_element_bytes <= MAX_ELEMENT_BYTES:
        raise ConfigurationError(
            f"the longest element of the union '{label}' must be allowed 0 to {MAX_ELEMENT_BYTES} bytes, "
            f"not {max_element_bytes}"
        )


def longest_allowed(max_element_bytes: int) -> int:
    """Bytes of the longest element that a union takes: what fits into the length class of the job's limit."""
    return LENGTH_CLASSES[bisect_left(LENGTH_CLASSES, max_element_bytes)]


def over_limits(own: Sequence[bytes], bound: int | None, max_element_bytes: int) -> tuple[bool, bool]:
    """Whether a party's set holds too many elements, and whether one is too long."""
    longest = max(map(len, own), default=0)
    return SETS.of(len(own), bound) == SETS.beyond, longest > longest_allowed(max_element_bytes)


def refuse_over_limits(
    over: tuple[bool, bool], label: str, bound: int | None, max_element_bytes: int, *, key: str = KEY
) -> None:
    """Ends the job where some party's set is over a limit.

    Args:
        over: Whether one holds too many elements, and whether one holds too long an element.
        label: Of the union.
        bound: The job's bound.
        max_element_bytes: The longest element that the job allows.
        key: The job's key that sets the bound, for people.

    Raises:
        OverLimit: One is, whose is not revealed.
    """
    too_many, too_long = over
    if too_many:
        allowed = over_bound(SETS, bound, key)
        raise shareable(
            OverLimit(
                f"some party, and nobody learns which, brings more elements to the union '{label}' than {allowed}"
            )
        )
    if too_long:
        longest = longest_allowed(max_element_bytes)
        raised = max_element_bytes < _LONGEST_NAME
        advice = "raise [union] max_item_bytes in the job, or shorten the name" if raised else "shorten the name"
        raise shareable(
            OverLimit(
                f"some party, and nobody learns which, has a name of more than {longest} bytes, "
                f"the most that the union '{label}' takes; {advice}"
            )
        )
