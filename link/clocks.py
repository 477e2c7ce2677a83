"""Whose clock is wrong: what follows from the clocks of a job's members, compared at one moment.

Certificates, proposals and deadlines are judged by clocks. A clock that is far off makes a good certificate look
outdated, and its holder guilty; so the clocks are compared before anything is judged by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from link.errors import ConfigurationError
from link.files.printable import enumeration

TOLERANCE_S: Final = 300.0  # by which clocks may differ

_UNITS: Final = ((86_400, "days"), (3600, "hours"), (60, "minutes"))


def check_clocks(ahead: Mapping[str, float], here: str) -> None:
    """Refuses clocks that are too far apart, and names those that most do not agree with.

    Args:
        ahead: By party, the seconds by which its clock is ahead of the one here.
        here: What the one who compares is called, such as "the coordinator"; no party's name.

    Raises:
        ConfigurationError: There is no clock from which all others differ by `TOLERANCE_S` at most. Its `party` is the
            one whose clock is wrong, where that is a party and is known.
    """
    clocks = {here: 0.0, **ahead}
    names = sorted(clocks, key=lambda name: clocks[name])
    groups = {frozenset(near for near in names if _apart(clocks, near, one) <= TOLERANCE_S) for one in names}
    size = max(map(len, groups))
    if size == len(names):
        return
    largest = [group for group in groups if len(group) == size]
    if len(largest) > 1 or 2 * size <= len(names):
        first, last = names[0], names[-1]
        raise ConfigurationError(
            f"the clocks of {first} and {last} are {_long(_apart(clocks, first, last))} apart, and which of them is "
            "wrong is not known; set both by a time server"
        )
    right = [name for name in names if name in largest[0]]
    wrong = max((name for name in names if name not in right), key=lambda name: _apart(clocks, name, right[0]))
    one = here if here in right else right[len(right) // 2]
    raise ConfigurationError(
        f"the clock of {wrong} is {_long(_apart(clocks, wrong, one))} "
        f"{'ahead of' if clocks[wrong] > clocks[one] else 'behind'} those of {enumeration(sorted(right))}; set it by "
        "a time server",
        party=None if wrong == here else wrong,
    )


def _apart(clocks: Mapping[str, float], one: str, other: str) -> float:
    return abs(clocks[one] - clocks[other])


def _long(seconds: float) -> str:
    """A time for people, in the unit that suits it."""
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds > 1.9 * size), (1, "seconds"))
    return f"{round(seconds / size)} {unit}"
