"""The plan of a job that mines by perturbed records: its search, and what it costs each record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from crypto.primitives.sealed import OVERHEAD
from jobs.kinds.charge import charge
from jobs.kinds.reported.parameters import hybrid_mining
from jobs.plan.answer import Answer
from jobs.plan.assumptions import of_network
from jobs.plan.plan import Batch, Plan
from jobs.plan.prices import NODE_BYTES, UNKNOWN_ROWS, Speeds, passes_s, rows_bytes, session_s
from jobs.plan.privacy import Privacy
from jobs.plan.session_plan import session_plan
from jobs.spec.job import JobSpec
from link.traffic import Traffic
from mining.joint.hybrid.budget import central
from mining.joint.hybrid.pacing import WINDOW
from mining.joint.hybrid.parameters import SET_LENGTH, HybridMining
from mining.joint.hybrid.sizes import PhaseSizes, SearchSizes, expected, hybrid_traffic
from mining.joint.hybrid.spool_limits import REPORT_MEMORY
from mining.joint.spent import Spent

_SEAL: Final = 1.1  # group multiplications, about, of a layer put around a report
_UNSEAL: Final = 0.7  # and of one taken off
_PERTURB: Final = 0.006  # of a record perturbed
_HASH: Final = 6e-6  # of a value that is held against a hashed report
_BUDGET_S: Final = 0.4  # to find the largest local ε, once at every party
_COPIES: Final = 4  # of a phase's own reports: perturbed, packed, sealed, sent
_COVARIANCES: Final = 3  # matrices of all candidates that the analyst holds at once


@dataclass(frozen=True)
class _Figures:
    """What is expected of the job."""

    task: HybridMining
    rows: Mapping[str, int]
    spent: Spent
    sizes: SearchSizes
    traffic: Traffic


def estimate_reported(spec: JobSpec, answers: Mapping[str, Answer], latency_s: float, *others: str) -> Plan:
    """What a job by perturbed records will cost and disclose; arguments as in `estimate`.

    Raises:
        ConfigurationError: The search does not fit the catalogue or the numbers of records.
    """
    answers = {name: answers[name] for name in spec.job.parties}
    figures = _figures(spec, answers)
    speeds = {name: answer.speed for name, answer in answers.items()}
    seconds = session_s(figures.traffic, speeds, latency_s, spec.plan.bytes_per_s) + _work_s(figures, speeds)
    seconds += passes_s(answers, len(figures.sizes.phases))
    published = any(answer.n_rows is not None for answer in answers.values())
    return session_plan(
        spec,
        answers,
        figures.traffic,
        seconds,
        {name: _memory(figures, answer) for name, answer in answers.items()},
        n_rows=sum(figures.rows.values()) if published else None,
        strategy=figures.task.search,
        batches=[
            Batch(step=f"phase-{number}", candidates=phase.width, opened=0)
            for number, phase in enumerate(figures.sizes.phases)
        ],
        assumptions=[*others, *_assumptions(spec, answers, latency_s)],
        privacy=Privacy.of(figures.spent, charge(spec)),
    )


def _figures(spec: JobSpec, answers: Mapping[str, Answer]) -> _Figures:
    task, rows = hybrid_mining(spec), likely_rows(answers)
    spent = central(task, rows)
    sizes = expected(task, rows, spent)
    traffic = Traffic(tuple(answers))
    hybrid_traffic(traffic, task, sizes)
    traffic.session({name: answer.certificate_bytes for name, answer in answers.items()})
    return _Figures(task, rows, spent, sizes, traffic)


def likely_rows(answers: Mapping[str, Answer]) -> dict[str, int]:
    """Numbers of records; who hides its own is taken to have as many as the others on average."""
    published = [answer.n_rows for answer in answers.values() if answer.n_rows is not None]
    average = round(sum(published) / len(published)) if published else UNKNOWN_ROWS
    return {name: answer.n_rows if answer.n_rows is not None else average for name, answer in answers.items()}


# -- what it takes ----------------------------------------------------------------------------------------------------
def _work_s(figures: _Figures, speeds: Speeds) -> float:
    """Phases come one after the other; in each the parties report at the same time, and then hop after hop works."""
    begun = _BUDGET_S if figures.task.shufflers else 0.0
    return begun + sum(_phase_s(phase, figures.task, speeds) for phase in figures.sizes.phases)


def _phase_s(phase: PhaseSizes, task: HybridMining, speeds: Speeds) -> float:
    cost = {name: speed.multiply_s for name, speed in speeds.items()}
    layers = _SEAL * len(task.shufflers)
    reporting = max(phase.groups[name] * (_PERTURB + layers * (name != task.analyst)) * cost[name] for name in speeds)
    others = phase.reports - phase.groups[task.analyst]
    opening = sum(_UNSEAL * others * cost[name] for name in (*task.shufflers[1:], *[task.analyst] * bool(layers)))
    values = 1 if phase.direct else phase.width
    return reporting + opening + _HASH * phase.reports * values * cost[task.analyst]


def _memory(figures: _Figures, answer: Answer) -> int:
    """Rows; own reports of the largest phase; others' that wait or are shuffled; covariances at the analyst."""
    task, phases, party = figures.task, figures.sizes.phases, answer.party
    width = phases[0].report_bytes + OVERHEAD * len(task.shufflers)
    found = NODE_BYTES + rows_bytes(answer, figures.rows[party])
    found += _COPIES * max(phase.groups[party] for phase in phases) * width
    others = _COPIES * max(phase.reports for phase in phases) * width
    if party in task.shufflers:
        found += min(others, REPORT_MEMORY + 2 * WINDOW * len(figures.rows))
    elif party == task.analyst:
        found += min(others, 2 * WINDOW * len(figures.rows))
    if party == task.analyst:
        found += _COVARIANCES * 8 * max(phase.candidates for phase in figures.sizes.phases) ** 2
    return found


def _assumptions(spec: JobSpec, answers: Mapping[str, Answer], latency_s: float) -> list[str]:
    hidden = [name for name, answer in answers.items() if answer.n_rows is None]
    lines = []
    if len(hidden) == len(answers):
        lines.append(f"Nobody publishes a number of rows: each party is taken to have {UNKNOWN_ROWS:,}.")
    elif hidden:
        lines.append(f"{', '.join(hidden)}: the number of rows is hidden, and taken to be like the others'.")
    if spec.privacy.model == "shuffle":
        lines.append(
            "What a report may spend follows from the numbers of records when the job runs; it never costs a record "
            "more than the job's epsilon and delta towards anyone who sees the result."
        )
        lines.append(
            "More epsilon helps less here than elsewhere: twice the epsilon, or twice the rows at the smaller parties, "
            "adds some 0.7 to what a report may spend, as long as that is below local_epsilon."
        )
    if spec.privacy.search in ("privset", "wheel"):
        lines.append(
            f"Rows of more than {SET_LENGTH} items are cut to {SET_LENGTH}, and by how much that lowers supports is "
            "not known: intervals do not cover it. Take svim where many rows are longer."
        )
    lines.append(
        "How long reports are in later phases depends on the rows: they are taken to hold a few of the candidates each."
    )
    lines.append(of_network(spec, latency_s, ", as between them and the coordinator"))
    lines.append("The parties' machines are as busy as when they were asked, and their data are read already.")
    return lines
