"""What a job will cost and disclose, before it runs."""

from jobs.plan.plan import Plan

__all__ = ["Plan"]
