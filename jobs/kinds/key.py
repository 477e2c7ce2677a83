"""By what a job is known to be of a kind."""

from __future__ import annotations

from itertools import product
from typing import Literal, NamedTuple

from jobs.spec.privacy import PrivacyModel

Task = Literal["itemsets", "rules", "align", "naive-bayes", "decision-tree", "k-means", "anonymize"]
Partition = Literal["horizontal", "vertical", "hybrid"]


class Key(NamedTuple):
    """What a job says of itself."""

    task: Task
    partition: Partition
    model: PrivacyModel


def keys(
    tasks: tuple[Task, ...], partitions: tuple[Partition, ...], models: tuple[PrivacyModel, ...]
) -> tuple[Key, ...]:
    """The keys of a kind: each of its tasks with each partition and privacy model; "exact" is a job without one."""
    return tuple(Key(*each) for each in product(tasks, partitions, models))
