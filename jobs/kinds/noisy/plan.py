"""The plan of a job under distributed noise: its sums, the noise in them, and what it costs each record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from jobs.kinds.charge import charge
from jobs.kinds.noisy.parameters import distributed_mining
from jobs.kinds.rows.parameters import horizontal_mining
from jobs.kinds.rows.plan_sizes import expected, total_rows
from jobs.plan.answer import Answer
from jobs.plan.assumptions import of_network
from jobs.plan.plan import Batch, Plan
from jobs.plan.prices import memory, seconds
from jobs.plan.privacy import NoisyLevel, Privacy
from jobs.plan.session_plan import session_plan
from jobs.spec.job import JobSpec
from link.traffic import Traffic
from mining.joint.distributed.budget import drawn_contributions, given_contributions, length_noise, spent
from mining.joint.distributed.parameters import DistributedMining
from mining.joint.distributed.row_sizes import (
    USUAL_SHARE,
    largest_contributions,
    size_classes,
    usual_contributions,
)
from mining.joint.distributed.sizes import NoisySizes, noisy_traffic
from mining.joint.parameters import HorizontalMining
from mining.joint.sizes import MiningSizes
from mining.thresholds import minimum_count

_NAME_BYTES: Final = 12  # of an item's name in a list, about
_MANY: Final = 1_000_000  # candidates, where nothing is known of them
_UNKNOWN: Final = 30  # contributions, where no least support is known
_NO_SIZES: Final = (
    "No party publishes how many itemsets are frequent: the figures are of single items alone, and longer itemsets "
    "come on top."
)


@dataclass(frozen=True)
class _Expectation:
    """What is expected of the job.

    Attributes:
        sizes: Of its sums.
        rows: Of all parties; None where nobody publishes them.
        exact: The same as sizes of a job without noise, for its work.
        known: Whether the candidates follow from what parties publish.
    """

    sizes: NoisySizes
    rows: int | None
    exact: MiningSizes
    known: bool


def exact_counterpart(spec: JobSpec) -> HorizontalMining | None:
    """The job without its noise, from whose candidates those of the job are expected; None of one without a floor."""
    if spec.itemsets.min_support_ is None:
        return None
    task, noisy = horizontal_mining(spec), distributed_mining(spec)
    return replace(
        task,
        strategy="level-wise",
        disclose="candidates",
        thin=False,
        universe="frequent-items" if noisy.catalogue is None else "catalogue",
        catalogue=noisy.catalogue,
        max_length=noisy.max_length,
        rules=None,
    )


def estimate_noisy(spec: JobSpec, answers: Mapping[str, Answer], latency_s: float, *others: str) -> Plan:
    """What a job under distributed noise will cost and disclose; arguments as in `estimate`.

    Raises:
        ConfigurationError: The budget does not fit the noise.
        InputDataError: There are no transactions.
    """
    answers = {name: answers[name] for name in spec.job.parties}
    task, parties = distributed_mining(spec), len(answers)
    found = _expected(spec, task, answers)
    traffic = Traffic(tuple(answers))
    noisy_traffic(traffic, found.sizes)
    traffic.session({name: answer.certificate_bytes for name, answer in answers.items()})
    work = exact_counterpart(spec) or _single_items(spec, task)
    took = seconds(work, answers, found.exact, traffic, latency_s, spec.plan.bytes_per_s)
    return session_plan(
        spec,
        answers,
        traffic,
        took,
        {name: memory(work, answer, found.exact, parties) for name, answer in answers.items()},
        n_rows=found.rows,
        strategy=f"level-wise, {task.noise} noise",
        is_least=not found.known,
        batches=[
            Batch(step=f"level-{length}", candidates=number, opened=number)
            for length, number in enumerate(found.sizes.candidates, 1)
        ],
        assumptions=[*others, *_assumptions(spec, answers, found, latency_s)],
        privacy=Privacy.of(spent(task, parties), charge(spec), _noise(task, parties, found)),
    )


def _expected(spec: JobSpec, task: DistributedMining, answers: Mapping[str, Answer]) -> _Expectation:
    rows, exact = total_rows(answers), exact_counterpart(spec)
    found = None if exact is None else expected(exact, answers)
    if found is None:
        singles = len(task.catalogue or ()) or spec.plan.items or 0
        sizes = MiningSizes(max(rows or 1, 1), singles, None)
        return _Expectation(NoisySizes((singles,) if singles else ()), rows, sizes, known=False)
    named = {}
    if task.catalogue is None:
        held = {name: answer.sizes.items.elements for name, answer in answers.items() if answer.sizes is not None}
        usual = round(sum(held.values()) / len(held))
        named = {name: held.get(name, usual) * _NAME_BYTES for name in answers}
    candidates = (found.sizes.universe, *found.sizes.candidates[: task.max_length - 1])
    least = _least(task, found.n_rows)
    classes = []
    for length, number in enumerate(candidates, 1):
        ends = () if least is None else _classes(task, len(answers), length, least, number)
        classes.append(len(ends) + 1 if ends else 0)
    return _Expectation(NoisySizes(candidates, named, tuple(classes)), found.n_rows, found.sizes, known=True)


def _single_items(spec: JobSpec, task: DistributedMining) -> HorizontalMining:
    """Public parameters of a job over single items, by which the work is priced where no exact job is like this one."""
    return HorizontalMining(
        min_support=1,
        learners=task.learners,
        merger=spec.job.parties[0],
        compute=spec.compute,
        max_length=1,
        disclose="candidates",
        strategy="level-wise",
        universe="frequent-items" if task.catalogue is None else "catalogue",
        catalogue=task.catalogue,
    )


def _least(task: DistributedMining, rows: int | None) -> float | None:
    """The least support in rows, so far as it is known beforehand; with k alone what is thought of at first."""
    if isinstance(task.min_support, int):
        return float(task.min_support)
    if not rows:
        return None
    return float(minimum_count(task.min_support, rows)) if task.min_support is not None else rows * USUAL_SHARE


def _classes(task: DistributedMining, parties: int, length: int, least: float, candidates: int) -> tuple[int, ...]:
    of_one = length_noise(task, parties, length, 1).sigma
    drawn = drawn_contributions(task, parties, length)
    usual = usual_contributions(length, of_one, least, drawn)
    return size_classes(of_one, least, candidates, given_contributions(task, length), usual, drawn)


def _noise(task: DistributedMining, parties: int, found: _Expectation) -> list[NoisyLevel]:
    """Of each length that the budget is dealt out to, whether the job comes to it or not: the most that it may be."""
    least, levels, candidates = _least(task, found.rows), [], found.sizes.candidates
    for length in range(1, task.max_length + 1):
        number = candidates[length - 1] if length <= len(candidates) and candidates[length - 1] else _MANY
        most = given_contributions(task, length)
        if least is not None:
            ends = _classes(task, parties, length, least, number)
            most = largest_contributions(ends, number) if most is None else most
        most = max(1, min(_UNKNOWN if most is None else most, number))
        deviation = length_noise(task, parties, length, most).sigma
        levels.append(NoisyLevel(length=length, contributions=most, deviation=deviation))
    return levels


def _assumptions(spec: JobSpec, answers: Mapping[str, Answer], found: _Expectation, latency_s: float) -> list[str]:
    lines = []
    if found.known:
        lines.append(
            "How many candidates there are is what would be expected without noise; where the noise is not far below "
            "the least support, it may be off."
        )
        hidden = [name for name, answer in answers.items() if answer.sizes is None]
        if hidden:
            lines.append(f"{', '.join(hidden)}: sizes are hidden, and taken to be like the others'.")
    else:
        lines.append(_NO_SIZES)
    lines.append(of_network(spec, latency_s, ", as between them and the coordinator"))
    lines.append("The parties' machines are as busy as when they were asked, and their data are read already.")
    return lines
