"""The steps of a job in words, with how much of each is done and, where that is known, the time that it still takes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Final

_WORDS: Final = (
    (r"", "waiting"),
    (r"itemsets of (\d+)", r"itemsets of \1"),
    (r"local mining", "mining the own rows"),
    (r"alignment", "aligning rows"),
    (r"/.*/intersection(/.*/values|/values)?(/function)?", "aligning rows, values of ids"),
    (r"alignment/list", "aligning rows, the list of values"),
    (r"alignment/order", "aligning rows, their common order"),
    (r"rules", "deciding which rules hold"),
    (r"iterations", "iterations of k-means"),
    (r"/.*/union/items", "union of the names of items"),
    (r"/.*/union/itemsets", "union of itemsets"),
    (r"/.*?([^/]*)", r"\1"),  # a lane that has no words of its own
)
_FEW: Final = 2  # parts, by whose time that of the others is told


def in_words(step: str) -> str:
    """What a party does in a step, as a node names it."""
    for pattern, words in _WORDS:
        if found := re.fullmatch(pattern, step):
            return found.expand(words).replace("-", " ")
    return step


def about(seconds: float) -> str:
    """A duration that is roughly known, in words."""
    if seconds < 90:
        return f"about {max(round(seconds), 1)} s"
    return f"about {round(seconds / 60)} min" if seconds < 90 * 60 else f"about {round(seconds / 3600)} h"


class Steps:
    """How far the parties have come, in words.

    Args:
        clock: Seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun = dict[str, tuple[str, int, float]]()  # by party the step, how much of it was done, and when

    def line(self, party: str, step: str, done: int, total: int) -> str:
        """What a party does, how many of the step's parts are done, and how long the others will take."""
        now = self._clock()
        before, first, since = self._begun.get(party, ("", 0, now))
        if before != step or done < first:
            first, since = done, now
            self._begun[party] = (step, first, since)
        if total <= 1:
            return in_words(step)
        left = ""
        if first + _FEW <= done < total and now > since:
            left = f", {about((now - since) / (done - first) * (total - done))} left"
        return f"{in_words(step)}: {min(done, total):,} of {total:,}{left}"
