"""What `comine job new` writes: a commented job file, whose tables its kind knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, get_args

from jobs.kinds.key import Key, Partition
from jobs.kinds.kind import Kind
from jobs.kinds.packages import BUILT_IN, added
from jobs.kinds.registry import kind_at
from link.errors import ConfigurationError, UsageError
from link.files.printable import enumeration
from link.files.toml_text import quoted

_HEAD: Final = """\
# {about}
# See what it costs and discloses before anybody is asked: comine job plan FILE. `comine docs run-jobs` goes on.

[job]
name = {name}
task = {task}
parties = {parties}
dataset = {dataset:<22}# the name under which all parties have their data
partition = {partition:<20}# {parted}
recipients = ["coordinator"]    # who gets the result: "coordinator", "all", or names of parties
deadline = "30m"                # how long it may run, once all have agreed
"""
_PARTED: Final = {
    "horizontal": "each party has rows of its own",
    "vertical": "the parties have columns about the same people, joined by ids",
    "hybrid": "each party has rows of its own, which nobody else may see unperturbed",
}


def key_of(task: str, partition: str | None, model: str) -> Key:
    """The key of a task; the first partition that it has, where none is said.

    Raises:
        UsageError: There is no such task, or it has no such partition or privacy model.
    """
    keys = (*BUILT_IN, *added())
    tasks = tuple(dict.fromkeys(key.task for key in keys))
    if task not in tasks:
        raise UsageError(f"--task is {enumeration(tasks, 'or')}, not '{task}'")
    if partition is not None and partition not in get_args(Partition):
        raise UsageError(f"--partition is {' or '.join(get_args(Partition))}, not '{partition}'")
    fitting = [key for key in keys if (key.task, key.model) == (task, model) and partition in (None, key.partition)]
    if not fitting:
        models = dict.fromkeys(key.model for key in keys if key.task == task)
        partitions = dict.fromkeys(key.partition for key in keys if (key.task, key.model) == (task, model))
        raise UsageError(
            f"--task {task} with --model {model} has --partition {' or '.join(partitions)}"
            if partitions
            else f"--task {task} has --model {' or '.join(models)}, not '{model}'"
        )
    return fitting[0]


def render(key: Key, parties: Sequence[str], dataset: str) -> tuple[str, Kind]:
    """The text of a job file, and the kind of the job.

    Raises:
        ConfigurationError: The kind is another distribution's and writes none.
        UsageError: There are fewer than two parties.
    """
    if len(parties) < 2:
        raise UsageError("a job has two parties or more; name them with --party, or in the federation file")
    kind = kind_at(key)
    tables = kind.template(key, tuple(parties))
    if not tables:
        raise ConfigurationError(
            f"the plug-in with the task '{key.task}' writes no job files; its documentation shows what they hold"
        )
    exact = key.model == "exact"
    head = _HEAD.format(
        about=f'A job of the task "{key.task}"' + ("." if exact else f', under the privacy model "{key.model}".'),
        name=quoted(key.task if exact else f"{key.task}, {key.model}"),
        task=quoted(key.task),
        parties=quoted(list(parties)),
        dataset=quoted(dataset),
        partition=quoted(key.partition),
        parted=_PARTED[key.partition],
    )
    return head + tables, kind
