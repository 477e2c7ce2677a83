"""By what a job is known to be of a kind."""

from __future__ import annotations

from itertools import product
from typing import Literal, NamedTuple

Partition = Literal["horizontal", "vertical", "hybrid"]


class Key(NamedTuple):
    """What a job says of itself: its task, how data are parted, and its privacy model."""

    task: str
    partition: Partition
    model: str


def keys(tasks: tuple[str, ...], partitions: tuple[Partition, ...], models: tuple[str, ...]) -> tuple[Key, ...]:
    """The keys of a kind: each of its tasks with each partition and privacy model; "exact" is a job without one."""
    return tuple(Key(*each) for each in product(tasks, partitions, models))
