"""How much of a node its jobs may take: all of them, and those of one coordinator."""

from __future__ import annotations

from dataclasses import dataclass

from party.config import PartyConfig


@dataclass(frozen=True, slots=True)
class JobLimits:
    """What the settings allow.

    Attributes:
        running: Jobs at once.
        running_of_one: Those of one coordinator.
        open_of_one: Jobs of one coordinator that have not ended.
        proposals_of_one: Its proposals within a minute.
        memory: Bytes that all jobs at once are expected to take; None where nothing limits it.
    """

    running: int
    running_of_one: int
    open_of_one: int
    proposals_of_one: int
    memory: int | None = None

    @classmethod
    def of(cls, config: PartyConfig) -> JobLimits:
        """Those of a node's file."""
        party, policy = config.party, config.policy
        return cls(
            running=party.max_running,
            running_of_one=policy.max_running_jobs or party.max_running,
            open_of_one=policy.max_open_jobs,
            proposals_of_one=policy.max_proposals,
            memory=party.memory,
        )
