"""What a party has when a model is learnt."""

from __future__ import annotations

from typing import Any

from jobs.kinds.models.finding import FoundModel
from jobs.kinds.models.model import Model
from jobs.kinds.models.parameters import ModelParameters
from jobs.results.outcome import Outcome
from jobs.spec.job import JobSpec
from mining.joint.models.totals import Learnt


def found_model(spec: JobSpec, me: str, task: ModelParameters, found: Learnt[Any], strategy: str) -> Outcome:
    """The outcome of a job: with the model at a party that learns it."""
    if found.model is None or me not in spec.learners:
        return Outcome(found.n_rows, strategy, None)
    return Outcome(found.n_rows, strategy, FoundModel(Model(task, found.n_rows, found.model)))
