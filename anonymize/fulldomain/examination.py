"""Whether the classes of a node meet the requirements, and what that implies for other nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anonymize.fulldomain.frequency import FrequencySet
from anonymize.models.model import Model

MOST_CELLS: Final = 20_000_000  # of a histogram that is held at once


@dataclass(frozen=True, eq=False)
class Verdict:
    """What an examination found.

    Attributes:
        labels: Class of each tuple, shape (u,).
        sizes: Records of each class, shape (c,).
        good: Classes that meet all requirements, shape (c,).
        failing: Records in the other classes.
        satisfied: Whether those may be suppressed, so that the node can be released.
        hopeless: Whether no specialisation can satisfy either.
    """

    labels: NDArray[np.int64]
    sizes: NDArray[np.int64]
    good: NDArray[np.bool_]
    failing: int
    satisfied: bool
    hopeless: bool


class Examiner:
    """Examines classes against models and MaxSup.

    The number of records in violating classes never rises under generalisation for models that are monotone with
    suppression. Too many of these at a node condemn all its specialisations, whatever the other models say. Without
    suppression that holds for every monotone model.

    Args:
        models: The requirements, fitted to the input table.
        allowed: MaxSup, how many records may be suppressed.
    """

    def __init__(self, models: Sequence[Model], allowed: int) -> None:
        self.allowed = allowed
        self._least = max((model.least_size for model in models), default=1)
        self._pruning = [m for m in models if (m.monotone_with_suppression if allowed else m.monotone)]
        self._others = [model for model in models if model not in self._pruning]

    @property
    def monotone(self) -> bool:
        """Whether every generalisation of a satisfying node satisfies."""
        return not self._others

    def examine(
        self, frequency: FrequencySet, labels: NDArray[np.int64], sizes: NDArray[np.int64], *, prune_only: bool = False
    ) -> Verdict:
        """Judges the classes of one node.

        Args:
            frequency: The tuples.
            labels: Class of each tuple, shape (u,).
            sizes: Records of each class, shape (c,).
            prune_only: Ask only the models by which nodes may be pruned.
        """
        good = sizes >= self._least
        failing = _records(sizes, ~good)
        if failing <= self.allowed:
            good = self._meet(self._pruning, frequency, labels, sizes, good)
            failing = _records(sizes, ~good)
        hopeless = failing > self.allowed
        if not hopeless and not prune_only:
            good = self._meet(self._others, frequency, labels, sizes, good)
            failing = _records(sizes, ~good)
        return Verdict(labels, sizes, good, failing, failing <= self.allowed, hopeless)

    def good_classes(
        self, frequency: FrequencySet, labels: NDArray[np.int64], sizes: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """The classes that meet all requirements, shape (c,)."""
        return self._meet([*self._pruning, *self._others], frequency, labels, sizes, sizes >= self._least)

    def _meet(
        self,
        models: Sequence[Model],
        frequency: FrequencySet,
        labels: NDArray[np.int64],
        sizes: NDArray[np.int64],
        among: NDArray[np.bool_],
    ) -> NDArray[np.bool_]:
        """Which of some classes meet some models; only these are counted, a bounded number at a time."""
        asked = [model for model in models if model.columns]
        if not asked or not among.any():
            return among
        good = among.copy()
        chosen = np.flatnonzero(among)
        step = max(MOST_CELLS // sum(counts.domain for counts in frequency.sensitive.values()), 1)
        for start in range(0, len(chosen), step):
            block = chosen[start : start + step]
            numbers = np.full(len(sizes), -1)
            numbers[block] = np.arange(len(block))
            classes = frequency.histograms(numbers[labels], sizes[block])
            good[block] = np.logical_and.reduce([model.satisfied(classes) for model in asked])
        return good


def _records(sizes: NDArray[np.int64], chosen: NDArray[np.bool_]) -> int:
    return int(sizes[chosen].sum())
