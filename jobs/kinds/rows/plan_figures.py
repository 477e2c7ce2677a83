"""The figures of one way to do a job: what is expected of it, what it moves and how long it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jobs.kinds.rows.plan_sizes import Expected, expected
from jobs.plan.answer import Answer
from jobs.plan.figures import SessionFigures
from jobs.plan.prices import seconds
from link.traffic import Traffic
from mining.joint.parameters import HorizontalMining
from mining.joint.sizes import MiningSizes, mining_traffic


@dataclass(frozen=True)
class Figures(SessionFigures):
    """The figures of a job.

    Attributes:
        found: What is expected; None where the parties publish too little, and the figures are the least that it costs.
        sizes: On which the figures hang.
    """

    found: Expected | None
    sizes: MiningSizes

    @classmethod
    def of(
        cls,
        task: HorizontalMining,
        answers: Mapping[str, Answer],
        latency_s: float,
        bytes_per_s: float | None = None,
    ) -> Figures:
        """From what the parties publish.

        Args:
            task: The public parameters.
            answers: By party, in the order of the job.
            latency_s: Seconds that a message is expected to take from party to party.
            bytes_per_s: What the network carries, where the job says so.

        Raises:
            InputDataError: There are no transactions.
        """
        found = expected(task, answers)
        sizes = found.sizes if found is not None else MiningSizes(1, 0, None)
        traffic = session_traffic(task, tuple(answers), answers, sizes)
        return cls(traffic, seconds(task, answers, sizes, traffic, latency_s, bytes_per_s), found, sizes)


def session_traffic(
    task: HorizontalMining, parties: Sequence[str], answers: Mapping[str, Answer], sizes: MiningSizes
) -> Traffic:
    """What the job's session sends, greetings and receipts included."""
    traffic = Traffic(parties)
    mining_traffic(traffic, task, sizes)
    traffic.session({name: answers[name].certificate_bytes for name in parties})
    return traffic
