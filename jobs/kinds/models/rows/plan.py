"""The plan of a model over rows: its sums as far as the job file says, else what it may take."""

from __future__ import annotations

from collections.abc import Mapping

from crypto.protocols.sums.costs import agreement_traffic, sum_traffic
from crypto.protocols.sums.secure_sum import word_for
from jobs.kinds.models.parameters import ModelParameters, model_parameters
from jobs.kinds.models.rows.run import STRATEGY
from jobs.plan.answer import Answer
from jobs.plan.plan import Plan
from jobs.plan.prices import NODE_BYTES, UNKNOWN_ROWS, passes_s, session_s
from jobs.plan.session_plan import session_plan
from jobs.spec.job import JobSpec
from link.traffic import Traffic
from mining.models.decision_tree import TreeParameters
from mining.models.kmeans import KMeansParameters
from mining.models.naive_bayes import NaiveBayesParameters

_WORD_BYTES = 8


def estimate_model(spec: JobSpec, answers: Mapping[str, Answer], latency_s: float, *others: str) -> Plan:
    """What the job will cost and disclose; arguments as in `estimate`."""
    answers = {name: answers[name] for name in spec.job.parties}
    published = [answer.n_rows for answer in answers.values() if answer.n_rows is not None]
    n_rows = sum(published) * len(answers) // len(published) if published else None
    task, traffic = model_parameters(spec), Traffic(tuple(answers))
    sentences = _enter(traffic, spec, task, n_rows or UNKNOWN_ROWS * len(answers))
    traffic.session({name: answer.certificate_bytes for name, answer in answers.items()})
    speeds = {name: answer.speed for name, answer in answers.items()}
    if len(published) < len(answers):
        sentences.append("Who hides the number of rows is taken to be like the others.")
    return session_plan(
        spec,
        answers,
        traffic,
        session_s(traffic, speeds, latency_s, spec.plan.bytes_per_s) + passes_s(answers, _passes(task)),
        {name: NODE_BYTES + (answer.block_bytes or 0) for name, answer in answers.items()},
        n_rows=n_rows,
        strategy=STRATEGY,
        batches=[],
        assumptions=[
            *others,
            *sentences,
            "What a party does with its own rows is not counted, but for passes on clusters that publish their time. "
            "It takes about as long as to learn from them alone.",
            f"A message takes {1000 * latency_s:.1f} ms between parties.",
        ],
    )


def _passes(task: ModelParameters) -> int:
    """How often each party's rows are looked at for the sums that are entered."""
    return task.max_iterations if isinstance(task, KMeansParameters) else 1


def _enter(traffic: Traffic, spec: JobSpec, task: ModelParameters, n_rows: int) -> list[str]:
    """Enters the sums; returns what of them is not known beforehand."""
    word = word_for(n_rows).itemsize
    agreement_traffic(traffic)
    sum_traffic(traffic, _WORD_BYTES)
    match task:
        case NaiveBayesParameters():
            to = spec.learners
            sum_traffic(traffic, task.n_counts * word, to)
            if task.numeric:
                rounds = traffic.rounds  # moments are summed at the same time
                sum_traffic(traffic, task.n_moments * _WORD_BYTES, to)
                traffic.rounds = rounds
            return []
        case TreeParameters():
            classes = task.target.size
            sum_traffic(traffic, classes * word)
            counts = classes * sum(each.size for each in task.attributes)
            sum_traffic(traffic, counts * word)
            return [
                f"Of the tree only the first node is counted, with {counts:,} counts: each further level takes a sum, "
                "of as many counts for each node that is looked at."
            ]
        case KMeansParameters():
            values = task.k * (len(task.attributes) + 1)
            for _ in range(task.max_iterations):
                sum_traffic(traffic, values * _WORD_BYTES)
            return [f"All {task.max_iterations} iterations are counted; clusters are often steady after fewer."]
