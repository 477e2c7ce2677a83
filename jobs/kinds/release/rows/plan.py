"""The plan of a release of rows: between what it costs, since which nodes are examined depends on the rows."""

from __future__ import annotations

from collections.abc import Mapping

from crypto.primitives.sealed import OVERHEAD
from jobs.kinds.release.parameters import joint_anonymisation
from jobs.kinds.release.rows.plan_range import Setting, cost_range
from jobs.plan.answer import Answer
from jobs.plan.plan import Plan
from jobs.plan.prices import NODE_BYTES
from jobs.plan.session_plan import session_plan, with_limits
from jobs.spec.job import JobSpec
from mining.joint.anonymisation.parameters import MOST_CELLS, JointAnonymisation
from mining.joint.anonymisation.public_lattice import possible_classes
from mining.joint.anonymisation.row_form import Form
from mining.joint.hybrid.pacing import WINDOW
from mining.joint.hybrid.spool_limits import REPORT_MEMORY

_SEARCHED = (
    "Which nodes are examined depends on the rows: at least the one that shows nothing, at most all {nodes:,} of at "
    "most {most:,} possible classes, {classes:,} classes together. Each class takes comparisons, and the rows are sent "
    "at the end. {measured}"
)
_EXAMINED = (
    "All nodes of at most {most:,} possible classes are examined: {nodes:,} with {classes:,} classes together, a "
    "comparison or more for each."
)
_CUT = (
    "How often regions are cut depends on the rows: at most until each has k rows, with every cut of every axis tried "
    "in each. {measured}"
)
_MEASURED_SEARCH = (
    "As measured on the Adult table, 30,162 rows of three parties with 4,320 nodes, k = 5 and insider_k = 1: 5.6 MB "
    "in 159 rounds where nothing may be left out (105 nodes looked at), 167 MB in 806 rounds where 2 % may (568 nodes)."
)
_MEASURED_REGIONS = (
    "As measured on the Adult table, 30,162 rows of three parties with eight quasi-identifiers, k = 5 and "
    "insider_k = 2: 43 MB in 2,539 rounds for 3,100 regions."
)
_KEYS = "Unions of occurring classes come on top, so nothing says how much it is at most."
_HIDDEN = (
    "Some party hides its number of rows: it may have none, and without [union] bound nothing says how much the job "
    "costs at most."
)
_COPIES = 4  # of rows in their packed form
_CELL_BYTES = 48  # of a cell of a release, as text and as it is signed


def estimate_anonymization(spec: JobSpec, answers: Mapping[str, Answer], latency_s: float, *others: str) -> Plan:
    """What the job will cost and disclose; arguments as in `estimate`."""
    answers = {name: answers[name] for name in spec.job.parties}
    published = [answer.n_rows for answer in answers.values() if answer.n_rows is not None]
    n_rows = sum(published) * len(answers) // len(published) if published else None
    task = joint_anonymisation(spec)
    setting = Setting.of(task, answers, latency_s, spec.plan.bytes_per_s)
    traffic, seconds, most = cost_range(task, setting)
    sentences = [_course(task)]
    if task.keys == "union":
        sentences.append(_KEYS)
    elif most is None:
        sentences.append(_HIDDEN)
    plan = session_plan(
        spec,
        answers,
        traffic,
        seconds,
        {name: _memory(task, name, n_rows or 0, len(answers)) for name in answers},
        n_rows=n_rows,
        strategy=task.algorithm,
        is_least=True,
        rounds_at_most=None if most is None else most.rounds,
        seconds_at_most=None if most is None else most.seconds,
        batches=[],
        assumptions=[*others, *sentences, f"A message takes {1000 * latency_s:.1f} ms between parties."],
    )
    return plan if most is None else with_limits(plan, most.sent, most.received)


def _memory(task: JointAnonymisation, party: str, n_rows: int, parties: int) -> int:
    """All released rows at learners, and sealed ones on their way at the shuffler; combinations are few beside them."""
    size, found = Form.of(task).size, NODE_BYTES
    if party in task.learners:
        columns = len(task.quasi_identifiers) + len(task.carried)
        found += n_rows * (_COPIES * size + _CELL_BYTES * columns)
    if party == task.shuffler:
        found += min(_COPIES * n_rows * (size + OVERHEAD), REPORT_MEMORY + 2 * WINDOW * parties)
    return found


def _course(task: JointAnonymisation) -> str:
    """What the figures depend on."""
    if task.algorithm == "mondrian":
        return _CUT.format(measured=_MEASURED_REGIONS)
    most, cells = task.node_cells if task.disclose == "node" else MOST_CELLS, possible_classes(task)
    within = cells[cells <= most]
    sentence = _EXAMINED if task.disclose == "node" else _SEARCHED
    return sentence.format(most=most, nodes=len(within), classes=int(within.sum()), measured=_MEASURED_SEARCH)
