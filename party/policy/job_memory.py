"""What a job is expected to take of a node's memory, by what everybody may know: nothing in it depends on rows."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from jobs.plan.calibration import Speed, speed_message
from jobs.plan.estimate import estimate
from jobs.plan.predicted import predicted, sizes_message
from jobs.plan.prices import NODE_BYTES
from jobs.spec.job import JobSpec
from link.errors import ConfigurationError
from mining.public_sizes import PublicSizes
from protos.v1.plan_pb2 import PartyEstimate

_ANY: Final = Speed(*[1e-6] * 8)  # of which memory does not depend


def expected_memory(spec: JobSpec, sizes: PublicSizes, me: str, block_bytes: int | None = None) -> int:
    """Bytes of memory, by the job and by what this party publishes of its dataset's size; the others are like it.

    Args:
        spec: The job.
        sizes: What the party publishes.
        me: The party.
        block_bytes: As in `PartyEstimate`.

    Returns:
        Bytes beside those of a node that runs no job; 0 where the job cannot run with such parties: it will say so.
    """
    likewise = PartyEstimate(sizes=sizes_message(sizes), speed=speed_message(_ANY), block_bytes=block_bytes)
    with suppress(ConfigurationError):
        answers = predicted(spec, dict.fromkeys(spec.job.parties, likewise), "likely")
        whole = estimate(spec, answers, 0.0, compare=False).parties[me].memory_bytes
        return max(0, whole - NODE_BYTES)
    return 0
