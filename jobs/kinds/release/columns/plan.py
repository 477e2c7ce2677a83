"""The plan of a release of columns: its alignment, and the course that its search is expected to take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.kinds.alignment.groups import column_groups
from jobs.kinds.columns.plan import estimate as estimate_columns
from jobs.kinds.columns.plan_figures import Following
from jobs.kinds.release.parameters import joint_anonymisation
from jobs.plan.answer import Answer
from jobs.plan.plan import Plan
from jobs.plan.prices import Speeds, comparison_s
from jobs.spec.job import JobSpec
from link.traffic import Traffic
from mining.joint.anonymisation.vertical.costs import Release, dealt_columns
from mining.joint.vertical.grouped.groups import column_holders
from mining.joint.vertical.run_sizes import RunSizes

_EVENLY: Final = (
    "Which nodes are examined depends on the rows: they are taken to fall into all possible classes evenly, and "
    "columns to lie at the parties in turn. Where some classes are far larger than others, more nodes fail; if no row "
    "may be left out, rare values then spare most tables, and the job costs far less."
)
_TOO_MANY: Final = (
    "The lattice is too large for its search to be foreseen: one node is counted, and the job costs more."
)
_UNKNOWN: Final = (
    "How many rows there are is not known: the figures are those of the alignment alone, the smaller part."
)
_TOO_FEW: Final = "There are too few rows to release any: the figures are those of the alignment alone."
_CELL_S: Final = 5e-9  # of work for a row and a cell of a table
_COPIES: Final = 4  # of joined rows, as words and as bytes
_CELL_BYTES: Final = 48  # of a cell of a release, as text and as it is signed
_LEAF_BYTES: Final = 4  # of a cell that is coded


def estimate(
    spec: JobSpec, answers: Mapping[str, Answer], latency_s: float, *others: str, compare: bool = True
) -> Plan:
    """As `jobs.kinds.kind.Kind.estimate`."""
    released = list[Release]()
    least = dict[str, dict[str, int]]()  # of the alignment alone: a search may end at its first node

    def release(spec: JobSpec, traffic: Traffic, sizes: RunSizes, speeds: Speeds) -> Following:
        found = _release(spec, sizes)
        for name in spec.job.parties:
            sent, received = traffic.bytes_sent(name), traffic.bytes_received(name)
            least[name] = {"bytes_sent_at_least": sent, "bytes_received_at_least": received}
        released.append(found)
        return _following(found, traffic, speeds)

    aligned = estimate_columns(spec, answers, latency_s, *others, compare=compare, after=release)
    expected = released[0]
    foreseen = _EVENLY if expected.is_possible and expected.course.is_whole else _TOO_MANY
    unforeseen = _UNKNOWN if aligned.n_rows is None else _TOO_FEW
    sentence = foreseen if expected.is_possible else unforeseen
    said = [*aligned.assumptions, sentence]
    is_least = aligned.is_least or sentence != _EVENLY
    parties = aligned.parties
    if not is_least:
        parties = {name: each.model_copy(update=least[name]) for name, each in parties.items()}
    figures = {"strategy": spec.anonymization.algorithm, "is_least": is_least, "assumptions": said, "parties": parties}
    return aligned.model_copy(update=figures)


def _release(spec: JobSpec, sizes: RunSizes) -> Release:
    task, parties, groups = joint_anonymisation(spec), spec.job.parties, column_groups(spec)
    holders = dealt_columns(task, column_holders(groups, parties))
    return Release(task, parties, holders, sizes.common, sizes.positions, groups)


def _following(release: Release, traffic: Traffic, speeds: Speeds) -> Following:
    """What follows the alignment, as `jobs.kinds.columns.plan_figures.After`."""
    if not release.is_possible:
        return Following(0.0, dict.fromkeys(speeds, 0))
    work, task = release.traffic(traffic), release.task
    seconds = sum(comparison_s(number, width, task.compute, speeds) for number, width in work.comparisons)
    seconds += work.transfers * max(each.transfer_s for each in speeds.values()) + work.row_cells * _CELL_S
    columns = len(task.quasi_identifiers) + len(task.carried)
    held = release.positions * (_LEAF_BYTES * columns + release.row_bytes)
    memory = dict.fromkeys(speeds, held)
    for name in {task.collector, task.shuffler}:
        memory[name] += _COPIES * release.positions * release.row_bytes
    for name in task.learners:
        memory[name] += release.common * (_COPIES * release.row_bytes + _CELL_BYTES * columns)
    return Following(seconds, memory)
