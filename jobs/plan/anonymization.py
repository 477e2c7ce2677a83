"""The plan of a job that anonymises: what its size tells; which nodes are looked at hangs on the rows."""

from __future__ import annotations

from collections.abc import Mapping

from crypto.params import STANDARD_128
from crypto.protocols.sum_costs import agreement_traffic, sum_traffic
from jobs.anonymize_parameters import joint_anonymisation
from jobs.plan.plan import PartyPlan, Plan, published_rows, rows_public
from jobs.plan.prices import NODE_BYTES, SETTLE_S, moving_s
from jobs.plan.vertical import estimate_vertical
from jobs.spec import JobSpec
from jobs.statement import statement
from link.traffic import Traffic, greeting, receipts
from mining.joint.anonymisation.public_lattice import possible_classes
from protos.v1.plan_pb2 import PartyEstimate

_NOT_RECKONED = (
    "The figures are those of the sums at the start. Which nodes are looked at hangs on the rows: each takes a "
    "comparison for every class that it may have, and the released rows are sent once more."
)
_ALL_EXAMINED = (
    "The figures are those of the sums at the start. All nodes of at most {most:,} possible classes are examined: "
    "{nodes:,} with {classes:,} classes together, a comparison for each. The released rows are sent once more."
)
_ONLY_ALIGNED = (
    "The figures are those of the alignment. Which nodes are looked at hangs on the rows: each table that is computed "
    "takes some hundred bytes for every common row, and the joined rows are sent some twenty times over."
)


def estimate_anonymization(spec: JobSpec, answers: Mapping[str, PartyEstimate], latency_s: float, *others: str) -> Plan:
    """What the job will cost and disclose; arguments as in `estimate`."""
    if spec.is_vertical:
        return estimate_vertical(spec, answers, latency_s, *others, _ONLY_ALIGNED).model_copy(
            update={"strategy": spec.anonymization.algorithm}
        )
    answers = {name: answers[name] for name in spec.job.parties}
    told = [answer.n_rows for answer in answers.values() if answer.HasField("n_rows")]
    task, declared = joint_anonymisation(spec), statement(spec)
    certificates = {name: answer.certificate_bytes for name, answer in answers.items()}
    traffic = Traffic(tuple(answers))
    greeting(traffic, STANDARD_128.suite, certificates)
    agreement_traffic(traffic, "/task/keys")
    sum_traffic(traffic, "/task/rows", values=1, word_bytes=8, label="rows")
    sum_traffic(traffic, "/task/losses", values=sum(task.shape), word_bytes=8, label="losses")
    receipts(traffic, STANDARD_128.suite, certificates)
    seconds, bandwidth = SETTLE_S + traffic.rounds * latency_s, spec.plan.bytes_per_s
    seconds += max(moving_s(traffic, name, answer.speed, bandwidth) for name, answer in answers.items())
    sentences = [_NOT_RECKONED]
    if task.disclose == "node":
        cells = possible_classes(task)
        examined = cells[cells <= task.node_cells]
        sentences = [_ALL_EXAMINED.format(most=task.node_cells, nodes=len(examined), classes=int(examined.sum()))]
    if len(told) < len(answers):
        sentences.append("Who hides the number of rows is taken to be like the others.")
    return Plan(
        job=spec.job.name,
        spec_digest=spec.digest.hex(),
        n_rows=sum(told) * len(answers) // len(told) if told else None,
        strategy=task.algorithm,
        rounds=traffic.rounds,
        seconds=seconds,
        parties={
            name: PartyPlan(
                rows_public=rows_public(answer),
                n_rows=published_rows(answer),
                bytes_sent=traffic.bytes_sent(name),
                bytes_received=traffic.bytes_received(name),
                seconds=seconds,
                memory_bytes=NODE_BYTES,
            )
            for name, answer in answers.items()
        },
        batches=[],
        disclosure=declared.as_data(),
        prose=declared.prose(),
        assumptions=[*others, *sentences, f"A message takes {1000 * latency_s:.1f} ms between parties."],
    )
