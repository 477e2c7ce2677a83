"""What a job counts for of a node's memory: by what is published alone, and only where something limits it."""

from __future__ import annotations

from mining.public_sizes import NOTHING, PublicSizes
from party.policy.job_memory import expected_memory
from tests.party.nodes import weekly

MILLION = PublicSizes(1_000_000, 1000)


def test_more_rows_take_more_and_what_is_not_published_counts_for_little() -> None:
    spec = weekly()
    nothing, million = (expected_memory(spec, sizes, "north") for sizes in (NOTHING, MILLION))
    assert nothing < 16 << 20
    assert 50 << 20 < million < 1 << 30
