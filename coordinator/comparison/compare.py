"""Runs one job under several privacy models on the same data, each by the very code of its jobs."""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias

from jobs.comparison import Accuracy, accuracy, under
from jobs.kinds.packages import PrivacyModel
from jobs.spec.job import JobSpec
from link.errors import ComineError, ConfigurationError, JobCancelled

if TYPE_CHECKING:
    import pyarrow as pa

    from jobs.results.result import Result
    from mining.joint.spent import Spent

Run: TypeAlias = Callable[[JobSpec, int | None], Awaitable["Result"]]
"""Runs a job, with a seed where it may be repeated."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a job gave under one model with one ε.

    Attributes:
        model: The model.
        epsilon: ε that the job allowed; None under the exact model.
        results: Of its runs, at least one.
        accuracies: Of each run.
    """

    model: PrivacyModel
    epsilon: Decimal | None
    results: tuple[Result, ...]
    accuracies: tuple[Accuracy, ...]

    def mean(self, measure: str) -> float | None:
        """The mean of a measure of `Accuracy` over the runs that have it; None where none has."""
        known = [value for each in self.accuracies if (value := getattr(each, measure)) is not None]
        return statistics.fmean(known) if known else None

    @property
    def f1_deviation(self) -> float | None:
        """The standard deviation of F1 over the runs; None of a single one."""
        return statistics.stdev(each.f1 for each in self.accuracies) if len(self.accuracies) > 1 else None

    @property
    def spent(self) -> Spent | None:
        """What each record has spent; None under the exact model."""
        finding = self.results[0].finding
        return None if finding is None else finding.spent

    @property
    def bytes_sent(self) -> float:
        """By all parties together, mean of the runs."""
        return statistics.fmean(sum(costs.bytes_sent for costs in each.parties.values()) for each in self.results)

    @property
    def rounds(self) -> int:
        """The longest chain of messages that waited for each other."""
        return max(costs.rounds for each in self.results for costs in each.parties.values())

    @property
    def seconds(self) -> float:
        """Of the slowest party, mean of the runs."""
        return statistics.fmean(max(costs.seconds for costs in each.parties.values()) for each in self.results)


@dataclass(frozen=True, slots=True)
class NotRun:
    """A model under which the job did not run, and why."""

    model: PrivacyModel
    epsilon: Decimal | None
    error: ComineError


@dataclass(frozen=True, slots=True)
class Comparison:
    """A job under several models.

    Attributes:
        spec: The job.
        seeds: Of the runs; None each where they cannot be repeated.
        measured: The exact model first, whose result is the truth.
        not_run: Models under which the job did not run.
    """

    spec: JobSpec
    seeds: tuple[int | None, ...]
    measured: tuple[Measured, ...]
    not_run: tuple[NotRun, ...]

    @property
    def truth(self) -> Result:
        """The exact model's result."""
        return self.measured[0].results[0]


async def compare(
    spec: JobSpec,
    models: Sequence[PrivacyModel],
    epsilons: Sequence[Decimal],
    run: Run,
    seeds: Sequence[int | None] = (None,),
) -> Comparison:
    """Runs a job under the exact model, and under each of the others with each ε and seed.

    Args:
        spec: The job, whatever its own model.
        models: Those that are wanted. The exact one is run in any case, since its result is the truth.
        epsilons: In place of the job's ε; none leaves that.
        run: Runs a job.
        seeds: One for each run of a model.

    Raises:
        ConfigurationError: The job does not tell the coordinator what the exact model finds, with supports.
        ComineError: The job failed under the exact model.
        JobCancelled: Somebody cancelled a run.
    """
    check_comparable(spec)
    exact = under(spec, "exact")
    truth = await run(exact, seeds[0])
    right = _table(truth)
    measured = [Measured("exact", None, (truth,), (accuracy(right, right),))]
    not_run = []
    for model in dict.fromkeys(models):
        if model == "exact":
            continue
        for epsilon in epsilons or (spec.privacy.epsilon,):
            try:
                changed = under(spec, model, epsilon)
                results = tuple([await run(changed, seed) for seed in seeds])
            except JobCancelled:
                raise
            except ComineError as error:
                not_run.append(NotRun(model, epsilon, error))
                continue
            accuracies = tuple(accuracy(_table(result), right) for result in results)
            measured.append(Measured(model, epsilon, results, accuracies))
    return Comparison(spec, tuple(seeds), tuple(measured), tuple(not_run))


def check_comparable(spec: JobSpec) -> None:
    """Refuses a job whose exact result would not be known here.

    Raises:
        ConfigurationError: It finds no itemsets, opens no supports, or is for others.
    """
    if spec.itemsets_ is None:
        raise ConfigurationError(f'task = "{spec.job.task}" finds no itemsets, and models are compared by these')
    if spec.itemsets.min_support_ is None:
        raise ConfigurationError(
            "[itemsets] min_support is missing; models are compared with what the exact one finds, which needs it "
            "beside top_k"
        )
    if spec.itemsets.disclose == "frequent":
        raise ConfigurationError(
            '[itemsets] disclose = "frequent" opens no supports, with which estimates could be compared; use "supports"'
        )
    if not spec.to_coordinator:
        recipients = ", ".join(spec.job.recipients)
        raise ConfigurationError(f"the recipients of this job are {recipients}; a comparison needs the coordinator too")


def _table(result: Result) -> pa.Table:
    table = result.tables.get("itemsets")
    assert table is not None  # the coordinator is a recipient
    return table
