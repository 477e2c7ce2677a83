"""The plan of a model over columns: its alignment, and what it takes to learn it as far as the job file says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from crypto.protocols.comparison.argmin import position_word
from crypto.protocols.comparison.argmin_costs import tournament
from jobs.kinds.alignment.groups import column_groups
from jobs.kinds.columns.plan import estimate as estimate_columns
from jobs.kinds.columns.plan_figures import Following
from jobs.kinds.models.columns.run import strategy_of
from jobs.kinds.models.parameters import columns_of, model_parameters
from jobs.plan.answer import Answer
from jobs.plan.plan import Plan
from jobs.plan.prices import Speeds, comparison_s
from jobs.spec.job import JobSpec
from link.traffic import Traffic
from mining.joint.models.aligned import code_bytes
from mining.joint.models.costs import Learning, dealt
from mining.joint.vertical.engines.engine import EngineSpeed
from mining.joint.vertical.grouped.groups import column_holders
from mining.joint.vertical.run_sizes import RunSizes
from mining.models.decision_tree import TreeParameters
from mining.models.kmeans import KMeansParameters

_NOTABLE_BYTES: Final = 100 << 20


def estimate(
    spec: JobSpec, answers: Mapping[str, Answer], latency_s: float, *others: str, compare: bool = True
) -> Plan:
    """As `jobs.kinds.kind.Kind.estimate`; codes are in memory, as if each party had all columns, in blocks as well."""
    rests_on = [*others, *_learning_sentences(spec)]
    aligned = estimate_columns(spec, answers, latency_s, *rests_on, compare=compare, after=_learn)
    columns = (aligned.n_rows or 0) * code_bytes(columns_of(model_parameters(spec)))
    said = list(aligned.assumptions)
    if columns >= _NOTABLE_BYTES:
        said.append(f"Codes of the model's columns take up to {columns / 1e9:.1f} GB of memory, in blocks as well.")
    strategy = f"{strategy_of(spec)}, {spec.alignment.mode}"
    is_least = aligned.is_least or spec.decision_tree is not None
    return aligned.model_copy(update={"strategy": strategy, "is_least": is_least, "assumptions": said})


def _learn(spec: JobSpec, traffic: Traffic, sizes: RunSizes, speeds: Speeds) -> Following:
    """What follows the alignment, as `jobs.kinds.columns.plan_figures.After`."""
    task, parties, groups = model_parameters(spec), spec.job.parties, column_groups(spec)
    target = None if isinstance(task, KMeansParameters) else task.target
    learning = Learning(
        task,
        parties,
        dealt(target, task.attributes, column_holders(groups, parties)),
        sizes.common,
        sizes.positions,
        spec.alignment.mode == "intersection",
        spec.learners,
        spec.compute,
        groups,
    )
    learning.traffic(traffic)
    memory = {name: sizes.positions * code_bytes(columns_of(task)) + learning.shares_bytes(name) for name in speeds}
    return Following(_seconds(spec, learning, speeds), memory)


def _seconds(spec: JobSpec, learning: Learning, speeds: Speeds) -> float:
    task, parties = learning.task, learning.parties
    transfer_s = max(each.transfer_s for each in speeds.values())
    products_s = learning.seconds(EngineSpeed.by_transfer(transfer_s)) / len(parties)
    if not isinstance(task, KMeansParameters):
        return products_s
    rows = learning.positions
    rounds = tournament(rows, task.k, task.largest_distance)
    iteration_s = sum(
        comparison_s(each.pairs, each.width, spec.compute, speeds) + each.pairs * transfer_s for each in rounds
    )
    if learning.everywhere:
        return task.max_iterations * iteration_s
    width, columns = 8 * np.dtype(position_word(task.k)).itemsize, 1 + len(task.attributes)
    inside_s = comparison_s(rows, width, spec.compute, speeds, order=False) + 2 * rows * columns * transfer_s
    return products_s + task.max_iterations * (iteration_s + (task.k - 1) * inside_s)


def _learning_sentences(spec: JobSpec) -> list[str]:
    """On what the figures of learning rest."""
    match model_parameters(spec):
        case KMeansParameters() as task:
            return [f"All {task.max_iterations} iterations are counted; clusters are often steady after fewer."]
        case TreeParameters() as task:
            counts = task.target.size * (1 + sum(each.size - 1 for each in task.attributes))
            more = [
                f"Of the tree only the first node is counted, with {counts:,} counts: each further level takes as many "
                "for each node that is looked at."
            ]
        case _:
            more = []
    first = column_holders(column_groups(spec), spec.job.parties)[0]
    return [f"The class is taken to be at {first} and all other columns elsewhere, which costs the most.", *more]
