"""The report of a job for people: one self-contained page, and a short form for notebooks."""

from __future__ import annotations

from jobs.report.page import prepare, report

__all__ = ["prepare", "report"]
