"""How long the steps of joint jobs take, measured where their progress passes by."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from link.core import Progress
from party.services.metrics.metrics import Metrics


class StepTimes:
    """Takes the progress of one job, measures its steps, and hands it on. A context that ends with the job.

    Args:
        metrics: Where the times go.
        task: What the job is to do.
        show: Takes the progress, too.
    """

    def __init__(self, metrics: Metrics, task: str, show: Progress) -> None:
        self._metrics, self._task, self._show = metrics, task, show
        self._step, self._began = "", 0.0

    def __call__(self, step: str, done: int, total: int) -> None:
        """Takes how far a step has come."""
        if step != self._step and not step.startswith("/"):  # those are parts of a step
            self._end()
            self._step, self._began = step, time.monotonic()
        if step == self._step and done >= total:
            self._end()
        self._show(step, done, total)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        if self._step:
            self._metrics.stepped(self._task, self._step, time.monotonic() - self._began)
        self._step = ""
